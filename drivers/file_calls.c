/*
 * bedplate-file-calls: runs a program, and writes down each call by which it and all that it starts change or sync files of a folder.
 *
 *     file_calls --folder DIR --duration S --most N -- PROGRAM ARGUMENTS
 *
 * Goals: which file a call is about, whoever made its descriptor (dup, fork, a thread): by device and inode, looked up while the program
 * stands still at the call; one order of all calls. By ptrace(2), which needs no rights over one's own children, no package and no file
 * system of the kernel's. Non-goals: speed, for a program runs several times slower; what is done without a call that could be
 * stopped at: stores to mapped memory, io_uring, requests of io_submit. Of these it says that they are there.
 *
 * The program's standard output is a file in memory: what it writes there are its marks. It ends by SIGTERM once DURATION and ten
 * seconds are over since its first mark, or N lines are written, and by SIGKILL ten seconds behind that.
 *
 * Standard output, a line for each call that succeeded, when it ends; fields by tabs, with \\, \t, \n for these characters in names:
 *     ENTRY EXIT TID NS, two places in one order (a call that began behind another's EXIT began behind its end), who, when; then
 *     write FILE OFFSET LENGTH DSYNC SIZE PATH    DSYNC 1 where the descriptor or the call waits for the disk; SIZE is that before
 *     sync HOW FILE OFFSET LENGTH PATH            fsync, fdatasync, msync (LENGTH 0: all of it), range (sync_file_range)
 *     all HOW                                     sync, syncfs
 *     size HOW FILE FROM TO PATH                  truncate, grow
 *     zero HOW FILE OFFSET LENGTH SIZE PATH       punch, zero, collapse, insert, clone
 *     add HOW DIR NAME FILE DIRECTORY             create, link, mkdir, symlink, mknod
 *     remove HOW DIR NAME FILE DIRECTORY          unlink, rmdir
 *     rename DIR NAME DIR NAME FILE BEFORE DIRECTORY DIRECTORY       BEFORE is the file whose name it took, or -
 *     map FILE PATH                               writable and shared
 *     lock FILE                                   fcntl or flock
 *     mark TEXT                                   what was written to standard output, at the ENTRY of the call
 *     unseen NAME                                 a call whose work nobody can follow here
 *     end STATUS FULL                             128 and the signal's number where that ended it; FULL 1 where N lines ended it
 * FILE and DIR are DEVICE:INODE.
 * Exit status: 0 whatever the program's, 1 it could not be followed, 2 the call is wrong, 126 and 127 it could not be started.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* linux/fs.h of older headers lacks some. */
#ifndef RWF_DSYNC
#define RWF_DSYNC 0x00000002
#endif
#ifndef RWF_SYNC
#define RWF_SYNC 0x00000004
#endif

enum { PATIENCE_S = 10, PREPARATION_S = 300, MARK_BYTES_MOST = 4096, BUCKETS = 4096, VECTORS_MOST = 1024 };

/* A file as a call names it: by a descriptor, or by a folder and a name in it. */
struct file {
    struct stat status;
    bool is_there;
    char path[PATH_MAX];
};

struct place {
    struct stat folder;
    bool is_there;
    char directory[PATH_MAX];
    char name[NAME_MAX + 1];
    struct file target;
};

/* A thread that is in a call. */
struct call {
    pid_t thread;
    struct call *next;
    bool is_open;
    uint64_t entry;
    long number;
    uint64_t arguments[6];
    uint64_t position, flags, open_flags;
    struct file file;
    struct place from, to;
};

