/* What is known and not yet written: a ring of open seconds, with a cell for each script. */
#pragma once

#include "buckets.h"
#include "record.h"

#include <stdbool.h>

#define unlikely(x) __builtin_expect(!!(x), 0)

enum {
    SCRIPTS = 128, /* pgbench's own limit, MAX_SCRIPTS */
    SERIES = 3,
    OPEN_SECONDS = 4096, /* an hour: files of one run that are read one after another still merge */
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
    struct totals totals;
    uint64_t live_lines_lost;
    uint64_t quote_file, quote_offset;
    char quote[QUOTE_BYTES];
};

static inline unsigned series_count(const struct table *table)
{
    return table->flags & FLAG_SCHEDULE_LAG ? SERIES : 1;
}

void cell_reset(const struct table *table, struct cell *cell);
struct cell *cell_new(struct table *table);
void cell_write(const struct table *table, int64_t second, unsigned script, const struct cell *cell);
struct table *table_new(struct output *output, unsigned flags);
struct second *table_second(struct table *table, int64_t second);
void table_close_through(struct table *table, int64_t last);
void table_merge(struct table *into, const struct table *from);
