/*
 * bedplate-pgbench-log: reads pgbench's per-transaction logs while they grow.
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
 * Buckets. Below 2048 us a bucket is one microsecond. Above, every octave has 1024 equal buckets: the
 * width is under 0.1 % of the value, and 9000 us (a threshold that the reports use) is a bound.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if __BYTE_ORDER != __LITTLE_ENDIAN
#error "digits are taken eight at a time from a little-endian word"
#endif

#define unlikely(x) __builtin_expect(!!(x), 0)

enum {
    FORMAT_VERSION = 1,
    FLAG_SCHEDULE_LAG = 1,
    FLAG_RETRIES = 2,
    EXACT_LIMIT = 2048,
    SUB_BUCKETS = 1024,
    EXACT_BITS = 11,
    LATENCY_BITS = 40, /* 12.7 days: anything longer is a damaged line, not a latency */
    BUCKETS = EXACT_LIMIT + (LATENCY_BITS - EXACT_BITS) * SUB_BUCKETS,
    SCRIPTS = 128, /* pgbench's own limit, MAX_SCRIPTS */
    SERIES = 3,
    OPEN_SECONDS = 4096, /* an hour: files of one run that are read one after another still merge */
    BLOCK_BYTES = 256 * 1024, /* fits the second-level cache beside the histograms */
    PADDING = 32,             /* the parser may look this far past the last line */
    PUNCH_BYTES = 1024 * 1024,
    TICK_MS = 250,
    DEFAULT_PATIENCE_S = 10,
    DEFAULT_CHUNK_BYTES = 32 * 1024 * 1024,
    QUOTE_BYTES = 400,
    OUTPUT_BYTES = 256 * 1024,
};

enum outcome { COMPLETED, SKIPPED, FAILED, SERIALIZATION, DEADLOCK, OUTCOMES };

struct series {
    uint64_t count, sum, min, max;
    unsigned __int128 squares; /* one transaction of 72 minutes would overflow 64 bits */
    uint32_t buckets[BUCKETS]; /* untouched pages cost nothing: a cell is mapped, not allocated */
};

struct cell {
    struct cell *next_free;
    uint64_t outcomes[OUTCOMES]; /* [COMPLETED] is not used: series[0].count is that */
    uint64_t retried, retries;
    struct series series[]; /* 1, or SERIES with schedule lag */
};

struct second {
    int64_t second;
    struct cell *cells[SCRIPTS];
};

struct output {
    const char *path;
    int fd;
    pthread_mutex_t mutex;
    size_t used;
    char buffer[OUTPUT_BYTES];
};

/* What is known and not yet written. One per thread; the ring position is second % OPEN_SECONDS. */
struct table {
    struct output *output;
    unsigned flags;
    bool live; /* print a line on stdout when a second is closed */
    struct second *ring[OPEN_SECONDS];
    struct second *current; /* of the last line; most lines are of the same second */
    char current_text[16];  /* its ten digits and the space, as the log spells them */
    int64_t last_second;
    struct cell *free_cells;
    uint64_t lines, transactions, malformed, truncated, bytes, live_lines_lost;
    uint64_t quote_file, quote_offset;
    char quote[QUOTE_BYTES];
};

struct source {
    char *path;
    int fd;
    uint64_t number;  /* order of discovery: decides which malformed line was the first */
    uint64_t offset;  /* start of the first line that was not read yet */
    uint64_t end;     /* lines that start at or after this belong to another chunk */
    uint64_t punched; /* everything before was given back to the file system */
    bool skipping;    /* inside a line that is too long, or that belongs to the chunk before */
    int64_t last_second; /* of its last line; INT64_MIN before the first */
};

struct __attribute__((packed)) record {
    uint8_t kind, script, series, width;
    uint32_t buckets;
    int64_t second;
    uint64_t transactions, sum, squares_low, squares_high, min, max;
    uint64_t skipped, failed, serialization, deadlock, retried, retries;
};

struct options {
    const char *prefix, *output;
    bool punch, once;
    unsigned flags;
    long threads, patience_s;
    uint64_t chunk_bytes;
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bedplate-pgbench-log: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(1); /* other threads may still be counting: no handlers, no half a trailer */
}

/* ---- output ---- */

