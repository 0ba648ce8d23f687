/*
 * FUSE's low-level interface, one thread: requests are logged in the order in which the kernel hands them over, or, if
 * requests are to be late (queue.c), in the order in which they are answered.
 *
 * The disks are opened for direct I/O: pages that the kernel kept of them would hold the data another time, and a loop
 * device above would be answered before we know of a write.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 34
#include "files.h"
#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/falloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The disks come first, so that the number of a file is that of its device and one more. */
enum { DISK_FILE = FUSE_ROOT_ID + 1, JOURNAL_FILE, MARK_FILE, STATUS_FILE, SEAL_FILE, FAULT_FILE, END_OF_FILES };
enum { REQUEST_BYTES = 1024 * 1024, REQUESTS_AT_ONCE = 64, BLOCK_BYTES = 4096 };

static const char *const FILE_NAMES[] = {
    [DISK_FILE] = "disk",   [JOURNAL_FILE] = "journal", [MARK_FILE] = "mark",
    [STATUS_FILE] = "status", [SEAL_FILE] = "seal", [FAULT_FILE] = "fault",
};
/* Anybody may mark; only root touches the disks, ends the log and orders faults. */
static const mode_t FILE_MODES[] = {
    [DISK_FILE] = 0600, [JOURNAL_FILE] = 0600, [MARK_FILE] = 0222, [STATUS_FILE] = 0444, [SEAL_FILE] = 0200,
    [FAULT_FILE] = 0200,
};
static const double FOREVER_S = 86400;
static const int ENDING[] = {SIGTERM, SIGINT, SIGHUP};

static char read_buffer[REQUEST_BYTES];

static struct recorder *recorder_of(fuse_req_t request) { return fuse_req_userdata(request); }

/* NULL for any other file. */
static struct device *device_of(fuse_req_t request, fuse_ino_t file)
{
    return file == DISK_FILE || file == JOURNAL_FILE ? &recorder_of(request)->devices[file - DISK_FILE] : NULL;
}

static bool attributes_of(fuse_req_t request, fuse_ino_t file, struct stat *stat)
{
    memset(stat, 0, sizeof *stat);
    stat->st_ino = file;
    stat->st_nlink = 1;
    stat->st_blksize = BLOCK_BYTES;
    if (file == FUSE_ROOT_ID) {
        stat->st_mode = S_IFDIR | 0755;
        return true;
    }
    if (file >= END_OF_FILES)
        return false;
    struct device *device = device_of(request, file);
    stat->st_mode = S_IFREG | FILE_MODES[file];
    if (device != NULL) {
        stat->st_size = (off_t)device->bytes;
        stat->st_blocks = (blkcnt_t)(device->bytes / 512);
    }
    return device == NULL || device->bytes > 0;
}

static void on_init(void *recorder, struct fuse_conn_info *connection)
{
    (void)recorder;
    connection->max_write = REQUEST_BYTES;
    connection->max_background = REQUESTS_AT_ONCE;
    if (connection->capable & FUSE_CAP_ASYNC_DIO)
        connection->want |= FUSE_CAP_ASYNC_DIO;
    connection->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
}

static void on_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.attr_timeout = FOREVER_S, .entry_timeout = FOREVER_S};
    for (fuse_ino_t file = DISK_FILE; parent == FUSE_ROOT_ID && file < END_OF_FILES; file++)
        if (strcmp(name, FILE_NAMES[file]) == 0 && attributes_of(request, file, &entry.attr)) {
            entry.ino = file;
            fuse_reply_entry(request, &entry);
            return;
        }
    fuse_reply_err(request, ENOENT);
}

static void on_getattr(fuse_req_t request, fuse_ino_t file, struct fuse_file_info *opened)
{
    (void)opened;
    struct stat stat;
    if (attributes_of(request, file, &stat))
        fuse_reply_attr(request, &stat, FOREVER_S);
    else
        fuse_reply_err(request, ENOENT);
}