static struct call *calls[BUCKETS];
static uint64_t order, lines, most = UINT64_MAX;
static dev_t device;
static struct stat marks;
static double duration_s = 5, first_mark_s = -1, told_s = -1, start_s;
static bool is_full;
static pid_t leader;
static volatile sig_atomic_t is_due;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void refuse(const char *what)
{
    fprintf(stderr, "file_calls: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct call *call_of(pid_t thread)
{
    struct call **place = &calls[(unsigned)thread % BUCKETS];
    for (struct call *call = *place; call != NULL; call = call->next)
        if (call->thread == thread)
            return call;
    struct call *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        refuse("no memory");
    fresh->thread = thread;
    fresh->next = *place;
    return *place = fresh;
}

static void forget(pid_t thread)
{
    for (struct call **place = &calls[(unsigned)thread % BUCKETS]; *place != NULL; place = &(*place)->next)
        if ((*place)->thread == thread) {
            struct call *gone = *place;
            *place = gone->next;
            free(gone);
            return;
        }
}

static void put_text(const char *text, size_t length)
{
    putchar('\t');
    for (size_t at = 0; at < length; at++)
        if (text[at] == '\\')
            fputs("\\\\", stdout);
        else if (text[at] == '\t')
            fputs("\\t", stdout);
        else if (text[at] == '\n')
            fputs("\\n", stdout);
        else
            putchar(text[at]);
}

static void put(const char *text) { put_text(text, strlen(text)); }

static void put_number(uint64_t number) { printf("\t%llu", (unsigned long long)number); }

static void put_file(const struct stat *status)
{
    printf("\t%llx:%llu", (unsigned long long)status->st_dev, (unsigned long long)status->st_ino);
}

static void begin_line(const struct call *call, const char *kind)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%llu\t%llu\t%d\t%llu\t%s", (unsigned long long)call->entry, (unsigned long long)order, (int)call->thread,
           (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec, kind);
}

static void end_line(void)
{
    putchar('\n');
    lines++;
}

/* What stands in the program's memory; as much as there is of it. */
static size_t read_memory(pid_t thread, uint64_t address, void *to, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};
    ssize_t count = process_vm_readv(thread, &here, 1, &there, 1, 0);
    return count < 0 ? 0 : (size_t)count;
}

static bool read_text(pid_t thread, uint64_t address, char *to, size_t bytes)
{
    size_t length = 0;
    while (length < bytes) {
        /* Not beyond a page, whose neighbour may not be there. */
        size_t part = 4096 - (address + length) % 4096;
        part = part > bytes - length ? bytes - length : part;
        size_t count = read_memory(thread, address + length, to + length, part);
        if (count == 0)
            return false;
        if (memchr(to + length, 0, count) != NULL)
            return true;
        length += count;
    }
    return false;
}

static bool look(const char *place, struct file *file, bool follows)
{
    file->is_there = (follows ? stat(place, &file->status) : lstat(place, &file->status)) == 0;
    return file->is_there;
}

static bool is_ours(const struct file *file)
{
    return file->is_there && file->status.st_dev == device
           && (S_ISREG(file->status.st_mode) || S_ISDIR(file->status.st_mode));
}

/* The file of a descriptor, its path, position and flags, while the program stands still. */
static bool look_at_descriptor(struct call *call, int descriptor)
{
    char place[64], text[512];
    snprintf(place, sizeof place, "/proc/%d/fd/%d", (int)call->thread, descriptor);
    if (!look(place, &call->file, true))
        return false;
    ssize_t length = readlink(place, call->file.path, sizeof call->file.path - 1);
    call->file.path[length < 0 ? 0 : length] = 0;
    call->position = call->flags = 0;
    if (!is_ours(&call->file))
        return false;
    snprintf(place, sizeof place, "/proc/%d/fdinfo/%d", (int)call->thread, descriptor);
    int info = open(place, O_RDONLY | O_CLOEXEC);
    ssize_t count = info < 0 ? -1 : read(info, text, sizeof text - 1);
    if (info >= 0)
        close(info);
    if (count > 0) {
        text[count] = 0;
        unsigned long long position = 0, flags = 0;
        if (sscanf(text, "pos: %llu flags: %llo", &position, &flags) == 2) {
            call->position = position;
            call->flags = flags;
        }
    }
    if (call->flags & O_APPEND)
        call->position = (uint64_t)call->file.status.st_size;
    return true;
}

