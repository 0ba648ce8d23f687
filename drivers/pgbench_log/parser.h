/* Lines of a block of memory, into the table. */
#pragma once

#include "source.h"
#include "table.h"

void line_reject(struct table *table, const struct source *source, uint64_t offset, const char *line,
                        size_t size);
const char *block_parse(struct table *table, const struct source *source, const char *block,
                               const char *at, const char *limit);
/* A transaction of the first script that was completed within `second`, without a line. */
void transaction_add(struct table *table, int64_t second, uint64_t latency_us);
