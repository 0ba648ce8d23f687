/* Writes the header, the records' bytes and the trailer; pgbench_log.c describes the format. */
#include "record.h"

#include "buckets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bedplate-pgbench-log: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(1); /* other threads may still be counting: no handlers, no half a trailer */
}

void output_flush(struct output *output)
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

void output_put(struct output *output, const void *data, size_t size)
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

void output_open(struct output *output, const char *path, unsigned flags)
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

void output_finish(struct output *output, const struct totals *totals, const char *quote)
{
    uint32_t quote_size = (uint32_t)strlen(quote);
    output_put(output, "T\0\0", 4);
    output_put_u32(output, quote_size);
    output_put_u64(output, totals->lines);
    output_put_u64(output, totals->transactions);
    output_put_u64(output, totals->malformed);
    output_put_u64(output, totals->truncated);
    output_put_u64(output, totals->files);
    output_put_u64(output, totals->bytes);
    output_put(output, quote, quote_size);
    output_put(output, "BEDPGEND", 8);
    output_flush(output);
    /* A full disk may show only here. A pipe or a terminal cannot be synced, and need not be. */
    if (fsync(output->fd) != 0 && errno != EINVAL && errno != EROFS)
        die("cannot write %s: %s; free space there or choose another --output", output->path, strerror(errno));
    if (close(output->fd) != 0)
        die("cannot write %s: %s; free space there or choose another --output", output->path, strerror(errno));
}