/* What a path of the program's leads to, and the folder that its last name stands in. */
static bool look_at_path(struct call *call, int folder, uint64_t address, struct place *place)
{
    char path[PATH_MAX], full[PATH_MAX + 64];
    place->is_there = place->target.is_there = false;
    if (!read_text(call->thread, address, path, sizeof path) || path[0] == 0)
        return false;
    if (path[0] == '/')
        snprintf(full, sizeof full, "%s", path);
    else if (folder == AT_FDCWD)
        snprintf(full, sizeof full, "/proc/%d/cwd/%s", (int)call->thread, path);
    else
        snprintf(full, sizeof full, "/proc/%d/fd/%d/%s", (int)call->thread, folder, path);
    for (size_t length = strlen(full); length > 1 && full[length - 1] == '/'; length--)
        full[length - 1] = 0;
    char *slash = strrchr(full, '/');
    if (slash == NULL || strlen(slash + 1) > NAME_MAX)
        return false;
    snprintf(place->name, sizeof place->name, "%s", slash + 1);
    look(full, &place->target, false);
    *slash = 0;
    int directory = open(full[0] ? full : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return false;
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(self, place->directory, sizeof place->directory - 1);
    place->directory[length < 0 ? 0 : length] = 0;
    place->is_there = fstat(directory, &place->folder) == 0 && place->folder.st_dev == device;
    close(directory);
    return place->is_there;
}

/* The same once more, behind the call. */
static bool look_again(struct place *place)
{
    char full[PATH_MAX + NAME_MAX + 2];
    snprintf(full, sizeof full, "%s/%s", place->directory, place->name);
    return place->is_there && look(full, &place->target, false);
}

static void put_name(const struct call *call, const char *kind, const char *how, const struct place *place)
{
    begin_line(call, kind);
    put(how);
    put_file(&place->folder);
    put(place->name);
    put_file(&place->target.status);
    put(place->directory);
    end_line();
}

static void put_write(const struct call *call, uint64_t offset, uint64_t length, bool waits)
{
    begin_line(call, "write");
    put_file(&call->file.status);
    put_number(offset);
    put_number(length);
    put_number(waits);
    put_number((uint64_t)call->file.status.st_size);
    put(call->file.path);
    end_line();
}

static void put_size(const struct call *call, const struct file *file, uint64_t to)
{
    uint64_t from = (uint64_t)file->status.st_size;
    if (from == to)
        return;
    begin_line(call, "size");
    put(to < from ? "truncate" : "grow");
    put_file(&file->status);
    put_number(from);
    put_number(to);
    put(file->path);
    end_line();
}

static void put_sync(const struct call *call, const char *how, uint64_t offset, uint64_t length)
{
    begin_line(call, "sync");
    put(how);
    put_file(&call->file.status);
    put_number(offset);
    put_number(length);
    put(call->file.path);
    end_line();
}

static void put_one(const struct call *call, const char *kind, const char *word)
{
    begin_line(call, kind);
    put(word);
    end_line();
}

static bool is_marks(const struct file *file)
{
    return file->is_there && file->status.st_dev == marks.st_dev && file->status.st_ino == marks.st_ino;
}

/* Its text, before anything that comes behind it can happen. */
static void put_mark(struct call *call)
{
    char text[MARK_BYTES_MOST];
    size_t length = 0;
    if (call->number == SYS_writev) {
        struct iovec parts[VECTORS_MOST];
        size_t count = call->arguments[2] > VECTORS_MOST ? VECTORS_MOST : call->arguments[2];
        count = read_memory(call->thread, call->arguments[1], parts, count * sizeof *parts) / sizeof *parts;
        for (size_t part = 0; part < count; part++) {
            size_t bytes = parts[part].iov_len > sizeof text - length ? sizeof text - length : parts[part].iov_len;
            length += read_memory(call->thread, (uintptr_t)parts[part].iov_base, text + length, bytes);
        }
    } else {
        size_t bytes = call->arguments[2] > sizeof text ? sizeof text : call->arguments[2];
        length = read_memory(call->thread, call->arguments[1], text, bytes);
    }
    if (first_mark_s < 0)
        first_mark_s = now_s();
    begin_line(call, "mark");
    put_text(text, length);
    end_line();
}

/* Each file of the folder that is mapped there, shared and writable. */
static void each_mapping(struct call *call, uint64_t from, uint64_t to, bool syncs)
{
    char place[64], line[PATH_MAX + 256];
    snprintf(place, sizeof place, "/proc/%d/maps", (int)call->thread);
    FILE *maps = fopen(place, "re");
    if (maps == NULL)
        return;
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long long begin, end, offset;
        char rights[8];
        int at = 0;
        if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &begin, &end, rights, &offset, &at) < 4 || at == 0
            || begin >= to || end <= from || rights[3] != 's' || line[at] != '/')
            continue;
        /* By the link of the mapping itself, as a name may be another file's by now. */
        snprintf(place, sizeof place, "/proc/%d/map_files/%llx-%llx", (int)call->thread, begin, end);
        line[strcspn(line, "\n")] = 0;
        if (!look(place, &call->file, true) && !look(line + at, &call->file, true))
            continue;
        if (!is_ours(&call->file))
            continue;
        snprintf(call->file.path, sizeof call->file.path, "%.*s", PATH_MAX - 1, line + at);
        if (syncs) {
            uint64_t first = from > begin ? from : begin, last = to < end ? to : end;
            put_sync(call, "msync", offset + first - begin, last - first);
        } else if (rights[1] == 'w') {
            begin_line(call, "map");
            put_file(&call->file.status);
            put(call->file.path);
            end_line();
        }
    }
    fclose(maps);
}

