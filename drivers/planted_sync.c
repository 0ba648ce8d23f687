/*
 * Preloaded into the writer of somebody's own engine: breaks what syncs promise, so that it is known that cuts find it
 * (`power-cut try --plant`).
 *
 * Calls that the C library makes for a program are reached. System calls that a program makes by itself (Go, io_uring, a static
 * program) are not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EX_USAGE = 64 };

enum plant { DROP_ALL, DROP_THIRD, DROP_OF_FOLDERS };

static const char *const names[] = {"drop-fsync", "drop-third-fsync", "drop-directory-fsync"};
static enum plant plant;
static atomic_uint calls;

/* A wrong name must not run: its cuts would be those of the engine itself. */
__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("BEDPLATE_PLANT");
    for (size_t each = 0; name != NULL && each < sizeof names / sizeof *names; each++)
        if (strcmp(name, names[each]) == 0) {
            plant = (enum plant)each;
            return;
        }
    dprintf(STDERR_FILENO, "planted_sync: BEDPLATE_PLANT is %s, and no fault\n", name == NULL ? "not set" : name);
    _exit(EX_USAGE);
}

static int is_folder(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 && S_ISDIR(file.st_mode);
}

static int is_dropped(int fd)
{
    if (plant == DROP_THIRD)
        return atomic_fetch_add(&calls, 1) % 3 == 2;
    return plant == DROP_ALL || (fd >= 0 && is_folder(fd));
}

int fsync(int fd) { return is_dropped(fd) ? 0 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return is_dropped(fd) ? 0 : (int)syscall(SYS_fdatasync, fd); }
int syncfs(int fd) { return is_dropped(fd) ? 0 : (int)syscall(SYS_syncfs, fd); }

void sync(void)
{
    if (!is_dropped(-1))
        syscall(SYS_sync);
}

int msync(void *address, size_t bytes, int flags)
{
    return (flags & MS_SYNC) && is_dropped(-1) ? 0 : (int)syscall(SYS_msync, address, bytes, flags);
}

/* Each write of such a file is a sync, and is dropped or not with all of them. */
static int without_sync(int flags) { return plant == DROP_OF_FOLDERS ? flags : flags & ~(O_SYNC | O_DSYNC); }

#define WITH_MODE(last)                                                                                                  \
    mode_t mode = 0;                                                                                                     \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                                               \
        va_list more;                                                                                                    \
        va_start(more, last);                                                                                            \
        mode = va_arg(more, mode_t);                                                                                     \
        va_end(more);                                                                                                    \
    }

#define OPEN(name)                                                                                                       \
    int name(const char *path, int flags, ...)                                                                           \
    {                                                                                                                    \
        WITH_MODE(flags)                                                                                                 \
        return (int)syscall(SYS_openat, AT_FDCWD, path, without_sync(flags), mode);                                      \
    }

#define OPENAT(name)                                                                                                     \
    int name(int folder, const char *path, int flags, ...)                                                               \
    {                                                                                                                    \
        WITH_MODE(flags)                                                                                                 \
        return (int)syscall(SYS_openat, folder, path, without_sync(flags), mode);                                        \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