static void output_flush(struct output *output)
{
    size_t done = 0;
    while (done < output->used) {
        ssize_t written = write(output->fd, output->buffer + done, output->used - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            die("cannot write %s: %s; free space there or choose another --output", output->path,
                written < 0 ? strerror(errno) : "nothing was taken");
        done += (size_t)written;
    }
    output->used = 0;
}

static void output_put(struct output *output, const void *data, size_t size)
{
    const char *from = data;
    while (size > 0) {
        size_t part = OUTPUT_BYTES - output->used < size ? OUTPUT_BYTES - output->used : size;
        memcpy(output->buffer + output->used, from, part);
        output->used += part;
        from += part;
        size -= part;
        if (output->used == OUTPUT_BYTES)
            output_flush(output);
    }
}

static void output_put_u32(struct output *output, uint32_t value) { output_put(output, &value, sizeof value); }
static void output_put_u64(struct output *output, uint64_t value) { output_put(output, &value, sizeof value); }

static void output_open(struct output *output, const char *path, unsigned flags)
{
    output->path = path;
    output->used = 0;
    pthread_mutex_init(&output->mutex, NULL);
    output->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (output->fd < 0)
        die("cannot create %s: %s", path, strerror(errno));
    output_put(output, "BEDPGLOG", 8);
    output_put_u32(output, FORMAT_VERSION);
    output_put_u32(output, flags);
    output_put_u32(output, EXACT_LIMIT);
    output_put_u32(output, SUB_BUCKETS);
    output_put_u64(output, 0);
    output_flush(output);
}

static void output_finish(struct output *output, const struct table *table, uint64_t files)
{
    uint32_t quote_size = (uint32_t)strlen(table->quote);
    output_put(output, "T\0\0", 4);
    output_put_u32(output, quote_size);
    output_put_u64(output, table->lines);
    output_put_u64(output, table->transactions);
    output_put_u64(output, table->malformed);
    output_put_u64(output, table->truncated);
    output_put_u64(output, files);
    output_put_u64(output, table->bytes);
    output_put(output, table->quote, quote_size);
    output_put(output, "BEDPGEND", 8);
    output_flush(output);
    /* A full disk may show only here. A pipe or a terminal cannot be synced, and need not be. */
    if (fsync(output->fd) != 0 && errno != EINVAL && errno != EROFS)
        die("cannot write %s: %s; free space there or choose another --output", output->path, strerror(errno));
    if (close(output->fd) != 0)
        die("cannot write %s: %s; free space there or choose another --output", output->path, strerror(errno));
}

/* ---- buckets and cells ---- */

static inline uint32_t bucket_of(uint64_t value)
{
    if (value < EXACT_LIMIT)
        return (uint32_t)value;
    unsigned octave = 63u - (unsigned)__builtin_clzll(value) - EXACT_BITS;
    /* value >> (octave + 1) lies in [1024, 2048): its leading one is the octave, the rest the place. */
    return EXACT_LIMIT + octave * SUB_BUCKETS + (uint32_t)(value >> (octave + 1)) - SUB_BUCKETS;
}

static inline unsigned series_count(const struct table *table)
{
    return table->flags & FLAG_SCHEDULE_LAG ? SERIES : 1;
}

static void series_reset(struct series *series)
{
    if (series->count > 0) {
        uint32_t first = bucket_of(series->min), last = bucket_of(series->max);
        memset(series->buckets + first, 0, (last - first + 1) * sizeof *series->buckets);
    }
    series->count = series->sum = series->max = 0;
    series->squares = 0;
    series->min = UINT64_MAX;
}

static void cell_reset(const struct table *table, struct cell *cell)
{
    memset(cell->outcomes, 0, sizeof cell->outcomes);
    cell->retried = cell->retries = 0;
    for (unsigned i = 0; i < series_count(table); i++)
        series_reset(&cell->series[i]);
}

static struct cell *cell_new(struct table *table)
{
    struct cell *cell = table->free_cells;
    if (cell != NULL) {
        table->free_cells = cell->next_free;
        return cell;
    }
    size_t size = sizeof *cell + series_count(table) * sizeof cell->series[0];
    cell = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (cell == MAP_FAILED)
        die("out of memory for the counts of one second");
    madvise(cell, size, MADV_NOHUGEPAGE); /* a huge page would make all the untouched pages real */
    cell_reset(table, cell);
    return cell;
}

/* Collects the buckets in use; the narrowest width that holds the largest count halves the file. */
static uint32_t buckets_touched(const struct series *series, uint16_t *bucket, uint32_t *count, uint8_t *width)
{
    uint32_t used = 0, largest = 0;
    if (series->count > 0) {
        uint32_t last = bucket_of(series->max);
        for (uint32_t i = bucket_of(series->min); i <= last; i++) {
            if (series->buckets[i] == 0)
                continue;
            bucket[used] = (uint16_t)i;
            count[used++] = series->buckets[i];
            if (series->buckets[i] > largest)
                largest = series->buckets[i];
        }
    }
    *width = largest <= UINT8_MAX ? 1 : largest <= UINT16_MAX ? 2 : 4;
    return used;
}

static void cell_write(const struct table *table, int64_t second, unsigned script, const struct cell *cell)
{
    static _Thread_local uint16_t bucket[BUCKETS];
    static _Thread_local uint32_t count[BUCKETS];
    struct output *output = table->output;
    for (unsigned i = 0; i < series_count(table); i++) {
        const struct series *series = &cell->series[i];
        struct record record = {.kind = 'S', .script = (uint8_t)script, .series = (uint8_t)i, .second = second};
        record.buckets = buckets_touched(series, bucket, count, &record.width);
        record.transactions = series->count;
        record.sum = series->sum;
        record.squares_low = (uint64_t)series->squares;
        record.squares_high = (uint64_t)(series->squares >> 64);
        record.min = series->count > 0 ? series->min : 0;
        record.max = series->max;
        if (i == 0) {
            record.skipped = cell->outcomes[SKIPPED];
            record.failed = cell->outcomes[FAILED];
            record.serialization = cell->outcomes[SERIALIZATION];
            record.deadlock = cell->outcomes[DEADLOCK];
            record.retried = cell->retried;
            record.retries = cell->retries;
        }
        pthread_mutex_lock(&output->mutex);
        output_put(output, &record, sizeof record);
        output_put(output, bucket, record.buckets * sizeof *bucket);
        for (uint32_t j = 0; j < record.buckets; j++)
            output_put(output, &count[j], record.width); /* little-endian: the low bytes come first */
        pthread_mutex_unlock(&output->mutex);
    }
}

/* ---- the table of open seconds ---- */

static struct table *table_new(struct output *output, unsigned flags)
{
    struct table *table = calloc(1, sizeof *table);
    if (table == NULL)
        die("out of memory for the table of seconds");
    table->output = output;
    table->flags = flags;
    table->quote_file = UINT64_MAX;
    return table;
}

/* A reader of the live lines that is slow or gone must never hold back the log, or memory would grow. */
static void live_line(struct table *table, int64_t second, uint64_t transactions, uint64_t sum, uint64_t max)
{
    char line[128];
    struct pollfd writable = {.fd = STDOUT_FILENO, .events = POLLOUT};
    int size = snprintf(line, sizeof line, "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", second,
                        transactions, sum, max);
    if (poll(&writable, 1, 0) != 1 || !(writable.revents & POLLOUT) || write(STDOUT_FILENO, line, (size_t)size) != size)
        table->live_lines_lost++;
}

/* Writes what is known of a second and forgets it; lines that come later make another record. */
static void second_close(struct table *table, unsigned slot)
{
    struct second *second = table->ring[slot];
    uint64_t transactions = 0, sum = 0, max = 0;
    for (unsigned script = 0; script < SCRIPTS; script++) {
        struct cell *cell = second->cells[script];
        if (cell == NULL)
            continue;
        transactions += cell->series[0].count;
        sum += cell->series[0].sum;
        if (cell->series[0].max > max)
            max = cell->series[0].max;
        cell_write(table, second->second, script, cell);
        cell_reset(table, cell);
        cell->next_free = table->free_cells;
        table->free_cells = cell;
    }
    if (table->live)
        live_line(table, second->second, transactions, sum, max);
    if (table->current == second)
        table->current = NULL;
    table->ring[slot] = NULL;
    free(second);
}

static struct second *table_second(struct table *table, int64_t second)
{
    unsigned slot = (unsigned)(second % OPEN_SECONDS);
    if (table->ring[slot] != NULL && table->ring[slot]->second != second)
        second_close(table, slot);
    if (table->ring[slot] == NULL) {
        table->ring[slot] = calloc(1, sizeof *table->ring[slot]);
        if (table->ring[slot] == NULL)
            die("out of memory for one more second");
        table->ring[slot]->second = second;
    }
    return table->ring[slot];
}

static int by_second(const void *left, const void *right)
{
    const struct second *const *a = left, *const *b = right;
    return ((*a)->second > (*b)->second) - ((*a)->second < (*b)->second);
}

/* Closes every second up to and including `last`, oldest first. */
static void table_close_through(struct table *table, int64_t last)
{
    struct second *open[OPEN_SECONDS];
    unsigned count = 0;
    for (unsigned slot = 0; slot < OPEN_SECONDS; slot++)
        if (table->ring[slot] != NULL && table->ring[slot]->second <= last)
            open[count++] = table->ring[slot];
    qsort(open, count, sizeof *open, by_second);
    for (unsigned i = 0; i < count; i++)
        second_close(table, (unsigned)(open[i]->second % OPEN_SECONDS));
}

static void series_merge(struct series *into, const struct series *from)
{
    if (from->count == 0)
        return;
    uint32_t last = bucket_of(from->max);
    for (uint32_t bucket = bucket_of(from->min); bucket <= last; bucket++)
        into->buckets[bucket] += from->buckets[bucket];
    into->count += from->count;
    into->sum += from->sum;
    into->squares += from->squares;
    into->min = from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
}

static void cell_merge(struct table *table, int64_t second, unsigned script, const struct cell *from)
{
    struct second *into = table_second(table, second);
    if (into->cells[script] == NULL)
        into->cells[script] = cell_new(table);
    struct cell *cell = into->cells[script];
    if (unlikely(cell->series[0].count + from->series[0].count > UINT32_MAX)) {
        cell_write(table, second, script, cell); /* a bucket could overflow; records add up */
        cell_reset(table, cell);
    }
    for (unsigned i = 0; i < series_count(table); i++)
        series_merge(&cell->series[i], &from->series[i]);
    for (unsigned i = 0; i < OUTCOMES; i++)
        cell->outcomes[i] += from->outcomes[i];
    cell->retried += from->retried;
    cell->retries += from->retries;
}

static void table_merge(struct table *into, const struct table *from)
{
    for (unsigned slot = 0; slot < OPEN_SECONDS; slot++)
        for (unsigned script = 0; from->ring[slot] != NULL && script < SCRIPTS; script++)
            if (from->ring[slot]->cells[script] != NULL)
                cell_merge(into, from->ring[slot]->second, script, from->ring[slot]->cells[script]);
    into->lines += from->lines;
    into->transactions += from->transactions;
    into->malformed += from->malformed;
    into->truncated += from->truncated;
    if (from->quote_file < into->quote_file ||
        (from->quote_file == into->quote_file && from->quote_offset < into->quote_offset)) {
        into->quote_file = from->quote_file;
        into->quote_offset = from->quote_offset;
        memcpy(into->quote, from->quote, sizeof into->quote);
    }
}

/* ---- the parser ---- */

/* How many of the next eight characters are digits before the first other one. Borrows can only
 * reach characters after the first other one, so the answer is right for any input. */
static inline unsigned digits_at(const char *text, uint64_t *word)
{
    memcpy(word, text, 8);
    *word ^= UINT64_C(0x3030303030303030);
    uint64_t other = ((*word + UINT64_C(0x7676767676767676)) | *word) & UINT64_C(0x8080808080808080);
    return other == 0 ? 8 : (unsigned)__builtin_ctzll(other) / 8;
}

static const char *number_long(const char *text, uint64_t *value)
{
    unsigned length = 0;
    for (*value = 0; text[length] >= '0' && text[length] <= '9'; length++) {
        if (length == 18) /* more cannot be meant, and would overflow */
            return NULL;
        *value = *value * 10 + (uint64_t)(text[length] - '0');
    }
    return text + length;
}

/* A decimal number; returns what follows it, or NULL when there is none. Up to seven digits, that
 * is nearly always, without a loop: three multiplications add neighbours, pairs and quads. */
static inline const char *number_at(const char *text, uint64_t *value)
{
    uint64_t word;
    unsigned length = digits_at(text, &word);
    if (unlikely(length == 0))
        return NULL;
    if (unlikely(length == 8))
        return number_long(text, value);
    word <<= 64 - 8 * length;
    word = (word * 10) + (word >> 8);
    word = (((word & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064)) +
            (((word >> 16) & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001))) >> 32;
    *value = word;
    return text + length;
}

static inline const char *number_skip(const char *text)
{
    uint64_t word;
    unsigned length = digits_at(text, &word);
    if (unlikely(length == 0))
        return NULL;
    if (unlikely(length == 8))
        return number_long(text, &word);
    return text + length;
}

static const char *outcome_at(const char *text, enum outcome *outcome)
{
    static const char *const words[OUTCOMES] = {"", "skipped", "failed", "serialization", "deadlock"};
    for (unsigned i = SKIPPED; i < OUTCOMES; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0) {
            *outcome = (enum outcome)i;
            return text + strlen(words[i]);
        }
    return NULL;
}

static inline void series_add(struct series *series, uint64_t value)
{
    series->buckets[bucket_of(value)]++;
    series->count++;
    series->sum += value;
    series->squares += (unsigned __int128)value * value;
    if (value < series->min)
        series->min = value;
    if (value > series->max)
        series->max = value;
}

struct line {
    enum outcome outcome;
    uint64_t latency, script, second, lag, retries;
};

static void line_add(struct table *table, const struct line *line)
{
    struct cell *cell = table->current->cells[line->script];
    if (unlikely(cell == NULL))
        cell = table->current->cells[line->script] = cell_new(table);
    if (unlikely(line->outcome != COMPLETED)) {
        cell->outcomes[line->outcome]++; /* these have no latency and no lag: pgbench logs 0 */
    } else {
        if (unlikely(cell->series[0].count == UINT32_MAX)) {
            cell_write(table, table->current->second, (unsigned)line->script, cell);
            cell_reset(table, cell);
        }
        table->transactions++;
        series_add(&cell->series[0], line->latency);
        if (table->flags & FLAG_SCHEDULE_LAG) {
            series_add(&cell->series[1], line->latency - line->lag);
            series_add(&cell->series[2], line->lag);
        }
    }
    if ((table->flags & FLAG_RETRIES) && line->outcome != SKIPPED) { /* as pgbench counts them */
        cell->retried += line->retries > 0;
        cell->retries += line->retries;
    }
}

/* The fields after the completion time; returns the newline, or NULL. */
static inline const char *optional_fields(unsigned flags, const char *at, struct line *line)
{
    if (flags & FLAG_SCHEDULE_LAG)
        if (*at != ' ' || (at = number_at(at + 1, &line->lag)) == NULL ||
            (line->outcome == COMPLETED && line->lag > line->latency))
            return NULL;
    if (flags & FLAG_RETRIES)
        if (*at != ' ' || (at = number_at(at + 1, &line->retries)) == NULL)
            return NULL;
    return *at == '\n' ? at : NULL;
}

/* Takes one line; returns the start of the next, or NULL when this one is malformed. Every field must
 * be followed by exactly what pgbench prints, so this never runs past the newline. */
static inline const char *line_take(struct table *table, const char *at)
{
    struct line line = {.outcome = COMPLETED, .latency = 0};
    uint64_t microseconds;
    if ((at = number_skip(at)) == NULL || *at != ' ' || (at = number_skip(at + 1)) == NULL || *at != ' ')
        return NULL;
    const char *time = at + 1;
    at = number_at(time, &line.latency);
    if (unlikely(at == NULL))
        at = outcome_at(time, &line.outcome);
    if (at == NULL || *at != ' ' || line.latency >> LATENCY_BITS != 0)
        return NULL;
    if ((at = number_at(at + 1, &line.script)) == NULL || *at != ' ' || line.script >= SCRIPTS)
        return NULL;
    const char *epoch = at + 1;
    bool same = table->current != NULL && table->current_text[0] != '\0' &&
                memcmp(epoch, table->current_text, 11) == 0;
    if (same)
        at = epoch + 10;
    else if ((at = number_at(epoch, &line.second)) == NULL || *at != ' ')
        return NULL;
    const char *end = at;
    if ((at = number_at(at + 1, &microseconds)) == NULL || microseconds > 999999)
        return NULL;
    if ((at = optional_fields(table->flags, at, &line)) == NULL)
        return NULL;
    if (unlikely(!same)) {
        table->current = table_second(table, (int64_t)line.second);
        table->last_second = (int64_t)line.second;
        /* Another length than ten digits is never found again by the comparison: slow, but right. */
        memset(table->current_text, 0, sizeof table->current_text);
        if (end - epoch == 10)
            memcpy(table->current_text, epoch, 11);
    }
    line_add(table, &line);
    return at + 1;
}

static void line_reject(struct table *table, const struct source *source, uint64_t offset, const char *line,
                        size_t size)
{
    table->malformed++;
    if (source->number > table->quote_file ||
        (source->number == table->quote_file && offset >= table->quote_offset))
        return;
    table->quote_file = source->number;
    table->quote_offset = offset;
    int used = snprintf(table->quote, QUOTE_BYTES - 200, "%s, byte %" PRIu64 ": ", source->path, offset);
    size_t at = used < QUOTE_BYTES - 200 ? (size_t)used : QUOTE_BYTES - 201;
    for (size_t i = 0; i < size && line[i] != '\n' && at < QUOTE_BYTES - 1; i++)
        table->quote[at++] = line[i] >= ' ' && line[i] <= '~' ? line[i] : '?';
    table->quote[at] = '\0';
}

/* Parses the lines that start before `limit`; each of them is complete. Returns the next line. */
static const char *block_parse(struct table *table, const struct source *source, const char *block,
                               const char *at, const char *limit)
{
    while (at < limit) {
        const char *next = line_take(table, at);
        if (unlikely(next == NULL)) {
            next = (const char *)rawmemchr(at, '\n') + 1;
            line_reject(table, source, source->offset + (uint64_t)(at - block), at, (size_t)(next - at));
        }
        table->lines++;
        at = next;
    }
    return at;
}

/* ---- following one file ---- */

static char *block_new(void)
{
    char *block = calloc(1, BLOCK_BYTES + PADDING);
    if (block == NULL)
        die("out of memory for reading");
    return block;
}

/* Gives back what was read: on tmpfs that is memory, and a long run must not be bounded by it. */
static void source_punch(struct source *source)
{
    const uint64_t page = 4096;
    uint64_t until = source->offset / page * page;
    if (until - source->punched < PUNCH_BYTES)
        return;
    if (fallocate(source->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)source->punched,
                  (off_t)(until - source->punched)) != 0)
        die("cannot punch a hole into %s: %s; put the log on tmpfs or leave out --punch", source->path,
            strerror(errno));
    source->punched = until;
}

