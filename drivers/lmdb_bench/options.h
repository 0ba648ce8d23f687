/* What the program was asked for, and the tests that it knows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_BYTES = 16, LARGE_VALUE_BYTES = 100000, TESTS_MAX = 64 };

enum sync_mode { SYNC_BY_TEST, SYNC_FULL, SYNC_NOMETASYNC, SYNC_NOSYNC, SYNC_MAPASYNC };
enum preallocation { PREALLOCATE_NONE, PREALLOCATE_FTRUNCATE, PREALLOCATE_FALLOCATE, PREALLOCATE_WRITTEN };
enum touch { TOUCH_NONE, TOUCH_FIRST, TOUCH_PAGES };
enum key_order { KEYS_RANDOM, KEYS_SHUFFLED };
enum engine { ENGINE_LMDB, ENGINE_NULL };
enum kind { FILL, OVERWRITE, READ_RANDOM, READ_SEQUENCE, READ_REVERSE, READ_WHILE_WRITING };

struct test {
    const char *name;
    enum kind kind;
    bool sequential, batched, synchronous, large;
};

struct options {
    const char *directory;
    enum engine engine;
    const struct test *tests[TESTS_MAX];
    size_t test_count;
    uint64_t entries, sync_entries, reads, value_bytes, batch, map_bytes, seed, threads, duration_s, write_rate;
    enum sync_mode sync;
    bool writemap, readahead, existing, flush_after;
    enum preallocation preallocation;
    enum key_order keys;
    enum touch touch;
    int progress_fd;
};

/* The words of the command line and of the document, in the order of the enumerations. */
extern const char *const SYNC_WORDS[], *const PREALLOCATION_WORDS[], *const TOUCH_WORDS[], *const KEY_WORDS[],
    *const ENGINE_WORDS[];

/* Ends the program with status 2 where the call is wrong. */
struct options options_parse(int count, char **words);

static inline bool test_writes(const struct test *test)
{
    return test->kind == FILL || test->kind == OVERWRITE || test->kind == READ_WHILE_WRITING;
}

static inline enum sync_mode test_sync(const struct options *options, const struct test *test)
{
    if (options->sync != SYNC_BY_TEST)
        return options->sync;
    return test->synchronous ? SYNC_FULL : SYNC_NOSYNC;
}

/* The number of keys that a test draws from, or writes. */
static inline uint64_t test_entries(const struct options *options, const struct test *test)
{
    if (test->synchronous)
        return options->sync_entries;
    if (!test->large)
        return options->entries;
    return options->entries >= 1000 ? options->entries / 1000 : 1;
}

static inline uint64_t test_reads(const struct options *options, const struct test *test)
{
    if (!test->large)
        return options->reads;
    return options->reads >= 1000 ? options->reads / 1000 : 1;
}

static inline uint64_t test_value_bytes(const struct options *options, const struct test *test)
{
    return test->large ? LARGE_VALUE_BYTES : options->value_bytes;
}
