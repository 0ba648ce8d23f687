/* Runs the tests in their order; microbenchmark.c says what each does. */
#define _GNU_SOURCE
#include "bench.h"

#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Two looks at the clock would be a tenth of a read that the cache answers; one read in 16 pays for them. */
enum { READ_EVERY = 16 };

static inline uint64_t key_number(struct job *job, const struct test *test, uint64_t at)
{
    if (test->sequential)
        return at;
    return job->numbers != NULL ? job->numbers[at] : random_below(&job->random, job->session.database->keys);
}

/* The moment at which a transaction begins under a rate: its turn, or now where it is late. */
static uint64_t wait_for_turn(uint64_t started, uint64_t transactions, uint64_t rate)
{
    uint64_t turn_ns = started + (uint64_t)((unsigned __int128)transactions * SECOND_NS / rate);
    struct timespec turn = {(time_t)(turn_ns / SECOND_NS), (long)(turn_ns % SECOND_NS)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &turn, NULL);
    return clock_ns();
}

/* The clock is read once for each transaction: its latency ends where the next one's begins. */
void write_entries(struct job *job, const struct test *test)
{
    struct session *session = &job->session;
    const struct options *options = session->database->options;
    struct side *side = job->side;
    uint64_t batch = test->batched ? options->batch : 1, value_bytes = test_value_bytes(options, test);
    char key_bytes[KEY_BYTES];
    side->latency_of = "transaction";
    side->latency_every = 1;
    uint64_t done = 0, started = clock_ns(), begun = started;
    while (done < job->count && !asked_to_stop(job)) {
        if (job->write_rate != 0)
            begun = wait_for_turn(started, side->latency.count, job->write_rate);
        transaction_begin(session, false);
        uint64_t until = job->count - done < batch ? job->count : done + batch;
        for (; done < until; done++) {
            key_write(key_bytes, key_number(job, test, done));
            struct bytes key = {KEY_BYTES, key_bytes}, value = {value_bytes, value_next(job->values, value_bytes)};
            transaction_put(session, &key, &value, test->sequential);
        }
        transaction_commit(session);
        uint64_t now = clock_ns();
        histogram_add(&side->latency, now - begun);
        begun = now;
        count_to(job->counter, done);
    }
    side->operations = done;
    side->bytes = done * (KEY_BYTES + value_bytes);
}

void read_random(struct job *job)
{
    struct session *session = &job->session;
    struct side *side = job->side;
    enum touch how = session->database->options->touch;
    uint64_t done = 0, found = 0, bytes = 0;
    char key_bytes[KEY_BYTES];
    side->latency_of = "read";
    side->latency_every = READ_EVERY;
    transaction_begin(session, true);
    for (; (done < job->count || job->deadline_ns != 0) && !asked_to_stop(job); done++) {
        bool timed = done % READ_EVERY == 0;
        uint64_t begun = timed ? clock_ns() : 0;
        if (timed && job->deadline_ns != 0 && begun >= job->deadline_ns)
            break;
        key_write(key_bytes, random_below(&job->random, session->database->keys));
        struct bytes key = {KEY_BYTES, key_bytes}, value;
        if (transaction_read(session, &key, &value)) {
            touch(&value, how);
            found++;
            bytes += key.size + value.size;
        }
        if (timed) {
            histogram_add(&side->latency, clock_ns() - begun);
            count_to(job->counter, done + 1);
        }
    }
    transaction_end(session);
    count_to(job->counter, done);
    side->operations = done;
    side->found = found;
    side->bytes = bytes;
}

static void walk(struct job *job, enum direction direction)
{
    transaction_begin(&job->session, true);
    if (is_null(&job->session))
        walk_by(job, direction, null_step);
    else
        engine_walk(job, direction);
    transaction_end(&job->session);
}

static void run_loop(struct job *job, const struct test *test, struct counter *counters, struct outcome *outcome)
{
    const struct options *options = job->session.database->options;
    switch (test->kind) {
    case FILL:
    case OVERWRITE:
        job->count = test_entries(options, test);
        write_entries(job, test);
        break;
    case READ_RANDOM:
        job->count = test_reads(options, test);
        read_random(job);
        break;
    case READ_SEQUENCE: walk(job, FORWARD); break;
    case READ_REVERSE: walk(job, BACKWARD); break;
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
