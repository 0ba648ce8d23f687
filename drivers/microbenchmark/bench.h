/* The tests themselves. */
#pragma once

#include "database.h"
#include "failure.h"
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

/* The loops around one engine, or around none (loops.h). */
struct loops {
    void (*write)(struct job *job, const struct test *test);
    void (*read_random)(struct job *job);
    void (*walk)(struct job *job, enum direction direction);
};

extern const struct loops ENGINE_LOOPS, NULL_LOOPS;

static inline const struct loops *loops_of(const struct job *job)
{
    return is_null(&job->session) ? &NULL_LOOPS : &ENGINE_LOOPS;
}

static inline bool asked_to_stop(const struct job *job)
{
    return stop_signal != 0 || (job->stop != NULL && __atomic_load_n(job->stop, __ATOMIC_RELAXED));
}

void read_while_writing(const struct job *model, const struct test *test, struct counter *counters,
                        struct outcome *outcome);

/* Processes from the first to the last moment of any of them; the caller has no session open. */
void transfers_run(struct database *database, const struct test *test, struct random random, struct outcome *outcome);
/* What the readers did, or the processes, in one. */
void add_up(struct outcome *outcome);

static inline void cpu_between(struct side *side, const struct rusage *before, const struct rusage *after)
{
    side->cpu_user_us = (uint64_t)((after->ru_utime.tv_sec - before->ru_utime.tv_sec) * 1000000 +
                                   after->ru_utime.tv_usec - before->ru_utime.tv_usec);
    side->cpu_system_us = (uint64_t)((after->ru_stime.tv_sec - before->ru_stime.tv_sec) * 1000000 +
                                     after->ru_stime.tv_usec - before->ru_stime.tv_usec);
}