/* A shell truncates what it writes to, which is nothing here; a disk keeps its size. */
static void on_setattr(fuse_req_t request, fuse_ino_t file, struct stat *asked, int which,
                       struct fuse_file_info *opened)
{
    const struct device *device = device_of(request, file);
    if (which & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        fuse_reply_err(request, EPERM);
    else if (device != NULL && which & FUSE_SET_ATTR_SIZE && (uint64_t)asked->st_size != device->bytes)
        fuse_reply_err(request, EPERM);
    else
        on_getattr(request, file, opened);
}

static void on_readdir(fuse_req_t request, fuse_ino_t directory, size_t size, off_t from, struct fuse_file_info *opened)
{
    (void)opened;
    if (directory != FUSE_ROOT_ID) {
        fuse_reply_err(request, ENOTDIR);
        return;
    }
    char entries[1024];
    size_t used = 0;
    for (fuse_ino_t file = DISK_FILE + (fuse_ino_t)from; file < END_OF_FILES; file++) {
        struct stat stat;
        if (!attributes_of(request, file, &stat))
            continue;
        size_t room = (size < sizeof entries ? size : sizeof entries) - used;
        size_t taken = fuse_add_direntry(request, entries + used, room, FILE_NAMES[file], &stat,
                                         (off_t)(file - DISK_FILE + 1));
        if (taken > room)
            break;
        used += taken;
    }
    fuse_reply_buf(request, entries, used);
}

/* The status is that of its opening, so that a reader in two steps gets one document. */
static void on_open(fuse_req_t request, fuse_ino_t file, struct fuse_file_info *opened)
{
    opened->direct_io = 1;
    opened->fh = 0;
    if (file == STATUS_FILE) {
        char *text = malloc(STATUS_BYTES);
        if (text == NULL) {
            fuse_reply_err(request, ENOMEM);
            return;
        }
        recorder_status(recorder_of(request), text);
        opened->fh = (uint64_t)(uintptr_t)text;
    }
    if (fuse_reply_open(request, opened) != 0)
        free((void *)(uintptr_t)opened->fh);
}

static void on_release(fuse_req_t request, fuse_ino_t file, struct fuse_file_info *opened)
{
    (void)file;
    free((void *)(uintptr_t)opened->fh);
    fuse_reply_err(request, 0);
}

static void on_read(fuse_req_t request, fuse_ino_t file, size_t size, off_t from, struct fuse_file_info *opened)
{
    struct device *device = device_of(request, file);
    uint64_t at = (uint64_t)from;
    if (device == NULL) {
        const char *text = (const char *)(uintptr_t)opened->fh;
        size_t length = text == NULL ? 0 : strlen(text);
        size_t left = at < length ? length - at : 0;
        fuse_reply_buf(request, text == NULL ? "" : text + (length - left), left < size ? left : size);
        return;
    }
    uint64_t left = at < device->bytes ? device->bytes - at : 0;
    size_t part = size < left ? size : left;
    if (part > sizeof read_buffer)
        part = sizeof read_buffer;
    if (queue_take(&(struct queue_request){request, device, QUEUE_READ, NULL, part, at}))
        return;
    int error = recorder_read(recorder_of(request), device, read_buffer, part, at);
    if (error != 0)
        fuse_reply_err(request, error);
    else
        fuse_reply_buf(request, read_buffer, part);
}

static void on_write(fuse_req_t request, fuse_ino_t file, const char *data, size_t size, off_t from,
                     struct fuse_file_info *opened)
{
    (void)opened;
    struct recorder *recorder = recorder_of(request);
    struct device *device = device_of(request, file);
    int error = 0;
    if (device != NULL &&
        queue_take(&(struct queue_request){request, device, QUEUE_WRITE, data, size, (uint64_t)from}))
        return;
    if (device != NULL)
        error = recorder_write(recorder, device, data, size, (uint64_t)from, recorder->entries);
    else if (file == MARK_FILE)
        error = recorder_mark(recorder, data, size);
    else if (file == SEAL_FILE) {
        queue_finish();
        recorder_seal(recorder);
    } else if (file == FAULT_FILE)
        error = faults_order(&recorder->faults, data, size);
    else
        error = EPERM;
    if (error != 0)
        fuse_reply_err(request, error);
    else
        fuse_reply_write(request, size);
}

static void on_fsync(fuse_req_t request, fuse_ino_t file, int data_only, struct fuse_file_info *opened)
{
    (void)data_only;
    (void)opened;
    struct device *device = device_of(request, file);
    if (device != NULL && queue_take(&(struct queue_request){request, device, QUEUE_FLUSH, NULL, 0, 0}))
        return;
    fuse_reply_err(request, device == NULL ? 0 : recorder_flush(recorder_of(request), device));
}

static void on_fallocate(fuse_req_t request, fuse_ino_t file, int mode, off_t from, off_t length,
                         struct fuse_file_info *opened)
{
    (void)opened;
    struct device *device = device_of(request, file);
    uint64_t at = (uint64_t)from, bytes = (uint64_t)length;
    int kind = mode & ~FALLOC_FL_KEEP_SIZE, error = EOPNOTSUPP;
    enum queue_work work = kind == FALLOC_FL_PUNCH_HOLE ? QUEUE_DISCARD : QUEUE_ZERO;
    if (device != NULL && (kind == FALLOC_FL_PUNCH_HOLE || kind == FALLOC_FL_ZERO_RANGE) &&
        queue_take(&(struct queue_request){request, device, work, NULL, bytes, at}))
        return;
    if (device != NULL && kind == FALLOC_FL_PUNCH_HOLE)
        error = recorder_discard(recorder_of(request), device, bytes, at);
    else if (device != NULL && kind == FALLOC_FL_ZERO_RANGE)
        error = recorder_zero(recorder_of(request), device, bytes, at);
    fuse_reply_err(request, error);
}

static void on_statfs(fuse_req_t request, fuse_ino_t file)
{
    (void)file;
    const struct device *devices = recorder_of(request)->devices;
    /* The kernel makes the block size the granularity of the loop device's discards. */
    struct statvfs room = {
        .f_bsize = BLOCK_BYTES,
        .f_frsize = BLOCK_BYTES,
        .f_blocks = (devices[DISK_DEVICE].bytes + devices[JOURNAL_DEVICE].bytes) / BLOCK_BYTES,
        .f_files = END_OF_FILES - DISK_FILE,
        .f_namemax = 255,
    };
    fuse_reply_statfs(request, &room);
}

static const struct fuse_lowlevel_ops OPERATIONS = {
    .init = on_init,
    .lookup = on_lookup,
    .getattr = on_getattr,
    .setattr = on_setattr,
    .readdir = on_readdir,
    .open = on_open,
    .release = on_release,
    .read = on_read,
    .write = on_write,
    .fsync = on_fsync,
    .fallocate = on_fallocate,
    .statfs = on_statfs,
};

struct fuse_session *files_mount(struct recorder *recorder, const char *target)
{
    char *words[] = {"bedplate-power-cut-recorder", "-o",
                     "fsname=bedplate-recorder,subtype=bedplate,allow_other,default_permissions", NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, words);
    struct fuse_session *session = fuse_session_new(&arguments, &OPERATIONS, sizeof OPERATIONS, recorder);
    fuse_opt_free_args(&arguments);
    if (session == NULL)
        return NULL;
    if (fuse_set_signal_handlers(session) != 0 || fuse_session_mount(session, target) != 0) {
        fuse_session_destroy(session);
        return NULL;
    }
    return session;
}

/* The timer goes off at the moment of the next answer; never, where none waits. */
static int set_timer(int timer)
{
    uint64_t due_ns;
    struct itimerspec moment = {.it_value = {0, 0}};
    if (queue_next(&due_ns))
        moment.it_value = (struct timespec){(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
    return timerfd_settime(timer, TFD_TIMER_ABSTIME, &moment, NULL) == 0 ? 0 : -errno;
}

/* As fuse_session_loop, but that it wakes for an answer whose moment has come; 0 or minus an errno. */
static int serve_queue(struct fuse_session *session)
{
    struct fuse_buf buffer = {.mem = NULL};
    int requests = fuse_session_fd(session), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct pollfd both[] = {{.fd = requests, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
    int status = 0;
    /* A request that poll(2) has seen may be taken back before it is read. */
    if (timer < 0 || fcntl(requests, F_SETFL, fcntl(requests, F_GETFL) | O_NONBLOCK) != 0)
        return -errno;
    while (status == 0 && !fuse_session_exited(session)) {
        queue_finish_due();
        int got = fuse_session_receive_buf(session, &buffer);
        if (got > 0)
            fuse_session_process_buf(session, &buffer);
        else if (got == 0)
            break;
        else if (got != -EINTR && got != -EAGAIN)
            status = got;
        else if ((status = set_timer(timer)) == 0 && poll(both, 2, -1) < 0 && errno != EINTR)
            status = -errno;
    }
    queue_finish();
    close(timer);
    free(buffer.mem);
    return status;
}

static bool has_times(const struct options *options)
{
    for (int kind = 0; kind < SERVICE_KINDS; kind++)
        if (options->service.laws[kind].shape != LAW_NONE)
            return true;
    return options->model != NULL;
}

bool files_serve(struct fuse_session *session, struct recorder *recorder, const struct options *options)
{
    /* The number of the signal that ended it, or minus an errno. */
    int status = !queue_begin(recorder, options) ? -ENOMEM
                 : has_times(options)            ? serve_queue(session)
                                                 : fuse_session_loop(session);
    /* Not by the library's call, which would have a late signal end us without a word. */
    for (size_t at = 0; at < sizeof ENDING / sizeof *ENDING; at++)
        signal(ENDING[at], SIG_IGN);
    fuse_session_destroy(session);
    /*
     * Not by the library, which unmounts lazily: a loop device that is still above would then have no file by any
     * name, and nobody could find it. Where this fails, whoever detaches the loop device unmounts too.
     */
    umount2(options->mount, 0);
    return status >= 0;
}
