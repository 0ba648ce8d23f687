/*
 * A write is logged and done to its disk when it is answered, so that the log has the order of completion, and a flush
 * stands behind those alone that were answered before it came. Flushes, discards and ranges of zeros are never late: whoever
 * asks for one has waited for what it concerns, or is to be found not to have.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 34
#include "late.h"

#include <fuse3/fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>

/* As many as the kernel keeps under way at once (files.c), and some that wait for theirs. */
enum { WRITES_MOST = 128 };
static const uint64_t NS = 1000000000u;

struct write {
    fuse_req_t request;
    struct device *device;
    char *data;
    size_t bytes;
    uint64_t at, issued, due_ns;
};

static struct write writes[WRITES_MOST];
static size_t count;
static uint64_t most_ns, chance = 0x9e3779b97f4a7c15u;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

/* Marsaglia's xorshift64 (Journal of Statistical Software 8, 14, 2003). */
static uint64_t draw(uint64_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % below;
}

void late_begin(uint64_t most_us) { most_ns = most_us * 1000; }

static struct write *first_due(void)
{
    struct write *first = count > 0 ? writes : NULL;
    for (struct write *write = writes; write < writes + count; write++)
        if (write->due_ns < first->due_ns)
            first = write;
    return first;
}

static void finish(struct recorder *recorder, struct write *write)
{
    int error = recorder_write(recorder, write->device, write->data, write->bytes, write->at, write->issued);
    if (error != 0)
        fuse_reply_err(write->request, error);
    else
        fuse_reply_write(write->request, write->bytes);
    free(write->data);
    *write = writes[--count];
}

bool late_take(fuse_req_t request, struct recorder *recorder, struct device *device, const char *data, size_t bytes,
               uint64_t at)
{
    if (most_ns == 0 || recorder->sealed || bytes == 0)
        return false;
    char *copy = malloc(bytes);
    if (copy == NULL)
        return false;
    if (count == WRITES_MOST)
        finish(recorder, first_due());
    memcpy(copy, data, bytes);
    writes[count++] = (struct write){request, device, copy, bytes, at, recorder->entries, now_ns() + draw(most_ns)};
    return true;
}

void late_finish_due(struct recorder *recorder)
{
    for (struct write *write; (write = first_due()) != NULL && write->due_ns <= now_ns();)
        finish(recorder, write);
}

void late_finish(struct recorder *recorder)
{
    for (struct write *write; (write = first_due()) != NULL;)
        finish(recorder, write);
}

bool late_next(struct timespec *left)
{
    const struct write *write = first_due();
    if (write == NULL)
        return false;
    uint64_t now = now_ns(), left_ns = write->due_ns > now ? write->due_ns - now : 0;
    *left = (struct timespec){(time_t)(left_ns / NS), (long)(left_ns % NS)};
    return true;
}
