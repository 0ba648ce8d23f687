/* The parser of pgbench's lines: strict, and fast enough never to be the bottleneck. */
#define _GNU_SOURCE
#include "parser.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER != __LITTLE_ENDIAN
#error "digits are taken eight at a time from a little-endian word"
#endif

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
        table->totals.transactions++;
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

void transaction_add(struct table *table, int64_t second, uint64_t latency_us)
{
    table->current = table_second(table, second);
    line_add(table, &(struct line){.outcome = COMPLETED, .latency = latency_us});
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

void line_reject(struct table *table, const struct source *source, uint64_t offset, const char *line,
                        size_t size)
{
    table->totals.malformed++;
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
const char *block_parse(struct table *table, const struct source *source, const char *block,
                               const char *at, const char *limit)
{
    while (at < limit) {
        const char *next = line_take(table, at);
        if (unlikely(next == NULL)) {
            next = (const char *)rawmemchr(at, '\n') + 1;
            line_reject(table, source, source->offset + (uint64_t)(at - block), at, (size_t)(next - at));
        }
        table->totals.lines++;
        at = next;
    }
    return at;
}
