/*
 * bedplate-pgbench-log: reads pgbench's per-transaction logs while they grow, or a writer's acknowledgements as they come.
 *
 * Goals: exact counts per second and script in a fixed histogram, so that any percentile can be
 * computed later; memory that does not grow with the log; a parser that is never the bottleneck.
 * Non-goals: percentiles, plots, knowledge of warm-up. The host does those from this file's output.
 *
 * Input. One line per transaction (pgbench's documentation, "Per-Transaction Logging"):
 *     client_id transaction_no time script_no time_epoch time_us [schedule_lag] [retries]
 * `time` is microseconds, or one of skipped, failed, serialization, deadlock. schedule_lag is there
 * with pgbench --rate, retries with --max-tries other than 1. A line of seven fields could be either,
 * so the caller says which fields there are; any other shape is malformed, counted and never guessed.
 * With --acks there is no log: pgbench_log/acks.c.
 *
 * Output. Little-endian, no padding. The same second may have several records (lines arrive late, as
 * pgbench hands its log over in blocks of 4 KiB): counts and sums add up, min and max combine.
 *     header   "BEDPGLOG", u32 version, u32 flags (1 schedule lag, 2 retries), u32 2048, u32 1024, u64 0
 *     record   u8 'S', u8 script, u8 series, u8 width, u32 buckets, i64 second, u64 x 12:
 *              transactions, sum, squares (low, high), min, max,
 *              skipped, failed, serialization, deadlock, retried, retries
 *              then u16 bucket x buckets (ascending), then count x buckets, each `width` (1, 2, 4) bytes
 *     trailer  u8 'T', u8 0 x 3, u32 length, u64 x 6: lines, transactions, malformed, truncated, files,
 *              bytes; then `length` bytes that quote the first malformed line; then "BEDPGEND"
 * Without the trailer the reader was killed. Times are microseconds. `second` is the second of
 * completion since the epoch. Series 0 is the latency as pgbench logs it; with schedule lag series 1
 * is the latency without the lag (what the database took) and series 2 the lag itself. The six
 * outcome counters stand in series 0 only. min and max mean nothing when transactions is 0.
 *
 * Buckets: pgbench_log/buckets.h.
 */
#define _GNU_SOURCE
#include "pgbench_log/options.h"
#include "pgbench_log/record.h"
#include "pgbench_log/table.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
    DEFAULT_PATIENCE_S = 10,
    DEFAULT_CHUNK_BYTES = 32 * 1024 * 1024,
};

static const char USAGE[] =
    "bedplate-pgbench-log --prefix PREFIX --output FILE [options]          follow a running pgbench\n"
    "bedplate-pgbench-log --once --output FILE [options] LOG [LOG ...]     read complete logs\n"
    "bedplate-pgbench-log --acks FD --clients N --output FILE [--warmup FILE]   time lines `ack CLIENT NUMBER`\n"
    "\n"
    "  --schedule-lag     lines have the schedule_lag field (pgbench --rate)\n"
    "  --retries          lines have the retries field (pgbench --max-tries other than 1)\n"
    "  --punch            give the log's space back once it is read (tmpfs: memory)\n"
    "  --patience-s N     seconds that a silent file may hold back a live line (10)\n"
    "  --threads N        with --once: threads (one for each core)\n"
    "  --chunk-bytes N    with --once: part of a file that one thread takes at a time (32 MiB)\n"
    "  --clients N        with --acks: clients are 0 to N - 1\n"
    "  --warmup FILE      with --acks: what comes before the first byte of standard input is counted there\n"
    "\n"
    "Following, it ends on SIGTERM, SIGINT, or a byte or the end of standard input: say so when pgbench\n"
    "has ended; what is in the files then is still read. (A signal in the first moments may come before it\n"
    "is ready and simply end it; the end of standard input cannot.) Standard output: `second transactions\n"
    "latency_sum_us latency_max_us` when a second is known: as soon as every file shows a later second\n"
    "(pgbench writes blocks of 4 KiB, about 110 transactions of one thread, so at 100 a second that is\n"
    "seconds late), at the latest N seconds of patience after it. A line for a second that had one adds\n"
    "to it; a second without a line had no transactions.\n"
    "With --acks also `begin` at the first line, `measure` at the first byte of standard input, and at the end of that\n"
    "`end ACKS SECONDS TOGETHER QUIET_S`: what was counted since the byte, how many lines came in one read with another\n"
    "of their client, the longest time without any.\n"
    "Exit status: 0 done, 1 cannot read or write, 2 the call is wrong, 3 the line on standard error is none of a writer's.\n";

