/* The JSON document: built in memory, so that nothing of it is written to a disk that is measured. */
#pragma once

#include "histogram.h"
#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One side of a test: its main loop, a reader, the writer or a process. `found` counts what a read found, `busy` what met a lock. */
struct side {
    uint64_t operations, found, busy, bytes, elapsed_ns, cpu_user_us, cpu_system_us;
    const char *latency_of;
    uint64_t latency_every; /* 0: not timed */
    struct histogram latency;
};

struct outcome {
    const struct test *test;
    bool complete, has_file;
    uint64_t prepare_ns, flush_ns, minor_faults, major_faults, data_size_bytes, data_allocated_bytes;
    bool flushed;
    struct side total;
    struct side *readers, *writer; /* NULL but in readwhilewriting; the readers are the processes in tpcb */
    uint64_t reader_count;
};

void document_begin(const struct options *options, uint64_t clock_read_ns);
struct session;
/* The session is still open: its engine is asked for its settings. */
void document_test(struct session *session, const struct outcome *outcome);
/* Writes it out; ends the program with status 1 where it cannot be written. */
void document_finish(int stop_signal);

/* What stands so far, for a handler that may not build anything: it changes only between tests. */
struct document_text {
    char *bytes;
    size_t used, size;
};
extern struct document_text document;
