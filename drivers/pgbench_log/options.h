/* The two ways to run, and what they are told. Both return the number of files. */
#pragma once

#include "table.h"

struct options {
    const char *prefix, *output;
    bool punch, once;
    unsigned flags;
    long threads, patience_s;
    uint64_t chunk_bytes;
};

uint64_t follow(const struct options *options, struct table *table);
uint64_t read_once(const struct options *options, struct table *table, char *const *paths, size_t files);
