/* A line each second on how far a test is, by a thread of its own, so that the loop only counts. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* On a cache line of its own: the readers of readwhilewriting count side by side. */
struct counter {
    _Alignas(64) uint64_t operations;
};

static inline void count_to(struct counter *counter, uint64_t operations)
{
    __atomic_store_n(&counter->operations, operations, __ATOMIC_RELAXED);
}

struct progress {
    int fd;
    const char *test;
    const struct counter *counters;
    uint64_t counter_count, begun_ns;
    bool over;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
};

void progress_start(struct progress *progress, int fd, const char *test, const struct counter *counters, uint64_t count);
void progress_end(struct progress *progress);
