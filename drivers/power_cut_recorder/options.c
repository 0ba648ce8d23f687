/* Reads the command line. */
#define _GNU_SOURCE
#include "options.h"

#include <stdio.h>
#include <stdlib.h>

enum { GRAIN_BYTES = 4096, LEAST_LOG_BYTES = 1024 * 1024, MOST_PID = 1 << 22, MOST_LATE_US = 1000000 };
static const uint64_t BYTES_MAX = (uint64_t)1 << 46;

static const char USAGE[] =
    "bedplate-power-cut-recorder --directory DIRECTORY --mount MOUNT --disk-bytes N --log-limit-bytes N [options]\n"
    "\n"
    "  --directory DIRECTORY  where the log and what the disks hold are made; on tmpfs\n"
    "  --mount MOUNT          an empty directory: disk, journal, mark, status and seal appear in it\n"
    "  --disk-bytes N         size of the disk, whole 4096 bytes\n"
    "  --journal-bytes N      size of a second disk for a journal (there is none)\n"
    "  --log-limit-bytes N    the log grows no further: it ends then, and every later write fails\n"
    "  --late-us N            answer each write up to N microseconds after it came, in any order (at once)\n"
    "  --parent PID           end with this process, which has to be the one that starts it\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 the call is wrong.\n";

#define DRIVER "bedplate-power-cut-recorder"
#include "../arguments.h"

enum name { DIRECTORY, MOUNT, DISK, JOURNAL, LOG_LIMIT, LATE, PARENT, HELP };

static const struct option NAMES[] = {
    [DIRECTORY] = {"directory", required_argument, NULL, DIRECTORY},
    [MOUNT] = {"mount", required_argument, NULL, MOUNT},
    [DISK] = {"disk-bytes", required_argument, NULL, DISK},
    [JOURNAL] = {"journal-bytes", required_argument, NULL, JOURNAL},
    [LOG_LIMIT] = {"log-limit-bytes", required_argument, NULL, LOG_LIMIT},
    [LATE] = {"late-us", required_argument, NULL, LATE},
    [PARENT] = {"parent", required_argument, NULL, PARENT},
    [HELP] = {"help", no_argument, NULL, HELP},
    [HELP + 1] = {NULL, 0, NULL, 0},
};

static void take(struct options *options, int name, const char *text)
{
    const char *called = NAMES[name].name;
    switch ((enum name)name) {
    case DIRECTORY: options->directory = text; break;
    case MOUNT: options->mount = text; break;
    case DISK: options->disk_bytes = number_in_steps(called, text, GRAIN_BYTES, BYTES_MAX, GRAIN_BYTES); break;
    case JOURNAL: options->journal_bytes = number_in_steps(called, text, GRAIN_BYTES, BYTES_MAX, GRAIN_BYTES); break;
    case LOG_LIMIT: options->log_limit_bytes = number(called, text, LEAST_LOG_BYTES, BYTES_MAX); break;
    case LATE: options->late_us = number(called, text, 0, MOST_LATE_US); break;
    case PARENT: options->parent = (pid_t)number(called, text, 1, MOST_PID); break;
    case HELP: fputs(USAGE, stdout); exit(0);
    }
}

struct options options_parse(int count, char **words)
{
    struct options options = {0};
    for (int name; (name = next_option(count, words, NAMES, HELP)) != -1;)
        take(&options, name, optarg);
    if (optind < count)
        usage_error("'%s' belongs to no option", words[optind]);
    if (options.directory == NULL || options.mount == NULL)
        usage_error("--directory and --mount have to be named");
    if (options.disk_bytes == 0 || options.log_limit_bytes == 0)
        usage_error("--disk-bytes and --log-limit-bytes have to be named");
    return options;
}
