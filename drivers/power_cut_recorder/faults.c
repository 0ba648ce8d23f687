/* Reads orders, and counts what they hit. */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A range takes up to 41 characters and a blank. */
enum { ORDER_BYTES_MOST = 64 + 42 * FAULT_RANGES_MOST };

static const char *const OPERATIONS[] = {
    [FAULT_WRITE] = "write", [FAULT_FLUSH] = "flush", [FAULT_READ] = "read",
};
static const char *const EFFECTS[] = {
    [FAULT_EIO] = "eio", [FAULT_ENOSPC] = "enospc", [FAULT_LOST] = "lost", [FAULT_MISDIRECTED] = "misdirected",
    [FAULT_UNREADABLE] = "unreadable",
};

static int find(const char *word, const char *const *names, int first, int count)
{
    for (int at = first; word != NULL && at < count; at++)
        if (strcmp(word, names[at]) == 0)
            return at;
    return -1;
}

static bool number(const char *word, char end, uint64_t *into, const char **rest)
{
    char *stopped;
    if (word == NULL || *word < '0' || *word > '9')
        return false;
    errno = 0;
    *into = strtoull(word, &stopped, 10);
    *rest = stopped + 1;
    return errno == 0 && *stopped == end;
}

/* The rest of a line that strtok_r(3) has begun; false where a range is none, or there are too many. */
static bool read_ranges(struct faults *faults, char **state)
{
    faults->count = 0;
    for (const char *word; (word = strtok_r(NULL, " ", state)) != NULL; faults->count++) {
        uint64_t from, bytes;
        if (faults->count == FAULT_RANGES_MOST || !number(word, '+', &from, &word) ||
            !number(word, '\0', &bytes, &word) || bytes == 0 || bytes > UINT64_MAX - from)
            return false;
        faults->ranges[faults->count] = (struct fault_range){from, from + bytes};
    }
    return true;
}

/* A lost or misdirected request is a write, only reads find what is unreadable, and no flush or read is short of space. */
static bool fits(int operation, int effect)
{
    if (effect == FAULT_UNREADABLE)
        return operation == FAULT_READ;
    return operation >= 0 && effect >= 0 && (operation == FAULT_WRITE || effect == FAULT_EIO);
}

static bool read_order(struct faults *faults, char *line)
{
    char *state;
    const char *word = strtok_r(line, " ", &state), *rest;
    if (word != NULL && strcmp(word, "clear") == 0) {
        faults->effect = FAULT_NONE;
        return strtok_r(NULL, " ", &state) == NULL;
    }
    if (word != NULL && strcmp(word, "ranges") == 0)
        return read_ranges(faults, &state) && faults->count > 0;
    faults->on_journal = word != NULL && strcmp(word, "journal") == 0;
    if (faults->on_journal)
        word = strtok_r(NULL, " ", &state);
    int operation = find(word, OPERATIONS, FAULT_WRITE, FAULT_READ + 1);
    int effect = find(strtok_r(NULL, " ", &state), EFFECTS, FAULT_EIO, FAULT_UNREADABLE + 1);
    if (!fits(operation, effect) || !number(strtok_r(NULL, " ", &state), '\0', &faults->left, &rest) ||
        !number(strtok_r(NULL, " ", &state), '\0', &faults->skip, &rest))
        return false;
    faults->operation = (enum fault_operation)operation;
    faults->effect = (enum fault_effect)effect;
    /* Of a disk without a place no write could make all readable again. */
    return read_ranges(faults, &state) && (effect != FAULT_UNREADABLE || faults->count > 0);
}

int faults_order(struct faults *faults, const char *text, size_t bytes)
{
    static char line[ORDER_BYTES_MOST + 1];
    static struct faults wanted;
    if (bytes > 0 && text[bytes - 1] == '\n')
        bytes--;
    if (bytes == 0 || bytes > ORDER_BYTES_MOST || memchr(text, '\n', bytes) != NULL || memchr(text, '\0', bytes) != NULL)
        return EINVAL;
    memcpy(line, text, bytes);
    line[bytes] = '\0';
    wanted = *faults;
    if (!read_order(&wanted, line))
        return EINVAL;
    *faults = wanted;
    return 0;
}

static bool touches(const struct faults *faults, uint64_t at, uint64_t bytes)
{
    if (faults->count == 0 || faults->operation == FAULT_FLUSH)
        return true;
    for (size_t number = 0; number < faults->count; number++)
        if (at < faults->ranges[number].until && faults->ranges[number].from < at + bytes)
            return true;
    return false;
}

/* A disk takes another sector for one that is written and cannot be read. What of a range lies on both sides stays as it is. */
static void made_readable(struct faults *faults, uint64_t at, uint64_t until)
{
    size_t kept = 0;
    for (size_t number = 0; number < faults->count; number++) {
        struct fault_range range = faults->ranges[number];
        if (at <= range.from && range.from < until)
            range.from = until < range.until ? until : range.until;
        else if (at < range.until && range.until <= until)
            range.until = at;
        if (range.from < range.until)
            faults->ranges[kept++] = range;
    }
    faults->count = kept;
    if (kept == 0)
        faults->effect = FAULT_NONE;
}

enum fault_effect faults_meet(struct faults *faults, enum fault_operation operation, uint64_t at, uint64_t bytes)
{
    enum fault_effect effect = faults->effect;
    if (effect == FAULT_UNREADABLE && operation == FAULT_WRITE)
        made_readable(faults, at, at + bytes);
    if (effect == FAULT_NONE || operation != faults->operation || !touches(faults, at, bytes))
        return FAULT_NONE;
    if (faults->skip > 0) {
        faults->skip--;
        return FAULT_NONE;
    }
    if (faults->hits++ == 0)
        faults->first = (struct fault_range){at, at + bytes};
    if (faults->left > 0 && --faults->left == 0)
        faults->effect = FAULT_NONE;
    return effect;
}
