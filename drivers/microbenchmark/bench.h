/* The tests themselves. */
#pragma once

#include "database.h"
#include "keys.h"
#include "progress.h"

#include <sys/resource.h>

/* What a loop works on, and where it counts. */
struct job {
    struct session session;
    struct values *values;
    const uint32_t *numbers; /* NULL: random or in sequence */
    struct random random;
    uint64_t count, deadline_ns; /* 0: no deadline; else the count does not matter */
    uint64_t write_rate;         /* transactions per second; 0: as many as there can be */
    const bool *stop;            /* NULL: nothing but a signal stops it */
    struct counter *counter;
    struct side *side;
};

void bench_run(const struct options *options);

void write_entries(struct job *job, const struct test *test);
void read_random(struct job *job);
void read_while_writing(const struct job *model, const struct test *test, struct counter *counters,
                        struct outcome *outcome);

static inline void cpu_between(struct side *side, const struct rusage *before, const struct rusage *after)
{
    side->cpu_user_us = (uint64_t)((after->ru_utime.tv_sec - before->ru_utime.tv_sec) * 1000000 +
                                   after->ru_utime.tv_usec - before->ru_utime.tv_usec);
    side->cpu_system_us = (uint64_t)((after->ru_stime.tv_sec - before->ru_stime.tv_sec) * 1000000 +
                                     after->ru_stime.tv_usec - before->ru_stime.tv_usec);
}
