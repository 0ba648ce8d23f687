/* What the program was asked for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct options {
    const char *directory, *mark, *log; /* mark NULL: none is written; log NULL: no pace is kept */
    bool is_check;
    uint64_t clients, accounts, value_bytes, seed, duration_s, pressure_ms, log_bytes, log_most;
};

/* What a size on the command line may be at most. */
static const uint64_t BYTES_MAX = (uint64_t)1 << 46;

/* What an engine has of a call: what it is called, the help for its settings, and whether it takes one of this name. */
extern const char STORE_NAME[], STORE_USAGE[];
bool store_take(const char *name, const char *value);
/* Ends the program with status 2 where settings do not go together. */
void store_check(void);

/* Ends the program with status 2 where the call is wrong. */
struct options options_parse(int count, char **words);