/* What a call is about is looked up before it happens: the file of a descriptor. */
static void enter_descriptor(struct call *call)
{
    const uint64_t *argument = call->arguments;
    int64_t offset = 0;
    switch (call->number) {
    case SYS_write:
    case SYS_writev:
        if (look_at_descriptor(call, (int)argument[0]) || !is_marks(&call->file))
            break;
        put_mark(call);
        call->file.is_there = false;
        break;
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_flock:
    case SYS_fcntl:
    case SYS_ioctl:
    case SYS_sendfile:
    case SYS_syncfs:
        look_at_descriptor(call, (int)argument[0]);
        break;
    case SYS_copy_file_range:
    case SYS_splice:
        look_at_descriptor(call, (int)argument[2]);
        if (argument[3] != 0 && read_memory(call->thread, argument[3], &offset, sizeof offset) == sizeof offset)
            call->position = (uint64_t)offset;
        break;
    default:
        break;
    }
}

/* The names of a call, and what they lead to. */
static void enter_names(struct call *call)
{
    const uint64_t *argument = call->arguments;
    switch (call->number) {
    case SYS_truncate:
        if (look_at_path(call, AT_FDCWD, argument[0], &call->to)) {
            call->file = call->to.target;
            snprintf(call->file.path, sizeof call->file.path, "%.*s/%.*s", PATH_MAX - NAME_MAX - 2, call->to.directory,
                     NAME_MAX, call->to.name);
        }
        break;
    case SYS_openat2:
        read_memory(call->thread, argument[2], &call->open_flags, sizeof call->open_flags);
        look_at_path(call, (int)argument[0], argument[1], &call->to);
        break;
    case SYS_openat:
        call->open_flags = argument[2];
        look_at_path(call, (int)argument[0], argument[1], &call->to);
        break;
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_mknodat:
        look_at_path(call, (int)argument[0], argument[1], &call->to);
        break;
    case SYS_renameat2:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
        look_at_path(call, (int)argument[0], argument[1], &call->from);
        look_at_path(call, (int)argument[2], argument[3], &call->to);
        break;
    case SYS_linkat:
        look_at_path(call, (int)argument[2], argument[3], &call->to);
        break;
    case SYS_symlinkat:
        look_at_path(call, (int)argument[1], argument[2], &call->to);
        break;
    default:
        break;
    }
}

#ifdef SYS_open
/* The older calls of x86, which begin at the working folder. */
static void enter_old_names(struct call *call)
{
    const uint64_t *argument = call->arguments;
    switch (call->number) {
    case SYS_open:
    case SYS_creat:
        call->open_flags = call->number == SYS_open ? argument[1] : O_CREAT | O_TRUNC;
        look_at_path(call, AT_FDCWD, argument[0], &call->to);
        break;
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_mkdir:
    case SYS_mknod:
        look_at_path(call, AT_FDCWD, argument[0], &call->to);
        break;
    case SYS_rename:
        look_at_path(call, AT_FDCWD, argument[0], &call->from);
        look_at_path(call, AT_FDCWD, argument[1], &call->to);
        break;
    case SYS_link:
    case SYS_symlink:
        look_at_path(call, AT_FDCWD, argument[1], &call->to);
        break;
    default:
        break;
    }
}
#endif

