/* What the program was asked for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum sync_mode { SYNC_FULL, SYNC_NOMETASYNC, SYNC_NOSYNC, SYNC_MAPASYNC };
enum preallocation { PREALLOCATE_NONE, PREALLOCATE_FTRUNCATE, PREALLOCATE_FALLOCATE, PREALLOCATE_WRITTEN };

struct options {
    const char *directory, *mark, *log; /* mark NULL: none is written; log NULL: no pace is kept */
    bool is_check, writemap, readahead;
    uint64_t clients, accounts, value_bytes, map_bytes, seed, duration_s, pressure_ms, log_bytes, log_most;
    enum sync_mode sync;
    enum preallocation preallocation;
};

/* Ends the program with status 2 where the call is wrong. */
struct options options_parse(int count, char **words);
