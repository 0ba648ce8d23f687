/* Cells: the counts of one second and one script. They are mapped, cleared and used again. */
#define _GNU_SOURCE
#include "table.h"

#include <string.h>
#include <sys/mman.h>

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

void cell_reset(const struct table *table, struct cell *cell)
{
    memset(cell->outcomes, 0, sizeof cell->outcomes);
    cell->retried = cell->retries = 0;
    for (unsigned i = 0; i < series_count(table); i++)
        series_reset(&cell->series[i]);
}

struct cell *cell_new(struct table *table)
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

void cell_write(const struct table *table, int64_t second, unsigned script, const struct cell *cell)
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