/* Takes what one block holds; false when there is no complete line (or nothing) left in it. */
static bool source_take(struct source *source, struct table *table, const char *block, size_t size)
{
    const char *at = block, *last = memrchr(block, '\n', size);
    if (last == NULL) {
        if (size == BLOCK_BYTES && !source->skipping) {
            line_reject(table, source, source->offset, block, size); /* no line of pgbench is that long */
            table->lines++;
            source->skipping = true;
        }
        source->offset += source->skipping ? size : 0;
        return source->skipping;
    }
    if (source->skipping) {
        at = (const char *)memchr(block, '\n', size) + 1;
        source->skipping = false;
    }
    uint64_t room = source->end - source->offset;
    const char *limit = room < (uint64_t)(last + 1 - block) ? block + room : last + 1;
    uint64_t before = table->lines - table->malformed;
    at = block_parse(table, source, block, at, limit);
    if (table->lines - table->malformed != before)
        source->last_second = table->last_second;
    source->offset += (uint64_t)(at - block);
    return true;
}

/* Reads all complete lines that there are now. */
static void source_read(struct source *source, struct table *table, char *block, bool punch)
{
    while (source->offset < source->end) {
        ssize_t size = pread(source->fd, block, BLOCK_BYTES, (off_t)source->offset);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            die("cannot read %s: %s", source->path, strerror(errno));
        memset(block + size, 0, PADDING); /* the parser's look ahead must not see an older block */
        bool taken = size > 0 && source_take(source, table, block, (size_t)size);
        if (punch)
            source_punch(source);
        if (!taken || size < BLOCK_BYTES)
            break;
    }
}

