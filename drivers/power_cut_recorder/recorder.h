/* The disks and their log; knows nothing of FUSE. */
#pragma once

#include "faults.h"
#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DISK_DEVICE, JOURNAL_DEVICE, DEVICES, SECTOR_BYTES = 512, MARK_BYTES_MAX = 468, STATUS_BYTES = 4096 };

struct device {
    const char *name;
    int file;
    uint64_t bytes; /* 0: there is none */
    uint64_t writes, write_bytes, flushes, discards, reads, read_bytes;
};

/* Of requests that were answered at a moment of their own (queue.h). */
struct lateness {
    uint64_t served, late, due_ns, late_ns, late_ns_max; /* late: by more than a twentieth of what they should take, due_ns */
};

struct recorder {
    struct device devices[DEVICES];
    const char *directory;
    int log;
    uint64_t log_bytes, log_limit_bytes, entries, marks;
    bool has_log; /* without one it is sealed from the beginning */
    bool sealed, memory_locked, io_flusher, real_time;
    struct lateness lateness;
    char failure[512]; /* empty: none */
    struct faults faults; /* of one device at a time */
};

/* False, with a reason on standard error, where the files cannot be made. */
bool recorder_open(struct recorder *recorder, const struct options *options);

/* Each gives 0 or an errno. Reads beyond the end are short by the caller's doing. */
int recorder_read(struct recorder *recorder, struct device *device, char *into, size_t bytes, uint64_t at);
/* `issued` is how many entries the log had when the write was handed over: `entries` where it is answered at once. */
int recorder_write(struct recorder *recorder, struct device *device, const char *data, size_t bytes, uint64_t at,
                   uint64_t issued);
int recorder_flush(struct recorder *recorder, struct device *device);
int recorder_discard(struct recorder *recorder, struct device *device, uint64_t bytes, uint64_t at);
int recorder_zero(struct recorder *recorder, struct device *device, uint64_t bytes, uint64_t at);
/* One mark for each line; EINVAL for an empty one or one that is too long, with those before it logged. */
int recorder_mark(struct recorder *recorder, const char *text, size_t bytes);

/* The log is whole and takes no more; safe to repeat. */
void recorder_seal(struct recorder *recorder);
/* The document, with its line's end. */
void recorder_status(const struct recorder *recorder, char text[STATUS_BYTES]);
