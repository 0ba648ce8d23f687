/* Reads the command line; whatever cannot be measured as asked is refused here, before a file is made. */
#define _GNU_SOURCE
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const TOUCH_WORDS[] = {"none", "first", "pages", NULL};
const char *const KEY_WORDS[] = {"random", "shuffled", NULL};

static const struct test TESTS[] = {
    {.name = "fillrandsync", .kind = FILL, .synchronous = true},
    {.name = "fillrandom", .kind = FILL},
    {.name = "fillrandbatch", .kind = FILL, .batched = true},
    {.name = "fillseqsync", .kind = FILL, .sequential = true, .synchronous = true},
    {.name = "fillseq", .kind = FILL, .sequential = true},
    {.name = "fillseqbatch", .kind = FILL, .sequential = true, .batched = true},
    {.name = "overwrite", .kind = OVERWRITE},
    {.name = "readrandom", .kind = READ_RANDOM},
    {.name = "readseq", .kind = READ_SEQUENCE},
    {.name = "readreverse", .kind = READ_REVERSE},
    {.name = "readwhilewriting", .kind = READ_WHILE_WRITING},
    {.name = "fillrand100K", .kind = FILL, .large = true},
    {.name = "readrand100K", .kind = READ_RANDOM, .large = true},
    {.name = "fillseq100K", .kind = FILL, .sequential = true, .large = true},
    {.name = "readseq100K", .kind = READ_SEQUENCE, .large = true},
    {.name = "tpcb", .kind = TRANSFER},
    {.name = NULL},
};

/* The published order; the others are named to be run. */
static const char DEFAULT_TESTS[] = "fillrandsync,fillrandom,fillrandbatch,fillseqsync,fillseq,fillseqbatch,"
                                    "overwrite,readrandom,readseq,readreverse";

enum {
    DEFAULT_ENTRIES = 1000000,
    DEFAULT_VALUE_BYTES = 100,
    DEFAULT_BATCH = 1000,
    DEFAULT_THREADS = 4,
    THREADS_MAX = 1024,
};
static const uint64_t ENTRIES_MAX = 9999999999999999u; /* what 16 digits can number */

static const char USAGE[] =
    "bedplate-microbenchmark --directory DIRECTORY [options]\n"
    "\n"
    "  --tests LIST         names with commas between them, in order (the ten of the published order)\n"
    "  --entries N          entries of a test (1000000)\n"
    "  --sync-entries N     entries of fillrandsync and fillseqsync (a thousandth, at least 10)\n"
    "  --reads N            reads of readrandom, and of each reader of readwhilewriting (entries);\n"
    "                       readrand100K does a thousandth\n"
    "  --value-bytes N      size of a value (100)\n"
    "  --batch N            entries of one transaction in the batch tests (1000)\n"
    "  --set NAME=VALUE     a setting of the engine, as often as there are some; they stand below\n"
    "  --keys ORDER         random (default: with repetition), shuffled (each key once)\n"
    "  --touch WHAT         of a value that was read: none, first (byte; default), pages (a byte of each)\n"
    "  --threads N          readers of readwhilewriting, processes of tpcb (4)\n"
    "  --duration-s N       end readwhilewriting after N seconds, however many reads there were; tpcb (10)\n"
    "  --write-rate N       writes per second of readwhilewriting (as many as there can be)\n"
    "  --flush-after        after a test that writes, bring everything to the medium, timed apart\n"
    "  --existing           read, or overwrite, the database that is in the directory\n"
    "  --seed N             of the random numbers (1)\n"
    "  --null               the same loop around an engine that does nothing\n"
    "  --progress-fd FD     where a line of progress goes each second (2)\n"
    "  --version            the library's version\n"
    "\n"
    "The directory has to be there; the database's files are made in it and stay.\n"
    "Exit status: 0 done, 1 failed, 2 the call is wrong, 128 + N ended by signal N.\n";

#define DRIVER "bedplate-microbenchmark"
#include "../arguments.h"

static void parse_tests(struct options *options, const char *list)
{
    options->test_count = 0;
    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        const struct test *test = TESTS;
        while (test->name != NULL && (strlen(test->name) != length || strncmp(test->name, at, length) != 0))
            test++;
        if (test->name == NULL)
            usage_error("--tests does not know '%.*s'", (int)(length < 80 ? length : 80), at);
        if (options->test_count == TESTS_MAX)
            usage_error("--tests takes at most %d tests", TESTS_MAX);
        options->tests[options->test_count++] = test;
        if (at[length] == '\0')
            return;
        at += length + 1;
    }
}

/* Each test but a fill works on what the last fill left, and has to find values of its own size there. */
static void check_order(const struct options *options)
{
    const struct test *fill = NULL;
    for (size_t at = 0; at < options->test_count; at++) {
        const struct test *test = options->tests[at];
        if (test_makes(test)) {
            if (options->existing)
                usage_error("%s makes a new database, and --existing keeps the one that is there", test->name);
            /* What tpcb leaves no other test can read. */
            fill = test->kind == FILL ? test : NULL;
        } else if (fill == NULL && !options->existing) {
            usage_error("%s needs a database: name a fill test before it, or use --existing", test->name);
        } else if (fill != NULL && fill->large != test->large) {
            usage_error("%s follows %s, whose values have another size", test->name, fill->name);
        } else if (at > 0 && options->existing && options->tests[0]->large != test->large) {
            usage_error("%s and %s want values of different sizes", options->tests[0]->name, test->name);
        }
        if (test->kind == TRANSFER && !options->null && !ENGINE_TRANSFERS)
            usage_error("%s is no test of %s", test->name, ENGINE_NAME);
        if (test->synchronous && !options->null && !engine_may_wait())
            usage_error("%s commits synchronously, which %s does not with these settings", test->name, ENGINE_NAME);
    }
}