static void leave_open(struct call *call, int descriptor)
{
    uint64_t flags = call->open_flags;
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE)
        return;
    struct file before = call->to.target;
    if (!look_at_descriptor(call, descriptor))
        return;
    /* A link that was followed leads to a file of another name, which was there or not: its size says nothing then. */
    if (before.is_there && S_ISREG(before.status.st_mode) && before.status.st_ino == call->file.status.st_ino) {
        if (flags & O_TRUNC) {
            struct file truncated = before;
            memcpy(truncated.path, call->file.path, sizeof truncated.path);
            put_size(call, &truncated, 0);
        }
        return;
    }
    if (before.is_there || !call->to.is_there)
        return;
    call->to.target = call->file;
    put_name(call, "add", "create", &call->to);
}

static void leave_rename(struct call *call, uint64_t flags)
{
    if (!call->from.is_there || !call->to.is_there || !call->from.target.is_there)
        return;
    struct place moved = call->to;
    begin_line(call, "rename");
    put_file(&call->from.folder);
    put(call->from.name);
    put_file(&call->to.folder);
    put(call->to.name);
    put_file(&call->from.target.status);
    if (call->to.target.is_there && !(flags & RENAME_EXCHANGE))
        put_file(&call->to.target.status);
    else
        put("-");
    put(call->from.directory);
    put(call->to.directory);
    end_line();
    if (!(flags & RENAME_EXCHANGE))
        return;
    moved = call->from;
    moved.target = call->to.target;
    put_name(call, "add", "exchange", &moved);
}

static void put_zero(const struct call *call, const char *how, uint64_t offset, uint64_t length)
{
    begin_line(call, "zero");
    put(how);
    put_file(&call->file.status);
    put_number(offset);
    put_number(length);
    put_number((uint64_t)call->file.status.st_size);
    put(call->file.path);
    end_line();
}

static void leave_allocate(const struct call *call)
{
    uint64_t mode = call->arguments[1], offset = call->arguments[2], length = call->arguments[3];
    const char *how = mode & FALLOC_FL_PUNCH_HOLE       ? "punch"
                      : mode & FALLOC_FL_ZERO_RANGE     ? "zero"
                      : mode & FALLOC_FL_COLLAPSE_RANGE ? "collapse"
                      : mode & FALLOC_FL_INSERT_RANGE   ? "insert"
                                                        : NULL;
    if (how == NULL) {
        if (!(mode & FALLOC_FL_KEEP_SIZE) && offset + length > (uint64_t)call->file.status.st_size)
            put_size(call, &call->file, offset + length);
        return;
    }
    put_zero(call, how, offset, length);
}

/* What it came to, once it has: bytes that were written. */
static void leave_write(const struct call *call, uint64_t length)
{
    const uint64_t *argument = call->arguments;
    bool waits = (call->flags & O_DSYNC) != 0;
    uint64_t offset = call->position;
    switch (call->number) {
    case SYS_pwritev2:
        waits = waits || argument[5] & (RWF_DSYNC | RWF_SYNC);
        offset = argument[3] == UINT64_MAX ? offset : argument[3];
        break;
    case SYS_pwrite64:
    case SYS_pwritev:
        offset = call->flags & O_APPEND ? offset : argument[3];
        break;
    case SYS_write:
    case SYS_writev:
    case SYS_sendfile:
    case SYS_copy_file_range:
    case SYS_splice:
        break;
    default:
        return;
    }
    if (length > 0)
        put_write(call, offset, length, waits);
}

