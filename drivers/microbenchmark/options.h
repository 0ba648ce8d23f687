/* What the program was asked for, and the tests that it knows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_BYTES = 16, LARGE_VALUE_BYTES = 100000, TESTS_MAX = 64 };

enum touch { TOUCH_NONE, TOUCH_FIRST, TOUCH_PAGES };
enum key_order { KEYS_RANDOM, KEYS_SHUFFLED };
enum kind { FILL, OVERWRITE, READ_RANDOM, READ_SEQUENCE, READ_REVERSE, READ_WHILE_WRITING, TRANSFER };

struct test {
    const char *name;
    enum kind kind;
    bool sequential, batched, synchronous, large;
};

struct options {
    const char *directory;
    bool null; /* the engine that does nothing, in place of the one that was compiled in */
    const struct test *tests[TESTS_MAX];
    size_t test_count;
    uint64_t entries, sync_entries, reads, value_bytes, batch, seed, threads, duration_s, write_rate;
    bool existing, flush_after;
    enum key_order keys;
    enum touch touch;
    int progress_fd;
};

/* The words of the command line and of the document, in the order of the enumerations. */
extern const char *const TOUCH_WORDS[], *const KEY_WORDS[];

/* What a size on the command line may be at most. */
static const uint64_t BYTES_MAX = (uint64_t)1 << 46;

/* The library that runs, and the header that this was compiled with. */
struct library {
    const char *version, *text, *header;
};

/* What an engine has of a call. Its name on the command line and in the document, and the help for its settings. */
extern const char ENGINE_NAME[], ENGINE_USAGE[];
struct library engine_library(void);
/* Takes a setting; false where it has none of that name. Ends the program with status 2 for a value that is none. */
bool engine_take(const char *name, const char *value);
/* The same for settings that do not go together or with the rest; every test and setting is known then. */
void engine_check(const struct options *options);
/* Whether it has the transactions of tpcb. */
extern const bool ENGINE_TRANSFERS;
/* Whether there are commits that wait for the medium: without them there is no synchronous test. */
bool engine_may_wait(void);

/* Ends the program with status 2 where the call is wrong. */
struct options options_parse(int count, char **words);

static inline bool test_makes(const struct test *test) { return test->kind == FILL || test->kind == TRANSFER; }

static inline bool test_writes(const struct test *test)
{
    return test_makes(test) || test->kind == OVERWRITE || test->kind == READ_WHILE_WRITING;
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