/* At the end: a last line without its newline was cut when pgbench died. Its figures may be cut too. */
static void source_finish(const struct source *source, struct table *table)
{
    struct stat status;
    if (fstat(source->fd, &status) != 0)
        die("cannot read %s: %s", source->path, strerror(errno));
    if ((uint64_t)status.st_size < source->offset && source->offset < source->end)
        die("%s became shorter while it was read; was it reused by another pgbench?", source->path);
    if (source->offset < source->end && (uint64_t)status.st_size > source->offset && !source->skipping)
        table->truncated++;
}

static void source_open(struct source *source, const char *path, uint64_t number, bool writable)
{
    *source = (struct source){.number = number, .end = UINT64_MAX, .last_second = INT64_MIN};
    source->path = strdup(path);
    source->fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    struct stat status;
    if (source->path == NULL || source->fd < 0 || fstat(source->fd, &status) != 0)
        die("cannot open %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        die("%s is not a regular file; a pipe would stall or kill pgbench, so its log must be a file", path);
}

/* ---- live: all files of one prefix ---- */

struct follower {
    const struct options *options;
    struct table *table;
    char *directory;
    const char *base;
    char *block;
    struct source *sources;
    size_t count;
    int inotify, signals;
};

/* PREFIX.PID or PREFIX.PID.THREAD, as pgbench names its logs; other files stand beside them. */
static bool follower_matches(const struct follower *follower, const char *name)
{
    size_t length = strlen(follower->base);
    if (strncmp(name, follower->base, length) != 0)
        return false;
    name += length;
    for (unsigned part = 0; part < 2; part++) {
        size_t digits = *name == '.' ? strspn(name + 1, "0123456789") : 0;
        if (digits == 0)
            return false;
        name += 1 + digits;
        if (*name == '\0')
            return true;
    }
    return false;
}

static void follower_scan(struct follower *follower)
{
    DIR *directory = opendir(follower->directory);
    if (directory == NULL)
        die("cannot list %s: %s", follower->directory, strerror(errno));
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[PATH_MAX];
        if (!follower_matches(follower, entry->d_name))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", follower->directory, entry->d_name) >= (int)sizeof path)
            die("the path of %s in %s is too long", entry->d_name, follower->directory);
        size_t known = 0;
        while (known < follower->count && strcmp(follower->sources[known].path, path) != 0)
            known++;
        if (known < follower->count)
            continue;
        struct source *grown = realloc(follower->sources, (follower->count + 1) * sizeof *grown);
        if (grown == NULL)
            die("out of memory for one more log file");
        follower->sources = grown;
        source_open(&grown[follower->count], path, follower->count, follower->options->punch);
        follower->count++;
    }
    closedir(directory);
}

