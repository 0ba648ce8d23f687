/*
 * Preloaded into a server that writes its pages with direct I/O: each page is written by itself, and the kernel is asked to
 * write it whole or not at all (RWF_ATOMIC), or, as a negative control, only counted.
 *
 * Only writes to files opened with O_DIRECT are pages: PostgreSQL keeps its WAL and all else buffered with `debug_io_direct =
 * data`. What the kernel will not take is written plainly, and counted by its error: such a page may be torn. A write behind
 * the file's end has nothing old to tear. Every process that the server starts inherits it, and counts into the same file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x00000040
#endif

enum { EX_CANNOT_COUNT = 71 };

/* In this order in the file, each a number of 64 bits; bedplate reads it (visit/declaration.py). */
enum count {
    ATOMIC,
    PLAIN,
    EXTENSIONS,
    SPLIT_CALLS,
    NO_PAGES,
    BUFFERED,
    REFUSED_EINVAL,
    REFUSED_EOPNOTSUPP,
    REFUSED_ENOSPC,
    COUNTS
};

static _Atomic uint64_t *counts;
static size_t page_bytes;
static int sets_flag;

static void add(enum count which) { atomic_fetch_add_explicit(&counts[which], 1, memory_order_relaxed); }

static void refuse_to_run(const char *what)
{
    dprintf(STDERR_FILENO, "untorn_writes: %s: %s\n", what, strerror(errno));
    _exit(EX_CANNOT_COUNT);
}

/* A server whose pages are not counted must not run: nobody would know what became of them. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("BEDPLATE_UNTORN_COUNTS"), *bytes = getenv("BEDPLATE_UNTORN_PAGE_BYTES");
    const char *mode = getenv("BEDPLATE_UNTORN_WRITES");
    errno = EINVAL;
    if (path == NULL || bytes == NULL || mode == NULL)
        refuse_to_run("BEDPLATE_UNTORN_COUNTS, BEDPLATE_UNTORN_PAGE_BYTES or BEDPLATE_UNTORN_WRITES is not set");
    page_bytes = strtoul(bytes, NULL, 10);
    sets_flag = strcmp(mode, "on") == 0;
    if (page_bytes == 0 || (!sets_flag && strcmp(mode, "count") != 0))
        refuse_to_run("BEDPLATE_UNTORN_WRITES is on or count, and a page has bytes");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        refuse_to_run(path);
    void *found = mmap(NULL, COUNTS * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (found == MAP_FAILED)
        refuse_to_run(path);
    counts = found;
    close(fd);
}

static ssize_t plainly(int fd, const void *data, size_t bytes, off_t at)
{
    struct iovec part = {(void *)data, bytes};
    return pwritev2(fd, &part, 1, at, 0);
}

static ssize_t write_page(int fd, const char *data, off_t at)
{
    struct stat file;
    if (fstat(fd, &file) == 0 && at + (off_t)page_bytes > file.st_size) {
        add(EXTENSIONS);
        return plainly(fd, data, page_bytes, at);
    }
    if (!sets_flag) {
        add(PLAIN);
        return plainly(fd, data, page_bytes, at);
    }
    struct iovec part = {(void *)data, page_bytes};
    ssize_t done = pwritev2(fd, &part, 1, at, RWF_ATOMIC);
    if (done >= 0) {
        add(ATOMIC);
        return done;
    }
    if (errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSPC)
        return done;
    add(errno == EINVAL ? REFUSED_EINVAL : errno == EOPNOTSUPP ? REFUSED_EOPNOTSUPP : REFUSED_ENOSPC);
    return plainly(fd, data, page_bytes, at);
}

/* Page by page, as no run of pages is taken as one; what was written before an error is what a short write says. */
static ssize_t write_pages(int fd, const char *data, size_t bytes, off_t at)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t page = write_page(fd, data + done, at + (off_t)done);
        if (page < 0)
            return done > 0 ? (ssize_t)done : page;
        done += (size_t)page;
        if ((size_t)page < page_bytes)
            break;
    }
    return (ssize_t)done;
}

static int is_direct(int fd) { return (fcntl(fd, F_GETFL) & O_DIRECT) != 0; }

static int are_pages(size_t bytes, off_t at) { return bytes > 0 && bytes % page_bytes == 0 && at % (off_t)page_bytes == 0; }

static ssize_t write_counted(int fd, const struct iovec *parts, int number, off_t at)
{
    size_t bytes = 0;
    int whole = 1;
    for (int part = 0; part < number; part++) {
        whole = whole && are_pages(parts[part].iov_len, at + (off_t)bytes);
        bytes += parts[part].iov_len;
    }
    if (!is_direct(fd)) {
        if (bytes >= page_bytes)
            add(BUFFERED);
        return pwritev2(fd, parts, number, at, 0);
    }
    if (!whole) {
        /* A part of a page too: it tears the old page as well as a longer one. */
        if (bytes > 0)
            add(NO_PAGES);
        return pwritev2(fd, parts, number, at, 0);
    }
    if (bytes > page_bytes)
        add(SPLIT_CALLS);
    size_t done = 0;
    for (int part = 0; part < number; part++) {
        ssize_t written = write_pages(fd, parts[part].iov_base, parts[part].iov_len, at + (off_t)done);
        if (written < 0)
            return done > 0 ? (ssize_t)done : written;
        done += (size_t)written;
        if ((size_t)written < parts[part].iov_len)
            break;
    }
    return (ssize_t)done;
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at)
{
    struct iovec part = {(void *)data, bytes};
    return write_counted(fd, &part, 1, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int number, off64_t at)
{
    return write_counted(fd, parts, number, at);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) { return pwrite64(fd, data, bytes, at); }

ssize_t pwritev(int fd, const struct iovec *parts, int number, off_t at) { return pwritev64(fd, parts, number, at); }
