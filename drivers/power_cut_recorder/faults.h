/* What the disk answers otherwise than it should, by order. Knows nothing of files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault_operation { FAULT_WRITE, FAULT_FLUSH, FAULT_READ };
enum fault_effect { FAULT_NONE, FAULT_EIO, FAULT_ENOSPC, FAULT_LOST, FAULT_MISDIRECTED, FAULT_UNREADABLE };
enum { FAULT_RANGES_MOST = 4096 };

struct fault_range {
    uint64_t from, until;
};

/* `effect` is FAULT_NONE where nothing fails. No ranges: anywhere on its device. */
struct faults {
    bool on_journal; /* of the journal; else of the disk */
    enum fault_operation operation;
    enum fault_effect effect;
    uint64_t left; /* so many hits more; 0: until it is cleared */
    uint64_t skip; /* so many requests that would be hit are let pass first */
    size_t count;
    struct fault_range ranges[FAULT_RANGES_MOST];
    uint64_t hits; /* of all orders together */
    struct fault_range first; /* where the first of them was; nothing before it */
};

/* One order, as power_cut_recorder.c has it; EINVAL, with nothing changed, for what is none. */
int faults_order(struct faults *faults, const char *text, size_t bytes);
/* What becomes of a request; counts it where it is hit. What is written can be read again. */
enum fault_effect faults_meet(struct faults *faults, enum fault_operation operation, uint64_t at, uint64_t bytes);