/* Syncs, sizes, locks: of a descriptor of ours, or of a path (truncate). */
static void leave_descriptor(const struct call *call)
{
    const uint64_t *argument = call->arguments;
    switch (call->number) {
    case SYS_fsync:
        put_sync(call, "fsync", 0, 0);
        break;
    case SYS_fdatasync:
        put_sync(call, "fdatasync", 0, 0);
        break;
    case SYS_sync_file_range:
        put_sync(call, "range", argument[1], argument[2]);
        break;
    case SYS_ftruncate:
    case SYS_truncate:
        put_size(call, &call->file, argument[1]);
        break;
    case SYS_fallocate:
        leave_allocate(call);
        break;
    case SYS_fcntl:
        if (argument[1] != F_SETLK && argument[1] != F_SETLKW && argument[1] != F_OFD_SETLK && argument[1] != F_OFD_SETLKW)
            break;
        /* fall through */
    case SYS_flock:
        begin_line(call, "lock");
        put_file(&call->file.status);
        end_line();
        break;
    case SYS_ioctl:
        if (argument[1] == FICLONE || argument[1] == FICLONERANGE)
            put_zero(call, "clone", 0, 0);
        break;
    default:
        break;
    }
}

/* Memory, everything at once, and what cannot be followed. */
static void leave_others(struct call *call, uint64_t result)
{
    const uint64_t *argument = call->arguments;
    switch (call->number) {
    case SYS_msync:
        if (argument[2] & MS_SYNC)
            each_mapping(call, argument[0], argument[0] + argument[1], true);
        break;
    case SYS_mmap:
        if (argument[3] & MAP_SHARED && argument[2] & PROT_WRITE && !(argument[3] & MAP_ANONYMOUS))
            each_mapping(call, result, result + argument[1], false);
        break;
    case SYS_mprotect:
        if (argument[2] & PROT_WRITE)
            each_mapping(call, argument[0], argument[0] + argument[1], false);
        break;
    case SYS_sync:
        put_one(call, "all", "sync");
        break;
    case SYS_syncfs:
        if (call->file.is_there && call->file.status.st_dev == device)
            put_one(call, "all", "syncfs");
        break;
#ifdef SYS_io_uring_setup
    case SYS_io_uring_setup:
        put_one(call, "unseen", "io_uring");
        break;
#endif
    case SYS_io_submit:
        put_one(call, "unseen", "io_submit");
        break;
    default:
        break;
    }
}

static void put_added(struct call *call, const char *how)
{
    if (look_again(&call->to))
        put_name(call, "add", how, &call->to);
}

static void put_removed(const struct call *call, bool is_folder)
{
    if (call->to.is_there && call->to.target.is_there)
        put_name(call, "remove", is_folder ? "rmdir" : "unlink", &call->to);
}

static void leave_names(struct call *call, int result)
{
    switch (call->number) {
    case SYS_openat:
    case SYS_openat2:
        leave_open(call, result);
        break;
    case SYS_renameat2:
        leave_rename(call, call->arguments[4]);
        break;
#ifdef SYS_renameat
    case SYS_renameat:
        leave_rename(call, 0);
        break;
#endif
    case SYS_linkat:
        put_added(call, "link");
        break;
    case SYS_symlinkat:
        put_added(call, "symlink");
        break;
    case SYS_mkdirat:
        put_added(call, "mkdir");
        break;
    case SYS_mknodat:
        put_added(call, "mknod");
        break;
    case SYS_unlinkat:
        put_removed(call, call->arguments[2] & AT_REMOVEDIR);
        break;
    default:
        break;
    }
}

#ifdef SYS_open
static void leave_old_names(struct call *call, int result)
{
    switch (call->number) {
    case SYS_open:
    case SYS_creat:
        leave_open(call, result);
        break;
    case SYS_rename:
        leave_rename(call, 0);
        break;
    case SYS_link:
        put_added(call, "link");
        break;
    case SYS_symlink:
        put_added(call, "symlink");
        break;
    case SYS_mkdir:
        put_added(call, "mkdir");
        break;
    case SYS_mknod:
        put_added(call, "mknod");
        break;
    case SYS_unlink:
    case SYS_rmdir:
        put_removed(call, call->number == SYS_rmdir);
        break;
    default:
        break;
    }
}
#endif

static void stop_at_call(pid_t thread)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0)
        return;
    struct call *call = call_of(thread);
    order++;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        call->is_open = true;
        call->entry = order;
        call->number = (long)info.entry.nr;
        for (size_t at = 0; at < 6; at++)
            call->arguments[at] = info.entry.args[at];
        call->file.is_there = call->from.is_there = call->to.is_there = false;
        call->flags = call->position = call->open_flags = 0;
        enter_descriptor(call);
        enter_names(call);
#ifdef SYS_open
        enter_old_names(call);
