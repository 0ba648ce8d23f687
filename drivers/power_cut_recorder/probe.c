/* The kernel's own asynchronous I/O (io_submit(2)) without its library: one thread keeps as many requests under way as asked. */
#define _GNU_SOURCE
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096, SPAN_BLOCKS = 16384, MOST_DEPTH = 1024, SAMPLES_MOST = 1 << 20 };

struct run {
    int file;
    aio_context_t context;
    struct iocb asked[MOST_DEPTH];
    uint64_t began_ns[MOST_DEPTH];
    uint64_t *samples, chance;
    size_t count;
    char *buffer;
    unsigned span;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int failed(const char *what, const char *device)
{
    fprintf(stderr, "bedplate-power-cut-recorder: %s %s: %s\n", what, device, strerror(errno));
    return 1;
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void sample(struct run *run, uint64_t ns)
{
    if (run->count < SAMPLES_MOST)
        run->samples[run->count] = ns;
    run->count++;
}

/* One block at a place that chance chooses. */
static bool submit(struct run *run, unsigned place, int operation)
{
    run->chance ^= run->chance << 13;
    run->chance ^= run->chance >> 7;
    run->chance ^= run->chance << 17;
    struct iocb *asked = &run->asked[place];
    *asked = (struct iocb){
        .aio_data = place,
        .aio_lio_opcode = (uint16_t)operation,
        .aio_fildes = (uint32_t)run->file,
        .aio_buf = (uint64_t)(uintptr_t)(run->buffer + (size_t)place * BLOCK_BYTES),
        .aio_nbytes = BLOCK_BYTES,
        .aio_offset = (int64_t)(run->chance % run->span) * BLOCK_BYTES,
    };
    run->began_ns[place] = now_ns();
    return syscall(SYS_io_submit, run->context, 1, &asked) == 1;
}

static bool transfers(struct run *run, const struct options *options, uint64_t until_ns)
{
    int operation = options->kind == SERVICE_READ ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
    unsigned depth = options->depth > 0 ? options->depth : 1, under_way = 0;
    if (syscall(SYS_io_setup, depth, &run->context) != 0)
        return false;
    while (under_way < depth && submit(run, under_way, operation))
        under_way++;
    bool is_whole = under_way == depth;
    while (under_way > 0) {
        struct io_event event;
        if (syscall(SYS_io_getevents, run->context, 1, 1, &event, NULL) != 1) {
            if (errno == EINTR)
                continue;
            return false;
        }
        uint64_t now = now_ns();
        under_way--;
        sample(run, now - run->began_ns[event.data]);
        if (event.res != BLOCK_BYTES) {
            errno = event.res < 0 ? (int)-event.res : EIO;
            is_whole = false;
        }
        if (is_whole && now < until_ns && submit(run, (unsigned)event.data, operation))
            under_way++;
    }
    syscall(SYS_io_destroy, run->context);
    return is_whole;
}

/* Each behind a write, as a flush of nothing may be answered by the kernel. */
static bool flushes(struct run *run, uint64_t until_ns)
{
    for (uint64_t began = 0; began < until_ns; began = now_ns()) {
        if (pwrite(run->file, run->buffer, BLOCK_BYTES, 0) != BLOCK_BYTES)
            return false;
        began = now_ns();
        if (fdatasync(run->file) != 0)
            return false;
        sample(run, now_ns() - began);
    }
    return true;
}

int probe(const struct options *options)
{
    static struct run run = {.chance = 0x9e3779b97f4a7c15u};
    bool reads = options->kind == SERVICE_READ;
    uint64_t bytes;
    run.file = open(options->probed, (reads ? O_RDONLY : O_RDWR | O_EXCL) | O_DIRECT | O_CLOEXEC);
    if (run.file < 0 || ioctl(run.file, BLKGETSIZE64, &bytes) != 0)
        return failed("cannot open", options->probed);
    run.span = (unsigned)(bytes / BLOCK_BYTES < SPAN_BLOCKS ? bytes / BLOCK_BYTES : SPAN_BLOCKS);
    run.samples = malloc(SAMPLES_MOST * sizeof *run.samples);
    if (run.samples == NULL || run.span == 0 ||
        posix_memalign((void **)&run.buffer, BLOCK_BYTES, (size_t)MOST_DEPTH * BLOCK_BYTES) != 0)
        return failed("no memory to probe, or no block of", options->probed);
    memset(run.buffer, 0x5a, (size_t)MOST_DEPTH * BLOCK_BYTES);
    uint64_t began = now_ns(), until = began + (uint64_t)(options->seconds * 1e9);
    if (!(options->kind == SERVICE_FLUSH ? flushes(&run, until) : transfers(&run, options, until)))
        return failed("cannot probe", options->probed);
    double seconds = (double)(now_ns() - began) / 1e9;
    size_t kept = run.count < SAMPLES_MOST ? run.count : SAMPLES_MOST;
    qsort(run.samples, kept, sizeof *run.samples, by_size);
    printf("{\"count\": %zu, \"seconds\": %.6f, \"ns_p50\": %" PRIu64 ", \"ns_p99\": %" PRIu64 "}\n", run.count, seconds,
           run.samples[kept / 2], run.samples[kept * 99 / 100]);
    return 0;
}