static void __attribute__((noreturn)) usage_error(const char *reason)
{
    fprintf(stderr, "bedplate-pgbench-log: %s\n\n%s", reason, USAGE);
    exit(2);
}

static long positive(const char *text, const char *reason)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1)
        usage_error(reason);
    return value;
}

static struct options options_parse(int count, char **words)
{
    static const struct option names[] = {
        {"acks", required_argument, NULL, 'k'},       {"clients", required_argument, NULL, 'n'},
        {"warmup", required_argument, NULL, 'w'},
        {"prefix", required_argument, NULL, 'p'},     {"output", required_argument, NULL, 'o'},
        {"once", no_argument, NULL, '1'},             {"punch", no_argument, NULL, 'u'},
        {"schedule-lag", no_argument, NULL, 'l'},     {"retries", no_argument, NULL, 'r'},
        {"patience-s", required_argument, NULL, 'a'}, {"threads", required_argument, NULL, 't'},
        {"chunk-bytes", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.patience_s = DEFAULT_PATIENCE_S, .chunk_bytes = DEFAULT_CHUNK_BYTES, .acks = -1};
    for (int name; (name = getopt_long(count, words, "", names, NULL)) != -1;) {
        switch (name) {
        case 'p': options.prefix = optarg; break;
        case 'o': options.output = optarg; break;
        case '1': options.once = true; break;
        case 'u': options.punch = true; break;
        case 'l': options.flags |= FLAG_SCHEDULE_LAG; break;
        case 'r': options.flags |= FLAG_RETRIES; break;
        case 'a': options.patience_s = positive(optarg, "--patience-s takes whole seconds from 1"); break;
        case 't': options.threads = positive(optarg, "--threads takes a number from 1"); break;
        case 'c': options.chunk_bytes = (uint64_t)positive(optarg, "--chunk-bytes takes a number from 1"); break;
        case 'k': options.acks = (int)positive(optarg, "--acks takes the number of a descriptor"); break;
        case 'n': options.clients = (uint64_t)positive(optarg, "--clients takes a number from 1"); break;
        case 'w': options.warmup = optarg; break;
        case 'h': fputs(USAGE, stdout); exit(0);
        default: usage_error("the call is not understood");
        }
    }
    bool files = optind < count;
    if (options.output == NULL)
        usage_error("--output is missing");
    if (options.acks >= 0) {
        if (options.clients == 0 || options.once || options.prefix != NULL || files)
            usage_error("--acks takes --clients, and no logs");
        return options;
    }
    if (options.once && (options.prefix != NULL || options.punch || !files))
        usage_error("--once takes logs to read, and neither --prefix nor --punch");
    if (!options.once && (options.prefix == NULL || files))
        usage_error("without --once, --prefix is needed and no logs are named");
    return options;
}

/* pgbench opens a log for each thread, and the default limit of 1024 files is not far away. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int count, char **words)
{
    static struct output output;
    struct options options = options_parse(count, words);
    if (options.acks >= 0) {
        read_acks(&options, &output);
        return 0;
    }
    raise_file_limit();
    output_open(&output, options.output, options.flags);
    struct table *table = table_new(&output, options.flags);
    const struct totals *totals = &table->totals;
    table->totals.files = options.once ? read_once(&options, table, words + optind, (size_t)(count - optind))
                                       : follow(&options, table);
    output_finish(&output, totals, table->quote);
    fprintf(stderr, "bedplate-pgbench-log: %" PRIu64 " lines of %" PRIu64 " files, %" PRIu64 " malformed, %" PRIu64
            " cut at the end of a file", totals->lines, totals->files, totals->malformed, totals->truncated);
    if (table->live_lines_lost > 0)
        fprintf(stderr, ", %" PRIu64 " live lines that nobody took", table->live_lines_lost);
    fprintf(stderr, "%s%s\n", totals->malformed > 0 ? "; the first malformed one: " : "", table->quote);
    return 0;
}
