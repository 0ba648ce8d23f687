/* Reads the command line. */
#define _GNU_SOURCE
#include "options.h"

#include <stdio.h>
#include <stdlib.h>

enum { GRAIN_BYTES = 4096, LEAST_LOG_BYTES = 1024 * 1024, MOST_PID = 1 << 22, MOST_LATE_US = 1000000, MOST_PLACES = 1024 };
static const uint64_t BYTES_MAX = (uint64_t)1 << 46, MOST_NS = (uint64_t)3600 * 1000000000;

static const char USAGE[] =
    "bedplate-power-cut-recorder --directory DIRECTORY --mount MOUNT --disk-bytes N [options]\n"
    "bedplate-power-cut-recorder --probe DEVICE [--kind read|write|flush] [--depth N] [--seconds N]\n"
    "bedplate-power-cut-recorder --rehearse LOAD --model MODEL\n"
    "\n"
    "  --directory DIRECTORY  where the log and what the disks hold are made; on tmpfs\n"
    "  --mount MOUNT          an empty directory: disk, journal, mark, status and seal appear in it\n"
    "  --disk-bytes N         size of the disk, whole 4096 bytes\n"
    "  --journal-bytes N      size of a second disk for a journal (there is none)\n"
    "  --log-limit-bytes N    the log grows no further: it ends then, and every later write fails (there is no log)\n"
    "  --late-us N            answer each write up to N microseconds after it came, in any order (at once)\n"
    "\n"
    "Without a log, a device with latency:\n"
    "  --read, --write, --flush LAW   what one takes (nothing): constant:NS, uniform:NS:NS, exponential:NS or lognormal:NS:FACTOR\n"
    "  --sequential LAW       what a read or write takes that goes on where another ended (as any other)\n"
    "  --depth N              so many are served at once (all)\n"
    "  --requests-per-s N     reads and writes together (any number)\n"
    "  --bytes-per-s N        the same\n"
    "  --stall-ns N, --period-ns N    nothing is done for that long at the end of each period (never)\n"
    "  --read-path-ns, --write-path-ns, --flush-path-ns N    what the way here and back takes of that\n"
    "  --seed N               what is drawn from (0)\n"
    "\n"
    "In place of all but the paths, a modelled disk:\n"
    "  --model MODEL          rpm=N,track_ns=N,average_ns=N,full_ns=N,settle_ns=N,outer=N,inner=N,overhead_ns=N,cache=N,ahead=N,\n"
    "                         capacity=N,depth=N,speed=N: seeks; bytes/s outside and inside; bytes; every time divided by speed\n"
    "\n"
    "  --parent PID           end with this process, which has to be the one that starts it\n"
    "\n"
    "A probe reads or overwrites the first 64 MiB of a block device past all caches, or flushes it, and prints what one\n"
    "request took at that depth: {count, seconds, ns_p50, ns_p99}.\n"
    "\n"
    "A rehearsal prints what a model does in virtual time with \"read|write random|sequential depth=N bytes=N count=N skip=N\n"
    "disk=N from=N until=N flush=N think_ns=N\" (rehearsal.h): {per_s, bytes_per_s, seconds, ns_mean, ns_p50, ns_p99}.\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 the call is wrong.\n";

#define DRIVER "bedplate-power-cut-recorder"
#include "../arguments.h"

enum name {
    DIRECTORY, MOUNT, DISK, JOURNAL, LOG_LIMIT, LATE, READ, WRITE, FLUSH, SEQUENTIAL, DEPTH, REQUESTS, BYTES, STALL, PERIOD,
    READ_PATH, WRITE_PATH, FLUSH_PATH, SEED, MODEL, REHEARSE, PROBE, KIND, SECONDS, PARENT, HELP,
};

static const struct option NAMES[] = {
    [DIRECTORY] = {"directory", required_argument, NULL, DIRECTORY},
    [MOUNT] = {"mount", required_argument, NULL, MOUNT},
    [DISK] = {"disk-bytes", required_argument, NULL, DISK},
    [JOURNAL] = {"journal-bytes", required_argument, NULL, JOURNAL},
    [LOG_LIMIT] = {"log-limit-bytes", required_argument, NULL, LOG_LIMIT},
    [LATE] = {"late-us", required_argument, NULL, LATE},
    [READ] = {"read", required_argument, NULL, READ},
    [WRITE] = {"write", required_argument, NULL, WRITE},
    [FLUSH] = {"flush", required_argument, NULL, FLUSH},
    [SEQUENTIAL] = {"sequential", required_argument, NULL, SEQUENTIAL},
    [DEPTH] = {"depth", required_argument, NULL, DEPTH},
    [REQUESTS] = {"requests-per-s", required_argument, NULL, REQUESTS},
    [BYTES] = {"bytes-per-s", required_argument, NULL, BYTES},
    [STALL] = {"stall-ns", required_argument, NULL, STALL},
    [PERIOD] = {"period-ns", required_argument, NULL, PERIOD},
    [READ_PATH] = {"read-path-ns", required_argument, NULL, READ_PATH},
    [WRITE_PATH] = {"write-path-ns", required_argument, NULL, WRITE_PATH},
    [FLUSH_PATH] = {"flush-path-ns", required_argument, NULL, FLUSH_PATH},
    [SEED] = {"seed", required_argument, NULL, SEED},
    [MODEL] = {"model", required_argument, NULL, MODEL},
    [REHEARSE] = {"rehearse", required_argument, NULL, REHEARSE},
    [PROBE] = {"probe", required_argument, NULL, PROBE},
    [KIND] = {"kind", required_argument, NULL, KIND},
    [SECONDS] = {"seconds", required_argument, NULL, SECONDS},
    [PARENT] = {"parent", required_argument, NULL, PARENT},
    [HELP] = {"help", no_argument, NULL, HELP},
    [HELP + 1] = {NULL, 0, NULL, 0},
};