/*
 * The last second that can be closed. Within one file lines are in the order of completion, so a file
 * that shows a line of second S has shown everything before S. A file that shows nothing (its clients
 * stall or are gone) holds the others back for `patience` seconds only; its lines make late records.
 */
static int64_t follower_horizon(const struct follower *follower)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t overdue = (int64_t)now.tv_sec - follower->options->patience_s - 1, horizon = INT64_MAX;
    for (size_t i = 0; i < follower->count; i++) {
        int64_t last = follower->sources[i].last_second;
        int64_t bound = last != INT64_MIN && last - 1 > overdue ? last - 1 : overdue;
        horizon = bound < horizon ? bound : horizon;
    }
    return horizon;
}

static void follower_open(struct follower *follower)
{
    const char *prefix = follower->options->prefix, *slash = strrchr(prefix, '/');
    follower->base = slash == NULL ? prefix : slash + 1;
    follower->directory = slash == NULL ? strdup(".") : strndup(prefix, slash == prefix ? 1 : (size_t)(slash - prefix));
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN); /* whoever watches the live lines may go; the record goes on */
    follower->signals = signalfd(-1, &stop, SFD_CLOEXEC);
    follower->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (follower->signals < 0 || follower->inotify < 0)
        die("cannot wait for events: %s", strerror(errno));
    /* The watch comes before the first scan, so that no file can slip between the two. */
    if (inotify_add_watch(follower->inotify, follower->directory, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
        die("cannot watch the directory %s: %s", follower->directory, strerror(errno));
    follower_scan(follower);
}

static void follower_run(struct follower *follower)
{
    struct pollfd events[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                              {.fd = follower->signals, .events = POLLIN},
                              {.fd = follower->inotify, .events = POLLIN}};
    for (bool stop = false; !stop;) {
        /* Files are looked at four times a second, not at every write: pgbench writes hundreds of
         * blocks a second, and waking for each would cost the machine that is measured. */
        if (poll(events, 3, TICK_MS) < 0 && errno != EINTR)
            die("cannot wait for events: %s", strerror(errno));
        stop = events[0].revents != 0 || events[1].revents != 0;
        if (events[2].revents != 0) {
            char ignored[4096];
            while (read(follower->inotify, ignored, sizeof ignored) > 0)
                continue;
        }
        if (stop || events[2].revents != 0)
            follower_scan(follower);
        for (size_t i = 0; i < follower->count; i++)
            source_read(&follower->sources[i], follower->table, follower->block, follower->options->punch);
        table_close_through(follower->table, follower_horizon(follower));
        output_flush(follower->table->output);
    }
}

static uint64_t follow(const struct options *options, struct table *table)
{
    struct follower follower = {.options = options, .table = table, .block = block_new()};
    table->live = true;
    follower_open(&follower);
    follower_run(&follower);
    for (size_t i = 0; i < follower.count; i++) {
        source_finish(&follower.sources[i], table);
        table->bytes += follower.sources[i].offset;
    }
    table_close_through(table, INT64_MAX);
    return follower.count;
}

/* ---- once: complete files, on several cores ---- */

struct chunk {
    const char *path;
    uint64_t number, begin, end;
};

struct reading {
    const struct chunk *chunks;
    size_t count;
    atomic_size_t next;
};

struct worker {
    pthread_t thread;
    struct reading *reading;
    struct table *table;
};

static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    char *block = block_new();
    for (;;) {
        size_t index = atomic_fetch_add(&worker->reading->next, 1);
        if (index >= worker->reading->count)
            break;
        const struct chunk *chunk = &worker->reading->chunks[index];
        struct source source;
        source_open(&source, chunk->path, chunk->number, false);
        /* A line belongs to the chunk that it starts in. Starting one byte early and skipping to the
         * first newline finds a line that starts exactly at the boundary. */
        source.skipping = chunk->begin > 0;
        source.offset = chunk->begin > 0 ? chunk->begin - 1 : 0;
        source.end = chunk->end;
        source_read(&source, worker->table, block, false);
        source_finish(&source, worker->table);
        close(source.fd);
        free(source.path);
    }
    free(block);
    return NULL;
}

