/* Reads the command line; the words for the environment are those of ../lmdb_bench.c. */
#define _GNU_SOURCE
#include "options.h"

#include "schema.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const SYNC_WORDS[] = {"full", "nometasync", "nosync", "mapasync", NULL};
static const char *const PREALLOCATION_WORDS[] = {"none", "ftruncate", "fallocate", "written", NULL};
static const uint64_t BYTES_MAX = (uint64_t)1 << 46;

enum { DEFAULT_CLIENTS = 2, DEFAULT_ACCOUNTS = 10000, DEFAULT_VALUE_BYTES = 100, DEFAULT_DURATION_S = 4 };
enum { DEFAULT_MAP_BYTES = 128 * 1024 * 1024, COUNT_MAX = 1000000 };

static const char USAGE[] =
    "bedplate-power-cut-lmdb write --directory DIRECTORY [options]\n"
    "bedplate-power-cut-lmdb check --directory DIRECTORY [--value-bytes N]\n"
    "\n"
    "  --mark FILE          where marks are written, one line in one write(2) each (nowhere)\n"
    "  --clients N          clients whose transactions take turns (2)\n"
    "  --accounts N         accounts that transactions change (10000)\n"
    "  --value-bytes N      size of a value (100)\n"
    "  --duration-s N       end after N seconds (4)\n"
    "  --sync MODE          full (default), nometasync, nosync, mapasync\n"
    "  --writemap           write through the memory map (MDB_WRITEMAP)\n"
    "  --no-readahead       no readahead for the map (MDB_NORDAHEAD)\n"
    "  --preallocation HOW  none (default), ftruncate, fallocate, written\n"
    "  --map-bytes N        size of the map (128 MiB)\n"
    "  --pressure-ms N      ask the kernel every N milliseconds to write what is dirty (0: never)\n"
    "  --log FILE           grows as the device is written to: the file by which --log-bytes are dealt out\n"
    "  --log-bytes N        how much it may grow in all, in equal parts by the second; then wait for the next\n"
    "  --log-most N         how large it may become, if that leaves less\n"
    "  --seed N             of the random numbers (1)\n"
    "\n"
    "The directory has to be there, for write without an environment in it.\n"
    "Exit status: 0 written or walked to the end, 1 LMDB failed, 2 the call is wrong.\n";

#define DRIVER "bedplate-power-cut-lmdb"
#include "../arguments.h"

enum name {
    DIRECTORY, MARK, CLIENTS, ACCOUNTS, VALUE_SIZE, DURATION, SYNC, WRITEMAP, NO_READAHEAD, PREALLOCATION, MAP_SIZE,
    PRESSURE, LOG, LOG_BYTES, LOG_MOST, SEED, HELP,
};

static const struct option NAMES[] = {
    [DIRECTORY] = {"directory", required_argument, NULL, DIRECTORY},
    [MARK] = {"mark", required_argument, NULL, MARK},
    [CLIENTS] = {"clients", required_argument, NULL, CLIENTS},
    [ACCOUNTS] = {"accounts", required_argument, NULL, ACCOUNTS},
    [VALUE_SIZE] = {"value-bytes", required_argument, NULL, VALUE_SIZE},
    [DURATION] = {"duration-s", required_argument, NULL, DURATION},
    [SYNC] = {"sync", required_argument, NULL, SYNC},
    [WRITEMAP] = {"writemap", no_argument, NULL, WRITEMAP},
    [NO_READAHEAD] = {"no-readahead", no_argument, NULL, NO_READAHEAD},
    [PREALLOCATION] = {"preallocation", required_argument, NULL, PREALLOCATION},
    [MAP_SIZE] = {"map-bytes", required_argument, NULL, MAP_SIZE},
    [PRESSURE] = {"pressure-ms", required_argument, NULL, PRESSURE},
    [LOG] = {"log", required_argument, NULL, LOG},
    [LOG_BYTES] = {"log-bytes", required_argument, NULL, LOG_BYTES},
    [LOG_MOST] = {"log-most", required_argument, NULL, LOG_MOST},
    [SEED] = {"seed", required_argument, NULL, SEED},
    [HELP] = {"help", no_argument, NULL, HELP},
    [HELP + 1] = {NULL, 0, NULL, 0},
};

static void take(struct options *options, int name, const char *text)
{
    const char *called = NAMES[name].name;
    switch ((enum name)name) {
    case DIRECTORY: options->directory = text; break;
    case MARK: options->mark = text; break;
    case CLIENTS: options->clients = number(called, text, 1, CLIENTS_MAX); break;
    case ACCOUNTS: options->accounts = number(called, text, 1, ACCOUNTS_MAX); break;
    case VALUE_SIZE: options->value_bytes = number(called, text, sizeof(struct entry), VALUE_BYTES_MAX); break;
    case DURATION: options->duration_s = number(called, text, 1, COUNT_MAX); break;
    case SYNC: options->sync = (enum sync_mode)word(called, text, SYNC_WORDS); break;
    case WRITEMAP: options->writemap = true; break;
    case NO_READAHEAD: options->readahead = false; break;
    case PREALLOCATION: options->preallocation = (enum preallocation)word(called, text, PREALLOCATION_WORDS); break;
    case MAP_SIZE: options->map_bytes = number(called, text, 1, BYTES_MAX); break;
    case PRESSURE: options->pressure_ms = number(called, text, 0, COUNT_MAX); break;
    case LOG: options->log = text; break;
    case LOG_BYTES: options->log_bytes = number(called, text, 0, BYTES_MAX); break;
    case LOG_MOST: options->log_most = number(called, text, 0, BYTES_MAX); break;
    case SEED: options->seed = number(called, text, 0, UINT64_MAX); break;
    case HELP: fputs(USAGE, stdout); exit(0);
    }
}

struct options options_parse(int count, char **words)
{
    struct options options = {
        .clients = DEFAULT_CLIENTS,
        .accounts = DEFAULT_ACCOUNTS,
        .value_bytes = DEFAULT_VALUE_BYTES,
        .map_bytes = DEFAULT_MAP_BYTES,
        .duration_s = DEFAULT_DURATION_S,
        .seed = 1,
        .readahead = true,
    };
    opterr = 0;
    for (int name; (name = getopt_long(count, words, "", NAMES, NULL)) != -1;) {
        if (name < 0 || name > HELP)
            usage_error("'%s' is no option, or lacks its value, or takes none", words[optind - 1]);
        take(&options, name, optarg);
    }
    if (optind + 1 != count)
        usage_error("say one of write and check");
    options.is_check = strcmp(words[optind], "check") == 0;
    if (!options.is_check && strcmp(words[optind], "write") != 0)
        usage_error("say write or check, not '%s'", words[optind]);
    if (options.directory == NULL)
        usage_error("--directory is missing");
    if (options.sync == SYNC_MAPASYNC && !options.writemap)
        usage_error("--sync mapasync says how a writable map is written: it needs --writemap");
    if (options.map_bytes % (uint64_t)sysconf(_SC_PAGESIZE) != 0)
        usage_error("--map-bytes takes whole pages of %ld bytes", sysconf(_SC_PAGESIZE));
    return options;
}