static const char *const KINDS[] = {"read", "write", "flush", NULL};

static void take_law(const char *called, const char *text, struct law *law)
{
    if (!law_parse(text, law))
        usage_error("--%s takes constant:NS, uniform:NS:NS, exponential:NS or lognormal:NS:FACTOR, found '%s'", called, text);
}

static void take_service(struct service *service, enum name name, const char *called, const char *text)
{
    switch (name) {
    case LATE:
        service->laws[SERVICE_WRITE] =
            (struct law){LAW_UNIFORM, 0, 1e3 * (double)number(called, text, 0, MOST_LATE_US)};
        if (service->laws[SERVICE_WRITE].second == 0)
            service->laws[SERVICE_WRITE].shape = LAW_NONE;
        break;
    case READ: take_law(called, text, &service->laws[SERVICE_READ]); break;
    case WRITE: take_law(called, text, &service->laws[SERVICE_WRITE]); break;
    case FLUSH: take_law(called, text, &service->laws[SERVICE_FLUSH]); break;
    case SEQUENTIAL: take_law(called, text, &service->sequential); break;
    case REQUESTS: service->requests_per_s = number(called, text, 1, 1000000000); break;
    case BYTES: service->bytes_per_s = number(called, text, 1, BYTES_MAX); break;
    case STALL: service->stall_ns = number(called, text, 1, MOST_NS); break;
    case PERIOD: service->period_ns = number(called, text, 1, MOST_NS); break;
    case READ_PATH: service->path_ns[SERVICE_READ] = number(called, text, 0, MOST_NS); break;
    case WRITE_PATH: service->path_ns[SERVICE_WRITE] = number(called, text, 0, MOST_NS); break;
    case FLUSH_PATH: service->path_ns[SERVICE_FLUSH] = number(called, text, 0, MOST_NS); break;
    default: service->seed = number(called, text, 0, UINT64_MAX); break;
    }
}

static void take(struct options *options, int name, const char *text)
{
    const char *called = NAMES[name].name;
    switch ((enum name)name) {
    case DIRECTORY: options->directory = text; break;
    case MOUNT: options->mount = text; break;
    case DISK: options->disk_bytes = number_in_steps(called, text, GRAIN_BYTES, BYTES_MAX, GRAIN_BYTES); break;
    case JOURNAL: options->journal_bytes = number_in_steps(called, text, GRAIN_BYTES, BYTES_MAX, GRAIN_BYTES); break;
    case LOG_LIMIT: options->log_limit_bytes = number(called, text, LEAST_LOG_BYTES, BYTES_MAX); break;
    case DEPTH: options->depth = (unsigned)number(called, text, 1, MOST_PLACES); break;
    case MODEL:
        if (!disk_parse(text, &options->disk))
            usage_error("--model takes what no disk is, or lacks a word: '%s'", text);
        options->model = text;
        break;
    case REHEARSE: options->rehearsed = text; break;
    case PROBE: options->probed = text; break;
    case KIND: options->kind = (enum service_kind)word(called, text, KINDS); break;
    case SECONDS: options->seconds = (double)number(called, text, 1, 3600); break;
    case PARENT: options->parent = (pid_t)number(called, text, 1, MOST_PID); break;
    case HELP: fputs(USAGE, stdout); exit(0);
    default: take_service(&options->service, (enum name)name, called, text);
    }
}

struct options options_parse(int count, char **words)
{
    struct options options = {.seconds = 1};
    for (int name; (name = next_option(count, words, NAMES, HELP)) != -1;)
        take(&options, name, optarg);
    if (optind < count)
        usage_error("'%s' belongs to no option", words[optind]);
    options.service.depth = options.depth;
    if (options.rehearsed != NULL && options.model == NULL)
        usage_error("--rehearse needs a --model");
    if (options.probed != NULL || options.rehearsed != NULL)
        return options;
    if (options.model != NULL && (options.log_limit_bytes > 0 || options.journal_bytes > 0))
        usage_error("a --model has no log and no journal");
    if (options.directory == NULL || options.mount == NULL)
        usage_error("--directory and --mount have to be named");
    if (options.disk_bytes == 0)
        usage_error("--disk-bytes has to be named");
    if (options.service.stall_ns >= options.service.period_ns && options.service.stall_ns > 0)
        usage_error("--stall-ns has to be less than --period-ns");
    return options;
}