static struct chunk *chunks_of(const struct options *options, char *const *paths, size_t files, size_t *count,
                               uint64_t *bytes)
{
    struct chunk *chunks = NULL;
    for (size_t file = 0; file < files; file++) {
        struct stat status;
        if (stat(paths[file], &status) != 0)
            die("cannot open %s: %s", paths[file], strerror(errno));
        uint64_t size = (uint64_t)status.st_size;
        *bytes += size;
        for (uint64_t begin = 0; begin == 0 || begin < size; begin += options->chunk_bytes) {
            chunks = realloc(chunks, (*count + 1) * sizeof *chunks);
            if (chunks == NULL)
                die("out of memory for the list of chunks");
            uint64_t end = begin + options->chunk_bytes < size ? begin + options->chunk_bytes : UINT64_MAX;
            chunks[(*count)++] = (struct chunk){paths[file], file, begin, end};
        }
    }
    return chunks;
}

static size_t useful_threads(const struct options *options, size_t chunks)
{
    cpu_set_t cores;
    size_t threads = 1;
    if (options->threads > 0)
        threads = (size_t)options->threads;
    else if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        threads = (size_t)CPU_COUNT(&cores);
    return threads < chunks ? threads : chunks;
}

static uint64_t read_once(const struct options *options, struct table *table, char *const *paths, size_t files)
{
    size_t count = 0;
    struct reading reading = {.chunks = chunks_of(options, paths, files, &count, &table->bytes)};
    reading.count = count;
    size_t threads = useful_threads(options, count);
    struct worker *workers = calloc(threads, sizeof *workers);
    if (workers == NULL)
        die("out of memory for %zu threads", threads);
    for (size_t i = 0; i < threads; i++) {
        workers[i].reading = &reading;
        workers[i].table = i == 0 ? table : table_new(table->output, table->flags);
        if (i > 0 && pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]) != 0)
            die("cannot start a thread; try --threads 1");
    }
    worker_run(&workers[0]);
    for (size_t i = 1; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    for (size_t i = 1; i < threads; i++)
        table_merge(table, workers[i].table);
    table_close_through(table, INT64_MAX);
    return files;
}

