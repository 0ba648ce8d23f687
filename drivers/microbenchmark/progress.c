/* progress.h says what it is for. */
#define _GNU_SOURCE
#include "progress.h"

#include "clock.h"
#include "failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static void tell(struct progress *progress, uint64_t now_ns)
{
    uint64_t operations = 0;
    for (uint64_t at = 0; at < progress->counter_count; at++)
        operations += __atomic_load_n(&progress->counters[at].operations, __ATOMIC_RELAXED);
    /* Nobody has to listen. */
    if (dprintf(progress->fd, "{\"test\": \"%s\", \"elapsed_ns\": %" PRIu64 ", \"operations\": %" PRIu64 "}\n", progress->test,
                now_ns - progress->begun_ns, operations) < 0)
        progress->over = true;
}

static void *watch(void *given)
{
    struct progress *progress = given;
    uint64_t next_ns = progress->begun_ns;
    pthread_mutex_lock(&progress->mutex);
    while (!progress->over) {
        next_ns += SECOND_NS;
        struct timespec next = {(time_t)(next_ns / SECOND_NS), (long)(next_ns % SECOND_NS)};
        int code = 0;
        while (!progress->over && code != ETIMEDOUT)
            code = pthread_cond_timedwait(&progress->ended, &progress->mutex, &next);
        if (!progress->over)
            tell(progress, clock_ns());
    }
    pthread_mutex_unlock(&progress->mutex);
    return NULL;
}

void progress_start(struct progress *progress, int fd, const char *test, const struct counter *counters, uint64_t count)
{
    *progress = (struct progress){
        .fd = fd, .test = test, .counters = counters, .counter_count = count, .begun_ns = clock_ns()};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->ended, &attributes);
    pthread_mutex_init(&progress->mutex, NULL);
    int code = pthread_create(&progress->thread, NULL, watch, progress);
    if (code != 0)
        fail(code, "start the thread of progress");
}

void progress_end(struct progress *progress)
{
    pthread_mutex_lock(&progress->mutex);
    progress->over = true;
    pthread_cond_signal(&progress->ended);
    pthread_mutex_unlock(&progress->mutex);
    pthread_join(progress->thread, NULL);
}
