/* The file that is written: its records, and how a failure to write ends the program. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FORMAT_VERSION = 1,
    FLAG_SCHEDULE_LAG = 1,
    FLAG_RETRIES = 2,
    QUOTE_BYTES = 400,
    OUTPUT_BYTES = 256 * 1024,
};

struct __attribute__((packed)) record {
    uint8_t kind, script, series, width;
    uint32_t buckets;
    int64_t second;
    uint64_t transactions, sum, squares_low, squares_high, min, max;
    uint64_t skipped, failed, serialization, deadlock, retried, retries;
};

struct output {
    const char *path;
    int fd;
    pthread_mutex_t mutex;
    size_t used;
    char buffer[OUTPUT_BYTES];
};

/* `lines` are all that end with a newline, the malformed ones too; `truncated` are last ones without it. */
struct totals {
    uint64_t lines, transactions, malformed, truncated, files, bytes;
};

void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...);
void output_flush(struct output *output);
void output_put(struct output *output, const void *data, size_t size);
void output_open(struct output *output, const char *path, unsigned flags);
void output_finish(struct output *output, const struct totals *totals, const char *quote);
