/*
 * The timed loops. Each engine's file has a copy of its own with its calls in it (DEFINE_LOOPS): a call from another file
 * would be a fiftieth of what LMDB takes for a put in a batch, and a tenth of a step. So these are headers, and always
 * inline. The engine that does nothing (null.c) has one too, so that the difference of two runs is the library and the disk.
 */
#pragma once

#include "bench.h"
#include "clock.h"

#include <time.h>

/* What the loops call of an engine. */
struct calls {
    void (*begin)(struct session *session, bool reads);
    /* `appends`: the key is behind all that are there. */
    void (*put)(struct session *session, const struct bytes *key, const struct bytes *value, bool appends);
    void (*commit)(struct session *session);
    /* For a transaction that reads: what it saw is given up. */
    void (*end)(struct session *session);
    /* One read in a transaction of its own: whether it is there. The value is whole until the next one. */
    bool (*read)(struct session *session, const struct bytes *key, struct bytes *value);
    /* To the next entry in that direction: false behind the last one. */
    bool (*step)(struct session *session, struct bytes *key, struct bytes *value, enum direction direction);
};

#define LOOP static inline __attribute__((always_inline))

/* `calls` is a constant of the file's own, whose functions the compiler knows. */
#define DEFINE_LOOPS(name, calls)                                                                          \
    static void write_all(struct job *job, const struct test *test) { write_by(job, test, &(calls)); }     \
    static void read_all(struct job *job) { read_random_by(job, &(calls)); }                               \
    static void walk_all(struct job *job, enum direction direction) { walk_by(job, direction, &(calls)); } \
    const struct loops name = {write_all, read_all, walk_all}

/* Two looks at the clock would be a tenth of a read that the cache answers; one read in 16 pays for them. */
enum { READ_EVERY = 16, PAGE = 4096 };

LOOP void touch(const struct bytes *value, enum touch how)
{
    const volatile char *bytes = value->data;
    if (how == TOUCH_NONE || value->size == 0)
        return;
    (void)bytes[0];
    if (how == TOUCH_PAGES)
        for (size_t at = PAGE; at < value->size; at += PAGE)
            (void)bytes[at];
}

LOOP uint64_t key_number(struct job *job, const struct test *test, uint64_t at)
{
    if (test->sequential)
        return at;
    return job->numbers != NULL ? job->numbers[at] : random_below(&job->random, job->session.database->keys);
}

/* The moment at which a transaction begins under a rate: its turn, or now where it is late. */
static inline uint64_t wait_for_turn(uint64_t started, uint64_t transactions, uint64_t rate)
{
    uint64_t turn_ns = started + (uint64_t)((unsigned __int128)transactions * SECOND_NS / rate);
    struct timespec turn = {(time_t)(turn_ns / SECOND_NS), (long)(turn_ns % SECOND_NS)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &turn, NULL);
    return clock_ns();
}

/* The clock is read once for each transaction: its latency ends where the next one's begins. */
LOOP void write_by(struct job *job, const struct test *test, const struct calls *calls)
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
        calls->begin(session, false);
        uint64_t until = job->count - done < batch ? job->count : done + batch;
        for (; done < until; done++) {
            key_write(key_bytes, key_number(job, test, done));
            struct bytes key = {KEY_BYTES, key_bytes}, value = {value_bytes, value_next(job->values, value_bytes)};
            calls->put(session, &key, &value, test->sequential);
        }
        calls->commit(session);
        uint64_t now = clock_ns();
        histogram_add(&side->latency, now - begun);
        begun = now;
        count_to(job->counter, done);
    }
    side->operations = done;
    side->bytes = done * (KEY_BYTES + value_bytes);
}

LOOP void read_random_by(struct job *job, const struct calls *calls)
{
    struct session *session = &job->session;
    struct side *side = job->side;
    enum touch how = session->database->options->touch;
    uint64_t done = 0, found = 0, bytes = 0;
    char key_bytes[KEY_BYTES];
    side->latency_of = "read";
    side->latency_every = READ_EVERY;
    calls->begin(session, true);
    for (; (done < job->count || job->deadline_ns != 0) && !asked_to_stop(job); done++) {
        bool timed = done % READ_EVERY == 0;
        uint64_t begun = timed ? clock_ns() : 0;
        if (timed && job->deadline_ns != 0 && begun >= job->deadline_ns)
            break;
        key_write(key_bytes, random_below(&job->random, session->database->keys));
        struct bytes key = {KEY_BYTES, key_bytes}, value;
        if (calls->read(session, &key, &value)) {
            touch(&value, how);
            found++;
            bytes += key.size + value.size;
        }
        if (timed) {
            histogram_add(&side->latency, clock_ns() - begun);
            count_to(job->counter, done + 1);
        }
    }
    calls->end(session);
    count_to(job->counter, done);
    side->operations = done;
    side->found = found;
    side->bytes = bytes;
}

/* Every entry that is there. */
LOOP void walk_by(struct job *job, enum direction direction, const struct calls *calls)
{
    enum touch how = job->session.database->options->touch;
    struct bytes key, value;
    uint64_t done = 0, bytes = 0;
    calls->begin(&job->session, true);
    while (!asked_to_stop(job) && calls->step(&job->session, &key, &value, direction)) {
        touch(&value, how);
        bytes += key.size + value.size;
        count_to(job->counter, ++done);
    }
    calls->end(&job->session);
    job->side->operations = done;
    job->side->bytes = bytes;
}
