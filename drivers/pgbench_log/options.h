/* The three ways to run, and what they are told. Those that read logs return the number of files. */
#pragma once

#include "table.h"

enum { REFUSED = 3 }; /* exit status where a writer printed what is no line of its protocol */

struct options {
    const char *prefix, *output, *warmup;
    bool punch, once;
    int acks; /* the descriptor of a writer's pipe, else -1 */
    unsigned flags;
    long threads, patience_s;
    uint64_t chunk_bytes, clients;
};

uint64_t follow(const struct options *options, struct table *table);
uint64_t read_once(const struct options *options, struct table *table, char *const *paths, size_t files);
void read_acks(const struct options *options, struct output *output);
