/* What the program was asked for. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct options {
    const char *directory, *mount;
    uint64_t disk_bytes, journal_bytes, log_limit_bytes; /* journal_bytes 0: there is none */
    uint64_t late_us;                                    /* 0: a write is answered at once */
    pid_t parent;                                        /* 0: it lives for itself */
};

/* Ends the program with status 2 where the call is wrong. */
struct options options_parse(int count, char **words);
