/* Writes the log, then the disk: what the log lacks no disk has. The format stands in ../power_cut_recorder.c. */
#define _GNU_SOURCE
#include "recorder.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FLAG_FLUSH = 1, FLAG_DISCARD = 4, FLAG_MARK = 8 };
static const uint64_t MAGIC = 0x6a736677736872, VERSION = 1;
/* Far enough to be another file's, near enough to be within any disk. */
static const uint64_t MISDIRECTED_BY = 1024 * 1024;

struct header {
    uint64_t sector, sectors, flags, text_bytes;
};
struct addition {
    uint64_t time_ns;
    uint32_t device;
} __attribute__((packed));
struct superblock {
    uint64_t magic, version, entries;
    uint32_t sector_bytes;
} __attribute__((packed));

static void __attribute__((format(printf, 2, 3))) fail(struct recorder *recorder, const char *format, ...)
{
    if (recorder->failure[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(recorder->failure, sizeof recorder->failure, format, arguments);
    va_end(arguments);
    fprintf(stderr, "bedplate-power-cut-recorder: %s\n", recorder->failure);
}

/* errno of a file operation that came to an end before its end. */
static int write_whole(int file, const struct iovec *given, int count, uint64_t at)
{
    struct iovec parts[2];
    memcpy(parts, given, (size_t)count * sizeof *parts);
    for (struct iovec *part = parts; count > 0;) {
        ssize_t written = pwritev(file, part, count, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : ENOSPC;
        at += (uint64_t)written;
        for (size_t left = (size_t)written; count > 0; part++, count--) {
            if (left < part->iov_len) {
                part->iov_base = (char *)part->iov_base + left;
                part->iov_len -= left;
                break;
            }
            left -= part->iov_len;
        }
    }
    return 0;
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct header header_of(uint64_t at, uint64_t bytes, uint64_t flags)
{
    return (struct header){htole64(at / SECTOR_BYTES), htole64(bytes / SECTOR_BYTES), htole64(flags), 0};
}

/* One entry of `data_bytes` behind its header; without data, but with room for it, the log has a hole there. */
static int append(struct recorder *recorder, char sector[SECTOR_BYTES], const char *data, uint64_t data_bytes)
{
    if (recorder->failure[0] != '\0')
        return EIO;
    uint64_t bytes = SECTOR_BYTES + data_bytes;
    if (bytes > recorder->log_limit_bytes - recorder->log_bytes) {
        fail(recorder, "the log %s/log reached its limit of %" PRIu64 " bytes after %" PRIu64
             " entries: record a shorter run, or give it a larger limit", recorder->directory,
             recorder->log_limit_bytes, recorder->entries);
        return EIO;
    }
    struct iovec parts[] = {{sector, SECTOR_BYTES}, {(char *)data, data_bytes}};
    int error = write_whole(recorder->log, parts, data == NULL ? 1 : 2, recorder->log_bytes);
    if (error == 0 && data == NULL && data_bytes > 0 &&
        ftruncate(recorder->log, (off_t)(recorder->log_bytes + bytes)) != 0)
        error = errno;
    if (error != 0) {
        fail(recorder, "the log %s/log cannot be written after %" PRIu64 " bytes and %" PRIu64 " entries: %s",
             recorder->directory, recorder->log_bytes, recorder->entries, strerror(error));
        return EIO;
    }
    recorder->log_bytes += bytes;
    recorder->entries++;
    return 0;
}

static int log_request(struct recorder *recorder, const struct device *device, struct header header, const char *data,
                       uint64_t data_bytes, uint64_t issued)
{
    if (recorder->sealed)
        return 0;
    static char sector[SECTOR_BYTES];
    struct addition addition = {htole64(clock_ns()), htole32((uint32_t)(device - recorder->devices))};
    uint32_t late = htole32((uint32_t)(recorder->entries - issued));
    memcpy(sector, &header, sizeof header);
    memcpy(sector + sizeof header, &addition, sizeof addition);
    memcpy(sector + sizeof header + sizeof addition, &late, sizeof late);
    return append(recorder, sector, data, data_bytes);
}

/* A disk that is not written after its entry is another than the log's, unless the log has ended. */
static int disk_failed(struct recorder *recorder, const struct device *device, int error)
{
    if (recorder->sealed)
        return EIO;
    fail(recorder, "%s/store/%s cannot be written after %" PRIu64 " entries: %s", recorder->directory, device->name,
         recorder->entries, strerror(error));
    return EIO;
}

static int outside(const struct device *device, uint64_t bytes, uint64_t at)
{
    if (at % SECTOR_BYTES != 0 || bytes % SECTOR_BYTES != 0)
        return EINVAL;
    return at > device->bytes || bytes > device->bytes - at ? ENOSPC : 0;
}

/* What was ordered for a request of a device. */
static enum fault_effect met(struct recorder *recorder, const struct device *device, enum fault_operation operation,
                             uint64_t at, uint64_t bytes)
{
    if ((device == &recorder->devices[JOURNAL_DEVICE]) != recorder->faults.on_journal)
        return FAULT_NONE;
    return faults_meet(&recorder->faults, operation, at, bytes);
}

/*
 * What a write that is hit is answered with, -1 where it is to be done: all the same, or at another place, `at`. The
 * log has what the disk holds, and nothing of a write that failed or was lost.
 */
static int answer_write(struct recorder *recorder, const struct device *device, uint64_t bytes, uint64_t *at)
{
    switch (met(recorder, device, FAULT_WRITE, *at, bytes)) {
    case FAULT_NONE:
    case FAULT_UNREADABLE: break;
    case FAULT_EIO: return EIO;
    case FAULT_ENOSPC: return ENOSPC;
    case FAULT_LOST: return 0;
    case FAULT_MISDIRECTED:
        if (bytes + MISDIRECTED_BY > device->bytes - *at)
            *at = *at < MISDIRECTED_BY ? 0 : *at - MISDIRECTED_BY;
        else
            *at += MISDIRECTED_BY;
    }
    return -1;
}

int recorder_read(struct recorder *recorder, struct device *device, char *into, size_t bytes, uint64_t at)
{
    if (met(recorder, device, FAULT_READ, at, bytes) != FAULT_NONE)
        return EIO;
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(device->file, into + done, bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return EIO;
        done += (size_t)got;
    }
    device->reads++;
    device->read_bytes += bytes;
    return 0;
}

int recorder_write(struct recorder *recorder, struct device *device, const char *data, size_t bytes, uint64_t at,
                   uint64_t issued)
{
    int error = outside(device, bytes, at), answer;
    if (error == 0 && (answer = answer_write(recorder, device, bytes, &at)) >= 0)
        return answer;
    if (error == 0)
        error = log_request(recorder, device, header_of(at, bytes, 0), data, bytes, issued);
    if (error != 0)
        return error;
    struct iovec part = {(char *)data, bytes};
    if ((error = write_whole(device->file, &part, 1, at)) != 0)
        return disk_failed(recorder, device, error);
    device->writes++;
    device->write_bytes += bytes;
    return 0;
}

int recorder_flush(struct recorder *recorder, struct device *device)
{
    if (met(recorder, device, FAULT_FLUSH, 0, 0) != FAULT_NONE)
        return EIO;
    int error = log_request(recorder, device, header_of(0, 0, FLAG_FLUSH), NULL, 0, recorder->entries);
    /* Where there is a log it says what a flush brought to the medium. */
    if (error == 0 && !recorder->has_log && fdatasync(device->file) != 0)
        error = disk_failed(recorder, device, errno);
    device->flushes += error == 0;
    return error;
}

static int punch(struct recorder *recorder, const struct device *device, uint64_t bytes, uint64_t at)
{
    if (fallocate(device->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes) != 0)
        return disk_failed(recorder, device, errno);
    return 0;
}

int recorder_discard(struct recorder *recorder, struct device *device, uint64_t bytes, uint64_t at)
{
    int error = outside(device, bytes, at);
    if (error == 0)
        error = log_request(recorder, device, header_of(at, bytes, FLAG_DISCARD), NULL, 0, recorder->entries);
    if (error == 0)
        error = punch(recorder, device, bytes, at);
    device->discards += error == 0;
    return error;
}

int recorder_zero(struct recorder *recorder, struct device *device, uint64_t bytes, uint64_t at)
{
    int error = outside(device, bytes, at), answer;
    if (error == 0 && (answer = answer_write(recorder, device, bytes, &at)) >= 0)
        return answer;
    if (error == 0)
        error = log_request(recorder, device, header_of(at, bytes, 0), NULL, bytes, recorder->entries);
    if (error == 0)
        error = punch(recorder, device, bytes, at);
    if (error == 0) {
        device->writes++;
        device->write_bytes += bytes;
    }
    return error;
}

static int mark_line(struct recorder *recorder, const char *text, size_t bytes)
{
    if (bytes == 0 || bytes > MARK_BYTES_MAX)
        return EINVAL;
    if (recorder->sealed)
        return 0;
    char sector[SECTOR_BYTES] = {0};
    struct header header = header_of(0, 0, FLAG_MARK);
    header.text_bytes = htole64(bytes);
    struct addition addition = {htole64(clock_ns()), 0};
    memcpy(sector, &header, sizeof header);
    memcpy(sector + sizeof header, text, bytes);
    memcpy(sector + sizeof sector - sizeof addition, &addition, sizeof addition);
    int error = append(recorder, sector, NULL, 0);
    recorder->marks += error == 0;
    return error;
}

int recorder_mark(struct recorder *recorder, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end == NULL ? bytes - at : (size_t)(end - (text + at));
        int error = mark_line(recorder, text + at, length);
        if (error != 0)
            return error;
        at += length + 1;
    }
    return 0;
}

static bool write_superblock(const struct recorder *recorder, uint64_t entries)
{
    char sector[SECTOR_BYTES] = {0};
    struct superblock superblock = {htole64(MAGIC), htole64(VERSION), htole64(entries), htole32(SECTOR_BYTES)};
    memcpy(sector, &superblock, sizeof superblock);
    struct iovec part = {sector, sizeof sector};
    int error = write_whole(recorder->log, &part, 1, 0);
    errno = error;
    return error == 0;
}

void recorder_seal(struct recorder *recorder)
{
    if (recorder->sealed)
        return;
    recorder->sealed = true;
    if (!write_superblock(recorder, recorder->entries))
        fail(recorder, "the number of entries cannot be written to %s/log: %s", recorder->directory, strerror(errno));
}

/* A new file of that size in the folder, sparse; -1 with a reason on standard error. */
static int make_file(const char *directory, const char *name, uint64_t bytes)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path) {
        fprintf(stderr, "bedplate-power-cut-recorder: the name of the directory is too long: %s\n", directory);
        return -1;
    }
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
        fprintf(stderr, "bedplate-power-cut-recorder: %s cannot be made: %s\n", path, strerror(errno));
        return -1;
    }
    return file;
}

