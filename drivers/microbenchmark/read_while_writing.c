/* Readers side by side with one writer: each on a thread, each with its own CPU time and latencies. */
#define _GNU_SOURCE
#include "bench.h"

#include "clock.h"

#include <errno.h>
#include <stdlib.h>

/* What all threads share. The writer ends when the last reader has. */
struct together {
    pthread_barrier_t begin;
    bool readers_ended;
};

struct thread {
    struct job job;
    struct together *together;
    struct counter counter; /* the writer's: its progress is not told */
    pthread_t thread;
};

static void *read_on_thread(void *given)
{
    struct thread *thread = given;
    const struct options *options = thread->job.session.database->options;
    struct rusage before, after;
    pthread_barrier_wait(&thread->together->begin);
    getrusage(RUSAGE_THREAD, &before);
    uint64_t begun = clock_ns();
    if (options->duration_s != 0)
        thread->job.deadline_ns = begun + options->duration_s * SECOND_NS;
    loops_of(&thread->job)->read_random(&thread->job);
    thread->job.side->elapsed_ns = clock_ns() - begun;
    getrusage(RUSAGE_THREAD, &after);
    cpu_between(thread->job.side, &before, &after);
    return NULL;
}

static void *write_on_thread(void *given)
{
    static const struct test overwrite = {.name = "the writer", .kind = OVERWRITE};
    struct thread *thread = given;
    struct rusage before, after;
    pthread_barrier_wait(&thread->together->begin);
    getrusage(RUSAGE_THREAD, &before);
    uint64_t begun = clock_ns();
    loops_of(&thread->job)->write(&thread->job, &overwrite);
    thread->job.side->elapsed_ns = clock_ns() - begun;
    getrusage(RUSAGE_THREAD, &after);
    cpu_between(thread->job.side, &before, &after);
    return NULL;
}

static void start(struct thread *thread, void *(*body)(void *))
{
    int code = pthread_create(&thread->thread, NULL, body, thread);
    if (code != 0)
        fail(code, "start a thread");
}

void add_up(struct outcome *outcome)
{
    struct side *total = &outcome->total;
    total->latency_of = outcome->readers[0].latency_of;
    total->latency_every = outcome->readers[0].latency_every;
    for (uint64_t at = 0; at < outcome->reader_count; at++) {
        const struct side *reader = &outcome->readers[at];
        total->operations += reader->operations;
        total->found += reader->found;
        total->busy += reader->busy;
        total->bytes += reader->bytes;
        histogram_merge(&total->latency, &reader->latency);
    }
}

void read_while_writing(const struct job *model, const struct test *test, struct counter *counters,
                        struct outcome *outcome)
{
    const struct options *options = model->session.database->options;
    uint64_t count = options->threads;
    struct together together = {.readers_ended = false};
    /* Aligned as the counters in them are; the last one is the writer. */
    struct thread *threads = aligned_alloc(_Alignof(struct thread), (count + 1) * sizeof *threads);
    struct values values = *model->values;
    outcome->readers = calloc(count, sizeof *outcome->readers);
    outcome->writer = calloc(1, sizeof *outcome->writer);
    outcome->reader_count = count;
    if (threads == NULL || outcome->readers == NULL || outcome->writer == NULL)
        fail(ENOMEM, "memory for the threads");
    pthread_barrier_init(&together.begin, NULL, (unsigned)count + 1);
    for (uint64_t at = 0; at <= count; at++) {
        struct thread *thread = &threads[at];
        bool writes = at == count;
        *thread = (struct thread){.job = *model, .together = &together};
        thread->job.session = session_open(model->session.database, test);
        thread->job.values = &values;
        thread->job.random.state = model->random.state + (at + 1) * 0xD1B54A32D192ED03u;
        thread->job.count = writes ? UINT64_MAX : options->reads;
        thread->job.write_rate = options->write_rate;
        thread->job.stop = writes ? &together.readers_ended : NULL;
        thread->job.side = writes ? outcome->writer : &outcome->readers[at];
        thread->job.counter = writes ? &thread->counter : &counters[at];
        start(thread, writes ? write_on_thread : read_on_thread);
    }
    for (uint64_t at = 0; at < count; at++)
        pthread_join(threads[at].thread, NULL);
    __atomic_store_n(&together.readers_ended, true, __ATOMIC_RELAXED);
    pthread_join(threads[count].thread, NULL);
    pthread_barrier_destroy(&together.begin);
    for (uint64_t at = 0; at <= count; at++)
        session_close(&threads[at].job.session);
    free(threads);
    add_up(outcome);
}
