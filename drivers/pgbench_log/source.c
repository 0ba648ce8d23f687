/* Reads whole lines from a file that may still grow, and gives back what was read. */
#define _GNU_SOURCE
#include "source.h"

#include "parser.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 256 * 1024, /* fits the second-level cache beside the histograms */
    PADDING = 32,             /* the parser may look this far past the last line */
    PUNCH_BYTES = 1024 * 1024,
};

char *block_new(void)
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
            table->totals.lines++;
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
    uint64_t before = table->totals.lines - table->totals.malformed;
    at = block_parse(table, source, block, at, limit);
    if (table->totals.lines - table->totals.malformed != before)
        source->last_second = table->last_second;
    source->offset += (uint64_t)(at - block);
    return true;
}

/* Reads all complete lines that there are now. */
void source_read(struct source *source, struct table *table, char *block, bool punch)
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
void source_finish(const struct source *source, struct table *table)
{
    struct stat status;
    if (fstat(source->fd, &status) != 0)
        die("cannot read %s: %s", source->path, strerror(errno));
    if ((uint64_t)status.st_size < source->offset && source->offset < source->end)
        die("%s became shorter while it was read; was it reused by another pgbench?", source->path);
    if (source->offset < source->end && (uint64_t)status.st_size > source->offset && !source->skipping)
        table->totals.truncated++;
}

void source_open(struct source *source, const char *path, uint64_t number, bool writable)
{
    *source = (struct source){.number = number, .end = UINT64_MAX, .last_second = INT64_MIN};
    source->path = strdup(path);
    /* O_NONBLOCK: opening a pipe that nobody writes to would wait for ever, before it can be refused. */
    source->fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (source->path == NULL || source->fd < 0 || fstat(source->fd, &status) != 0)
        die("cannot open %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        die("%s is not a regular file; a pipe would stall or kill pgbench, so its log must be a file", path);
}