bool recorder_open(struct recorder *recorder, const struct options *options)
{
    const char *directory = options->directory;
    char store[4096];
    *recorder = (struct recorder){
        .devices = {{.name = "disk", .file = -1, .bytes = options->disk_bytes},
                    {.name = "journal", .file = -1, .bytes = options->journal_bytes}},
        .directory = directory,
        .log_bytes = SECTOR_BYTES,
        .log_limit_bytes = options->log_limit_bytes,
        .log = -1,
        .has_log = options->log_limit_bytes > 0,
        .sealed = options->log_limit_bytes == 0,
    };
    if (snprintf(store, sizeof store, "%s/store", directory) >= (int)sizeof store || mkdir(store, 0700) != 0) {
        fprintf(stderr, "bedplate-power-cut-recorder: %s/store cannot be made: %s\n", directory, strerror(errno));
        return false;
    }
    for (struct device *device = recorder->devices; device < recorder->devices + DEVICES; device++)
        if (device->bytes > 0 && (device->file = make_file(store, device->name, device->bytes)) < 0)
            return false;
    if (!recorder->has_log)
        return true;
    if ((recorder->log = make_file(directory, "log", 0)) < 0)
        return false;
    if (write_superblock(recorder, 0))
        return true;
    fprintf(stderr, "bedplate-power-cut-recorder: %s/log cannot be written: %s\n", directory, strerror(errno));
    return false;
}
