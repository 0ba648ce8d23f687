/* Runs the tests in their order; microbenchmark.c says what each does. */
#define _GNU_SOURCE
#include "bench.h"

#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void run_loop(struct job *job, const struct test *test, struct counter *counters, struct outcome *outcome)
{
    const struct options *options = job->session.database->options;
    const struct loops *loops = loops_of(job);
    switch (test->kind) {
    case FILL:
    case OVERWRITE:
        job->count = test_entries(options, test);
        loops->write(job, test);
        break;
    case READ_RANDOM:
        job->count = test_reads(options, test);
        loops->read_random(job);
        break;
    case READ_SEQUENCE: loops->walk(job, FORWARD); break;
    case READ_REVERSE: loops->walk(job, BACKWARD); break;
    case READ_WHILE_WRITING: read_while_writing(job, test, counters, outcome); break;
    case TRANSFER: break; /* of transfers_run */
    }
}

static uint32_t *numbers_of(const struct options *options, const struct test *test, struct random *random)
{
    if (options->keys != KEYS_SHUFFLED || test->sequential || (test->kind != FILL && test->kind != OVERWRITE))
        return NULL;
    uint32_t *numbers = shuffled(test_entries(options, test), random);
    if (numbers == NULL)
        fail(ENOMEM, "shuffle the keys");
    return numbers;
}

static void measure(struct job *job, const struct test *test, struct counter *counters, struct outcome *outcome)
{
    const struct options *options = job->session.database->options;
    struct progress progress;
    struct rusage before, after;
    uint64_t counter_count = test->kind == READ_WHILE_WRITING ? options->threads : 1;
    memset(counters, 0, counter_count * sizeof *counters);
    progress_start(&progress, options->progress_fd, test->name, counters, counter_count);
    getrusage(RUSAGE_SELF, &before);
    uint64_t begun = clock_ns();
    run_loop(job, test, counters, outcome);
    outcome->total.elapsed_ns = clock_ns() - begun;
    getrusage(RUSAGE_SELF, &after);
    progress_end(&progress);
    cpu_between(&outcome->total, &before, &after);
    outcome->minor_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
    outcome->major_faults = (uint64_t)(after.ru_majflt - before.ru_majflt);
    /* A signal after the last operation cut nothing off, but which it was cannot be told here. */
    outcome->complete = stop_signal == 0;
}

static void run_test(struct database *database, struct values *values, struct counter *counters, size_t at)
{
    static struct outcome outcome;
    const struct options *options = database->options;
    const struct test *test = options->tests[at];
    memset(&outcome, 0, sizeof outcome);
    outcome.test = test;
    failure_context(test->name, NULL);
    uint64_t begun = clock_ns();
    if (test_makes(test))
        database_make(database, test);
    else
        database_keep(database, test);
    if (stop_signal != 0)
        return;
    struct random random = {options->seed + (at + 1) * 0x632BE59BD9B4E019u};
    outcome.prepare_ns = clock_ns() - begun;
    if (test->kind == TRANSFER)
        transfers_run(database, test, random, &outcome);
    struct job job = {.session = session_open(database, test), .values = values, .random = random, .counter = counters,
                      .side = &outcome.total};
    if (test->kind != TRANSFER) {
        outcome.prepare_ns = clock_ns() - begun;
        uint32_t *numbers = numbers_of(options, test, &job.random);
        job.numbers = numbers;
        failure_context(test->name, &counters->operations);
        measure(&job, test, counters, &outcome);
        free(numbers);
    }
    if (options->flush_after && test_writes(test) && stop_signal == 0) {
        begun = clock_ns();
        database_flush(&job.session);
        outcome.flush_ns = clock_ns() - begun;
        outcome.flushed = true;
    }
    database_space(database, &outcome);
    document_test(&job.session, &outcome);
    session_close(&job.session);
    free(outcome.readers);
    free(outcome.writer);
}

void bench_run(const struct options *options)
{
    static struct values values;
    struct database database = {.options = options};
    uint64_t value_bytes = options->value_bytes > LARGE_VALUE_BYTES ? options->value_bytes : LARGE_VALUE_BYTES;
    struct counter *counters = aligned_alloc(_Alignof(struct counter), options->threads * sizeof *counters);
    if (counters == NULL)
        fail(ENOMEM, "memory for the counters");
    values_make(&values, value_bytes, options->seed);
    database.null_value = (struct bytes){options->value_bytes, values.text};
    for (size_t at = 0; at < options->test_count && stop_signal == 0; at++)
        run_test(&database, &values, counters, at);
    failure_context(NULL, NULL);
    database_close(&database);
    free(counters);
}