static void check(struct options *options)
{
    if (!options->null && options->directory == NULL)
        usage_error("--directory is missing");
    if (options->keys == KEYS_SHUFFLED && options->entries > UINT32_MAX)
        usage_error("--keys shuffled takes at most %u entries", UINT32_MAX);
    check_order(options);
    engine_check(options);
}

static void print_version(void)
{
    printf("{\"program\": \"%s\", \"engine\": \"%s\", \"library\": \"%s\"}\n", DRIVER, ENGINE_NAME, engine_library().version);
    exit(0);
}

enum name {
    DIRECTORY, TEST_LIST, ENTRIES, SYNC_ENTRIES, READS, VALUE_SIZE, BATCH, SETTING, KEYS, TOUCH, THREADS, DURATION,
    WRITE_RATE, FLUSH_AFTER, EXISTING, SEED, NO_ENGINE, PROGRESS, VERSION, HELP,
};

static const struct option NAMES[] = {
    [DIRECTORY] = {"directory", required_argument, NULL, DIRECTORY},
    [TEST_LIST] = {"tests", required_argument, NULL, TEST_LIST},
    [ENTRIES] = {"entries", required_argument, NULL, ENTRIES},
    [SYNC_ENTRIES] = {"sync-entries", required_argument, NULL, SYNC_ENTRIES},
    [READS] = {"reads", required_argument, NULL, READS},
    [VALUE_SIZE] = {"value-bytes", required_argument, NULL, VALUE_SIZE},
    [BATCH] = {"batch", required_argument, NULL, BATCH},
    [SETTING] = {"set", required_argument, NULL, SETTING},
    [KEYS] = {"keys", required_argument, NULL, KEYS},
    [TOUCH] = {"touch", required_argument, NULL, TOUCH},
    [THREADS] = {"threads", required_argument, NULL, THREADS},
    [DURATION] = {"duration-s", required_argument, NULL, DURATION},
    [WRITE_RATE] = {"write-rate", required_argument, NULL, WRITE_RATE},
    [FLUSH_AFTER] = {"flush-after", no_argument, NULL, FLUSH_AFTER},
    [EXISTING] = {"existing", no_argument, NULL, EXISTING},
    [SEED] = {"seed", required_argument, NULL, SEED},
    [NO_ENGINE] = {"null", no_argument, NULL, NO_ENGINE},
    [PROGRESS] = {"progress-fd", required_argument, NULL, PROGRESS},
    [VERSION] = {"version", no_argument, NULL, VERSION},
    [HELP] = {"help", no_argument, NULL, HELP},
    [HELP + 1] = {NULL, 0, NULL, 0},
};

static void take(struct options *options, int name, const char *text)
{
    const char *called = NAMES[name].name;
    switch ((enum name)name) {
    case DIRECTORY: options->directory = text; break;
    case TEST_LIST: parse_tests(options, text); break;
    case ENTRIES: options->entries = number(called, text, 1, ENTRIES_MAX); break;
    case SYNC_ENTRIES: options->sync_entries = number(called, text, 1, ENTRIES_MAX); break;
    case READS: options->reads = number(called, text, 1, ENTRIES_MAX); break;
    case VALUE_SIZE: options->value_bytes = number(called, text, 1, BYTES_MAX); break;
    case BATCH: options->batch = number(called, text, 1, ENTRIES_MAX); break;
    case SETTING: take_setting(ENGINE_NAME, engine_take, text); break;
    case KEYS: options->keys = (enum key_order)word(called, text, KEY_WORDS); break;
    case TOUCH: options->touch = (enum touch)word(called, text, TOUCH_WORDS); break;
    case THREADS: options->threads = number(called, text, 1, THREADS_MAX); break;
    case DURATION: options->duration_s = number(called, text, 1, 1000000); break;
    case WRITE_RATE: options->write_rate = number(called, text, 1, 1000000000); break;
    case FLUSH_AFTER: options->flush_after = true; break;
    case EXISTING: options->existing = true; break;
    case SEED: options->seed = number(called, text, 0, UINT64_MAX); break;
    case NO_ENGINE: options->null = true; break;
    case PROGRESS: options->progress_fd = (int)number(called, text, 2, 1000000); break;
    case VERSION: print_version(); break;
    case HELP: printf("%s\n%s", USAGE, ENGINE_USAGE); exit(0);
    }
}

struct options options_parse(int count, char **words)
{
    struct options options = {
        .entries = DEFAULT_ENTRIES,
        .value_bytes = DEFAULT_VALUE_BYTES,
        .batch = DEFAULT_BATCH,
        .threads = DEFAULT_THREADS,
        .seed = 1,
        .touch = TOUCH_FIRST,
        .progress_fd = STDERR_FILENO,
    };
    parse_tests(&options, DEFAULT_TESTS);
    for (int name; (name = next_option(count, words, NAMES, HELP)) != -1;)
        take(&options, name, optarg);
    if (optind < count)
        usage_error("'%s' belongs to no option", words[optind]);
    if (options.sync_entries == 0)
        options.sync_entries = options.entries >= 10000 ? options.entries / 1000 : 10;
    if (options.reads == 0)
        options.reads = options.entries;
    check(&options);
    return options;
}
