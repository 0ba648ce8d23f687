/* Requests that are answered later than they came, as a device with a queue answers them. */
#pragma once

#include "options.h"
#include "recorder.h"

struct fuse_req;

enum queue_work { QUEUE_READ, QUEUE_WRITE, QUEUE_FLUSH, QUEUE_DISCARD, QUEUE_ZERO };

struct queue_request {
    struct fuse_req *request;
    struct device *device;
    enum queue_work work;
    const char *data; /* of a write */
    uint64_t bytes, at;
};

/* Before the first request. False where there is no memory. */
bool queue_begin(struct recorder *recorder, const struct options *options);
/* Keep a request until its moment; false where it has to be answered now. */
bool queue_take(const struct queue_request *request);
/* Answer those whose moment has come, in its order. */
void queue_finish_due(void);
/* All of them, in the order of their moments. */
void queue_finish(void);
/* The moment of the next one, on CLOCK_MONOTONIC; false where none waits. */
bool queue_next(uint64_t *due_ns);
