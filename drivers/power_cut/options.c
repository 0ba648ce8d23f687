/* Reads the command line; the settings of an engine are those of ../microbenchmark.c. */
#define _GNU_SOURCE
#include "options.h"

#include "schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CLIENTS = 2, DEFAULT_ACCOUNTS = 10000, DEFAULT_VALUE_BYTES = 100, DEFAULT_DURATION_S = 4 };
enum { COUNT_MAX = 1000000 };

static const char USAGE[] =
    "bedplate-power-cut write --directory DIRECTORY [options]\n"
    "bedplate-power-cut check --directory DIRECTORY [--value-bytes N]\n"
    "\n"
    "  --mark FILE          where marks are written, one line in one write(2) each (nowhere)\n"
    "  --clients N          clients whose transactions take turns (2)\n"
    "  --accounts N         accounts that transactions change (10000)\n"
    "  --value-bytes N      size of a value (100)\n"
    "  --duration-s N       end after N seconds (4)\n"
    "  --set NAME=VALUE     a setting of the engine, as often as there are some; they stand below\n"
    "  --pressure-ms N      ask the kernel every N milliseconds to write what is dirty (0: never)\n"
    "  --log FILE           grows as the device is written to: the file by which --log-bytes are dealt out\n"
    "  --log-bytes N        how much it may grow in all, in equal parts by the second; then wait for the next\n"
    "  --log-most N         how large it may become, if that leaves less\n"
    "  --seed N             of the random numbers (1)\n"
    "\n"
    "The directory has to be there, for write without a database in it.\n"
    "Exit status: 0 written or walked to the end, 1 the engine failed, 2 the call is wrong.\n";

#define DRIVER "bedplate-power-cut"
#include "../arguments.h"

enum name {
    DIRECTORY, MARK, CLIENTS, ACCOUNTS, VALUE_SIZE, DURATION, SETTING, PRESSURE,
    LOG, LOG_BYTES, LOG_MOST, SEED, HELP,
};

static const struct option NAMES[] = {
    [DIRECTORY] = {"directory", required_argument, NULL, DIRECTORY},
    [MARK] = {"mark", required_argument, NULL, MARK},
    [CLIENTS] = {"clients", required_argument, NULL, CLIENTS},
    [ACCOUNTS] = {"accounts", required_argument, NULL, ACCOUNTS},
    [VALUE_SIZE] = {"value-bytes", required_argument, NULL, VALUE_SIZE},
    [DURATION] = {"duration-s", required_argument, NULL, DURATION},
    [SETTING] = {"set", required_argument, NULL, SETTING},
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
    case SETTING: take_setting(STORE_NAME, store_take, text); break;
    case PRESSURE: options->pressure_ms = number(called, text, 0, COUNT_MAX); break;
    case LOG: options->log = text; break;
    case LOG_BYTES: options->log_bytes = number(called, text, 0, BYTES_MAX); break;
    case LOG_MOST: options->log_most = number(called, text, 0, BYTES_MAX); break;
    case SEED: options->seed = number(called, text, 0, UINT64_MAX); break;
    case HELP: printf("%s\n%s", USAGE, STORE_USAGE); exit(0);
    }
}

struct options options_parse(int count, char **words)
{
    struct options options = {
        .clients = DEFAULT_CLIENTS,
        .accounts = DEFAULT_ACCOUNTS,
        .value_bytes = DEFAULT_VALUE_BYTES,
        .duration_s = DEFAULT_DURATION_S,
        .seed = 1,
    };
    for (int name; (name = next_option(count, words, NAMES, HELP)) != -1;)
        take(&options, name, optarg);
    if (optind + 1 != count)
        usage_error("say one of write and check");
    options.is_check = strcmp(words[optind], "check") == 0;
    if (!options.is_check && strcmp(words[optind], "write") != 0)
        usage_error("say write or check, not '%s'", words[optind]);
    if (options.directory == NULL)
        usage_error("--directory is missing");
    store_check();
    return options;
}