#endif
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && call->is_open) {
        call->is_open = false;
        if (info.exit.is_error)
            return;
        if (is_ours(&call->file)) {
            leave_write(call, (uint64_t)info.exit.rval);
            leave_descriptor(call);
        }
        leave_others(call, (uint64_t)info.exit.rval);
        leave_names(call, (int)info.exit.rval);
#ifdef SYS_open
        leave_old_names(call, (int)info.exit.rval);
#endif
    }
}

static void on_alarm(int number)
{
    (void)number;
    is_due = 1;
}

/* Ends the program when its time is over; it is not asked how. */
static void look_at_time(void)
{
    double now = now_s();
    if (told_s >= 0) {
        kill(leader, now - told_s > PATIENCE_S ? SIGKILL : SIGTERM);
        return;
    }
    is_full = lines > most;
    double end_s = first_mark_s < 0 ? start_s + PREPARATION_S : first_mark_s + duration_s + PATIENCE_S;
    if (is_full || now > end_s) {
        told_s = now;
        kill(leader, SIGTERM);
    }
}

static void go_on(pid_t thread, int status)
{
    int event = status >> 16, number = WSTOPSIG(status);
    if (number == (SIGTRAP | 0x80)) {
        stop_at_call(thread);
        ptrace(PTRACE_SYSCALL, thread, 0, 0);
    } else if (event == PTRACE_EVENT_STOP) {
        bool halted = number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
        ptrace(halted ? PTRACE_LISTEN : PTRACE_SYSCALL, thread, 0, 0);
    } else {
        ptrace(PTRACE_SYSCALL, thread, 0, event ? 0 : number);
    }
}

static int follow(void)
{
    for (;;) {
        int status;
        if (is_due || lines > most) {
            is_due = 0;
            look_at_time();
        }
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == EINTR)
            continue;
        if (thread < 0)
            refuse("the program is gone");
        if (WIFSTOPPED(status)) {
            go_on(thread, status);
            continue;
        }
        forget(thread);
        if (thread == leader)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

static void start(char **program, int output)
{
    /* Kept apart from an exit status of the program's own: what could not be executed says so through a pipe that ends with exec. */
    leader = fork();
    if (leader < 0)
        refuse("fork");
    if (leader == 0) {
        raise(SIGSTOP);
        dup2(output, STDOUT_FILENO);
        execvp(program[0], program);
        int number = errno;
        fprintf(stderr, "%s: %s\n", program[0], strerror(number));
        _exit(number == ENOENT ? 127 : 126);
    }
    int status;
    if (waitpid(leader, &status, WUNTRACED) != leader || !WIFSTOPPED(status))
        refuse("the program did not start");
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC
                   | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, leader, 0, options))
        refuse("the kernel does not let it be followed (ptrace)");
    kill(leader, SIGCONT);
}

int main(int count, char **words)
{
    const char *folder = NULL;
    int at = 1;
    for (; at + 1 < count && strcmp(words[at], "--") != 0; at += 2)
        if (strcmp(words[at], "--folder") == 0)
            folder = words[at + 1];
        else if (strcmp(words[at], "--duration") == 0)
            duration_s = strtod(words[at + 1], NULL);
        else if (strcmp(words[at], "--most") == 0)
            most = strtoull(words[at + 1], NULL, 10);
        else
            break;
    if (folder == NULL || at + 1 >= count || strcmp(words[at], "--") != 0) {
        fprintf(stderr, "usage: file_calls --folder DIR --duration S --most N -- PROGRAM ARGUMENTS\n");
        return 2;
    }
    struct stat status;
    int output = memfd_create("marks", MFD_CLOEXEC);
    if (stat(folder, &status) || output < 0 || fstat(output, &marks))
        refuse(folder);
    device = status.st_dev;
    static char buffer[1 << 20];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval each = {{1, 0}, {1, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    start_s = now_s();
    start(words + at + 1, output);
    int ended = follow();
    struct call nobody = {.entry = order};
    begin_line(&nobody, "end");
    put_number((uint64_t)ended);
    put_number(is_full);
    end_line();
    if (fflush(stdout) || ferror(stdout))
        refuse("standard output");
    return 0;
}
