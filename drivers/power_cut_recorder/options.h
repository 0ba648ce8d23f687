/* What the program was asked for. */
#pragma once

#include "disk.h"
#include "service.h"

#include <stdint.h>
#include <sys/types.h>

struct options {
    const char *directory, *mount;
    uint64_t disk_bytes, journal_bytes, log_limit_bytes; /* journal_bytes, log_limit_bytes 0: there is none */
    struct service service;                              /* without laws every request is answered at once */
    const char *model, *rehearsed;                       /* of a disk; NULL: there is none. A load that it meets in virtual time */
    struct disk_parameters disk;                         /* what the model says */
    const char *probed;                                  /* a device to be measured, in place of all else */
    unsigned depth;
    double seconds;
    enum service_kind kind;
    pid_t parent;                                        /* 0: it lives for itself */
};

/* Ends the program with status 2 where the call is wrong. */
struct options options_parse(int count, char **words);
