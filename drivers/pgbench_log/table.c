/* The ring of open seconds: found, closed (written and forgotten), merged. */
#define _GNU_SOURCE
#include "table.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct table *table_new(struct output *output, unsigned flags)
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

struct second *table_second(struct table *table, int64_t second)
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
void table_close_through(struct table *table, int64_t last)
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

void table_merge(struct table *into, const struct table *from)
{
    for (unsigned slot = 0; slot < OPEN_SECONDS; slot++)
        for (unsigned script = 0; from->ring[slot] != NULL && script < SCRIPTS; script++)
            if (from->ring[slot]->cells[script] != NULL)
                cell_merge(into, from->ring[slot]->second, script, from->ring[slot]->cells[script]);
    into->totals.lines += from->totals.lines;
    into->totals.transactions += from->totals.transactions;
    into->totals.malformed += from->totals.malformed;
    into->totals.truncated += from->totals.truncated;
    if (from->quote_file < into->quote_file ||
        (from->quote_file == into->quote_file && from->quote_offset < into->quote_offset)) {
        into->quote_file = from->quote_file;
        into->quote_offset = from->quote_offset;
        memcpy(into->quote, from->quote, sizeof into->quote);
    }
}