/* ---- the command line ---- */

static const char USAGE[] =
    "bedplate-pgbench-log --prefix PREFIX --output FILE [options]          follow a running pgbench\n"
    "bedplate-pgbench-log --once --output FILE [options] LOG [LOG ...]     read complete logs\n"
    "\n"
    "  --schedule-lag     lines have the schedule_lag field (pgbench --rate)\n"
    "  --retries          lines have the retries field (pgbench --max-tries other than 1)\n"
    "  --punch            give the log's space back once it is read (tmpfs: memory)\n"
    "  --patience-s N     seconds that a silent file may hold back a live line (10)\n"
    "  --threads N        with --once: threads (one for each core)\n"
    "  --chunk-bytes N    with --once: part of a file that one thread takes at a time (32 MiB)\n"
    "\n"
    "Following, it ends on SIGTERM, SIGINT, or a byte or the end of standard input: say so when pgbench\n"
    "has ended; what is in the files then is still read. Standard output: `second transactions\n"
    "latency_sum_us latency_max_us` when a second is known: as soon as every file shows a later second\n"
    "(pgbench writes blocks of 4 KiB, about 110 transactions of one thread, so at 100 a second that is\n"
    "seconds late), at the latest N seconds of patience after it. A line for a second that had one adds\n"
    "to it; a second without a line had no transactions.\n"
    "Exit status: 0 done, 1 cannot read or write, 2 the call is wrong.\n";

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
        {"prefix", required_argument, NULL, 'p'},     {"output", required_argument, NULL, 'o'},
        {"once", no_argument, NULL, '1'},             {"punch", no_argument, NULL, 'u'},
        {"schedule-lag", no_argument, NULL, 'l'},     {"retries", no_argument, NULL, 'r'},
        {"patience-s", required_argument, NULL, 'a'}, {"threads", required_argument, NULL, 't'},
        {"chunk-bytes", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.patience_s = DEFAULT_PATIENCE_S, .chunk_bytes = DEFAULT_CHUNK_BYTES};
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
        case 'h': fputs(USAGE, stdout); exit(0);
        default: usage_error("the call is not understood");
        }
    }
    bool files = optind < count;
    if (options.output == NULL)
        usage_error("--output is missing");
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
    raise_file_limit();
    output_open(&output, options.output, options.flags);
    struct table *table = table_new(&output, options.flags);
    uint64_t files = options.once ? read_once(&options, table, words + optind, (size_t)(count - optind))
                                  : follow(&options, table);
    output_finish(&output, table, files);
    fprintf(stderr, "bedplate-pgbench-log: %" PRIu64 " lines of %" PRIu64 " files, %" PRIu64 " malformed, %" PRIu64
            " cut at the end of a file", table->lines, files, table->malformed, table->truncated);
    if (table->live_lines_lost > 0)
        fprintf(stderr, ", %" PRIu64 " live lines that nobody took", table->live_lines_lost);
    fprintf(stderr, "%s%s\n", table->malformed > 0 ? "; the first malformed one: " : "", table->quote);
    return 0;
}
