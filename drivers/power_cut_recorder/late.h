/* Writes that are answered later than they came, as a device with a queue answers them. */
#pragma once

#include "recorder.h"

#include <time.h>

struct fuse_req;

/* Before the first write. Without a delay every write is answered at once. */
void late_begin(uint64_t most_us);
/* Keep a write with a copy of its data until a moment that chance chooses; false where it has to be answered now. */
bool late_take(struct fuse_req *request, struct recorder *recorder, struct device *device, const char *data,
               size_t bytes, uint64_t at);
/* Log and answer the writes whose moment has come, in its order. */
void late_finish_due(struct recorder *recorder);
/* All of them, in the order of their moments. */
void late_finish(struct recorder *recorder);
/* How long it is until the next one; false where none waits. */
bool late_next(struct timespec *left);
