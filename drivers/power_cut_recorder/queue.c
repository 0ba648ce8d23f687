/*
 * Two uses, told apart by whether there is a log.
 *
 * With a log, writes alone are late (--late-us). One is logged and done to its disk when it is answered, so that the log has
 * the order of completion, and a flush stands behind those alone that were answered before it came. Flushes, discards and
 * ranges of zeros are never late: whoever asks for one has waited for what it concerns, or is to be found not to have.
 *
 * Without one, this is a device with latency. A request is done to the disk as soon as it comes, as in a drive's cache, and
 * answered at its moment. So many as the device has places are served at once, and others wait in the order in which
 * they came. A flush begins once everything before it is answered, and what comes behind it waits for its end: the
 * loop device above asks for a flush and hands nothing over until it has its answer, so no other order reaches us.
 *
 * With a model the disk of it says when each is done (disk.c), in times from our beginning. A request comes to it as much
 * sooner as the way here and back takes.
 *
 * Who waited is served from the moment at which its place was due to be free, not from that at which we saw it: times
 * that we are late by do not add up.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 34
#include "queue.h"

#include <errno.h>
#include <fuse3/fuse_lowlevel.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct job {
    struct disk_request modelled; /* first: what the disk answers is its job */
    struct queue_request asked;
    char *data; /* a write's, where it is done later; what a read found */
    uint64_t issued, came_ns, from_ns, due_ns, number;
    int error;
    struct job *next; /* of those that wait */
};

static struct recorder *recorder;
static struct service service;
static struct job *first_waiting, *last_waiting;
static struct job **served; /* a heap: none is due before its parent, (at - 1) / 2 */
static size_t count, room;
/* No disk is as long at work. */
static const double FOREVER_NS = 1e18;
static size_t outstanding;
static uint64_t numbers;
static bool flushing, is_modelled;
static struct disk disk;
static uint64_t begun_ns;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static enum service_kind kind_of(enum queue_work work)
{
    if (work == QUEUE_FLUSH)
        return SERVICE_FLUSH;
    return work == QUEUE_READ ? SERVICE_READ : SERVICE_WRITE;
}

bool queue_begin(struct recorder *given, const struct options *options)
{
    recorder = given;
    service = options->service;
    is_modelled = options->model != NULL;
    begun_ns = now_ns();
    service_begin(&service, begun_ns);
    return !is_modelled || disk_begin(&disk, &options->disk, options->disk_bytes);
}

static bool is_before(const struct job *job, const struct job *other)
{
    return job->due_ns < other->due_ns || (job->due_ns == other->due_ns && job->number < other->number);
}

static void serve(struct job *job)
{
    size_t at = count++;
    for (; at > 0 && is_before(job, served[(at - 1) / 2]); at = (at - 1) / 2)
        served[at] = served[(at - 1) / 2];
    served[at] = job;
}

static struct job *take_first(void)
{
    struct job *first = served[0], *last = served[--count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(served[child + 1], served[child]))
            child++;
        if (!is_before(served[child], last))
            break;
        served[at] = served[child];
    }
    served[at] = last;
    return first;
}

static int do_now(struct job *job)
{
    const struct queue_request *asked = &job->asked;
    switch (asked->work) {
    case QUEUE_READ: return recorder_read(recorder, asked->device, job->data, asked->bytes, asked->at);
    case QUEUE_WRITE: return recorder_write(recorder, asked->device, asked->data, asked->bytes, asked->at, job->issued);
    case QUEUE_FLUSH: return recorder_flush(recorder, asked->device);
    case QUEUE_DISCARD: return recorder_discard(recorder, asked->device, asked->bytes, asked->at);
    case QUEUE_ZERO: break;
    }
    return recorder_zero(recorder, asked->device, asked->bytes, asked->at);
}

static void answer(struct job *job)
{
    const struct queue_request *asked = &job->asked;
    if (job->error != 0)
        fuse_reply_err(asked->request, job->error);
    else if (asked->work == QUEUE_READ)
        fuse_reply_buf(asked->request, job->data, asked->bytes);
    else if (asked->work == QUEUE_WRITE)
        fuse_reply_write(asked->request, asked->bytes);
    else
        fuse_reply_err(asked->request, 0);
    free(job->data);
    free(job);
}

/* Begin with those that wait, in their order, as far as there are places. */
static void dispatch(uint64_t free_ns)
{
    while (first_waiting != NULL && !flushing) {
        struct job *job = first_waiting;
        bool is_flush = job->asked.work == QUEUE_FLUSH;
        if (is_flush ? count > 0 : service.depth > 0 && count >= service.depth)
            return;
        bool waited = free_ns > job->came_ns;
        job->from_ns = waited ? free_ns : job->came_ns;
        job->due_ns = service_end(kind_of(job->asked.work), job->asked.bytes, job->asked.at, job->from_ns, !waited);
        flushing = is_flush;
        first_waiting = job->next;
        serve(job);
    }
}

