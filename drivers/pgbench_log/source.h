/* One log file, or a part of one, and how far it was read. */
#pragma once

#include "table.h"

struct source {
    char *path;
    int fd;
    uint64_t number;  /* order of discovery: decides which malformed line was the first */
    uint64_t offset;  /* start of the first line that was not read yet */
    uint64_t end;     /* lines that start at or after this belong to another chunk */
    uint64_t punched; /* everything before was given back to the file system */
    bool skipping;    /* inside a line that is too long, or that belongs to the chunk before */
    int64_t last_second; /* of its last line; INT64_MIN before the first */
};

char *block_new(void);
void source_read(struct source *source, struct table *table, char *block, bool punch);
void source_finish(const struct source *source, struct table *table);
void source_open(struct source *source, const char *path, uint64_t number, bool writable);