/* Room for one more, which serve() then needs not ask for. */
static bool has_room(void)
{
    size_t wanted = outstanding < room ? room : 2 * room + 64;
    if (wanted == room)
        return true;
    struct job **larger = realloc(served, wanted * sizeof *larger);
    if (larger == NULL)
        return false;
    served = larger;
    room = wanted;
    return true;
}

static struct job *job_of(const struct queue_request *asked)
{
    struct job *job = calloc(1, sizeof *job);
    bool has_data = asked->work == QUEUE_READ || (asked->work == QUEUE_WRITE && recorder->has_log);
    if (job == NULL || (has_data && (job->data = malloc(asked->bytes)) == NULL)) {
        free(job);
        return NULL;
    }
    *job = (struct job){.asked = *asked, .data = job->data, .issued = recorder->entries, .came_ns = now_ns()};
    return job;
}

static bool is_at_once(const struct queue_request *asked)
{
    return !is_modelled && service.laws[kind_of(asked->work)].shape == LAW_NONE;
}

/* When a moment of the disk's is on CLOCK_MONOTONIC. */
static uint64_t moment_of(double ns) { return begun_ns + (uint64_t)ns; }

static void hand_to_disk(struct job *job)
{
    static const enum disk_work WORKS[] = {
        [QUEUE_READ] = DISK_READ,       [QUEUE_WRITE] = DISK_WRITE, [QUEUE_FLUSH] = DISK_FLUSH,
        [QUEUE_DISCARD] = DISK_DISCARD, [QUEUE_ZERO] = DISK_WRITE,
    };
    const struct queue_request *asked = &job->asked;
    double came_ns = (double)(job->came_ns - begun_ns) - (double)service.path_ns[kind_of(asked->work)];
    uint64_t at = asked->at / SECTOR_BYTES * SECTOR_BYTES, until = asked->at + asked->bytes;
    until = (until + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    job->modelled = (struct disk_request){.work = WORKS[asked->work], .at = at, .bytes = until - at};
    disk_take(&disk, &job->modelled, came_ns);
}

bool queue_take(const struct queue_request *asked)
{
    if (is_at_once(asked) || (asked->bytes == 0 && asked->work != QUEUE_FLUSH))
        return false;
    if (recorder->has_log && (recorder->sealed || asked->work != QUEUE_WRITE))
        return false;
    struct job *job = has_room() ? job_of(asked) : NULL;
    if (job == NULL)
        return false;
    if (recorder->has_log) {
        memcpy(job->data, asked->data, asked->bytes);
        job->asked.data = job->data;
    } else if (asked->work != QUEUE_FLUSH)
        job->error = do_now(job);
    if (is_modelled && job->error == 0) {
        hand_to_disk(job);
        return true;
    }
    if (is_modelled) {
        /* It may lie where there is no disk. */
        answer(job);
        return true;
    }
    job->number = numbers++;
    outstanding++;
    if (first_waiting == NULL)
        first_waiting = job;
    else
        last_waiting->next = job;
    last_waiting = job;
    dispatch(0);
    return true;
}

static void finish(struct job *job)
{
    if (recorder->has_log || job->asked.work == QUEUE_FLUSH)
        job->error = do_now(job);
    uint64_t now = now_ns(), behind = now > job->due_ns ? now - job->due_ns : 0;
    uint64_t due = job->due_ns > job->came_ns ? job->due_ns - job->came_ns : 0;
    struct lateness *lateness = &recorder->lateness;
    lateness->served++;
    lateness->due_ns += due;
    lateness->late_ns += behind;
    lateness->late_ns_max = behind > lateness->late_ns_max ? behind : lateness->late_ns_max;
    lateness->late += due > 0 && behind > due / 20;
    if (is_modelled) {
        answer(job);
        return;
    }
    if (job->asked.work == QUEUE_FLUSH)
        flushing = false;
    outstanding--;
    uint64_t due_ns = job->due_ns;
    answer(job);
    dispatch(due_ns);
}

/* What the disk has done by then. */
static void finish_modelled(double until_ns)
{
    for (struct disk_request *done; (done = disk_done(&disk, until_ns)) != NULL;) {
        struct job *job = (struct job *)done;
        job->due_ns = moment_of(done->due_ns);
        finish(job);
    }
}

void queue_finish_due(void)
{
    if (is_modelled)
        finish_modelled((double)(now_ns() - begun_ns));
    while (count > 0 && served[0]->due_ns <= now_ns())
        finish(take_first());
}

void queue_finish(void)
{
    if (is_modelled)
        finish_modelled(FOREVER_NS);
    while (count > 0)
        finish(take_first());
}

bool queue_next(uint64_t *due_ns)
{
    double ns;
    if (is_modelled) {
        bool is_due = disk_next(&disk, &ns);
        /* Behind the moment, whose nanosecond has begun. */
        *due_ns = is_due ? moment_of(ns) + 1 : 0;
        return is_due;
    }
    if (count == 0)
        return false;
    *due_ns = served[0]->due_ns;
    return true;
}
