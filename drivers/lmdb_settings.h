/*
 * The settings of LMDB that drivers have in common: taken from the command line, as flags, and what preallocation does.
 * Whoever includes this has included arguments.h, and has stop_signal and BYTES_MAX.
 */
#ifndef BEDPLATE_LMDB_SETTINGS_H
#define BEDPLATE_LMDB_SETTINGS_H

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define LMDB_SETTINGS_USAGE \
    "  writemap       true: write through the memory map (MDB_WRITEMAP); false (default)\n" \
    "  readahead      false: no readahead for the map (MDB_NORDAHEAD); true (default)\n" \
    "  preallocation  none (default), ftruncate, fallocate, written: of a new database\n"

enum sync_mode { SYNC_FULL, SYNC_NOMETASYNC, SYNC_NOSYNC, SYNC_MAPASYNC };
enum preallocation { PREALLOCATE_NONE, PREALLOCATE_FTRUNCATE, PREALLOCATE_FALLOCATE, PREALLOCATE_WRITTEN };
enum { ZEROS_BYTES = 1024 * 1024, META_PAGES = 2 };

static const char *const SYNC_WORDS[] = {"full", "nometasync", "nosync", "mapasync", NULL};
static const unsigned SYNC_FLAGS[] = {0, MDB_NOMETASYNC, MDB_NOSYNC, MDB_MAPASYNC};
static const char *const PREALLOCATION_WORDS[] = {"none", "ftruncate", "fallocate", "written", NULL};
static const char *const TRUTH_WORDS[] = {"false", "true", NULL};

struct lmdb_settings {
    enum sync_mode sync;
    enum preallocation preallocation;
    bool writemap, no_readahead;
    uint64_t map_bytes;
};

/* False where there is no such setting. */
static inline bool lmdb_take(struct lmdb_settings *settings, const char *name, const char *value)
{
    if (strcmp(name, "sync") == 0)
        settings->sync = (enum sync_mode)word("set sync", value, SYNC_WORDS);
    else if (strcmp(name, "writemap") == 0)
        settings->writemap = word("set writemap", value, TRUTH_WORDS) == 1;
    else if (strcmp(name, "readahead") == 0)
        settings->no_readahead = word("set readahead", value, TRUTH_WORDS) == 0;
    else if (strcmp(name, "preallocation") == 0)
        settings->preallocation = (enum preallocation)word("set preallocation", value, PREALLOCATION_WORDS);
    else if (strcmp(name, "map_bytes") == 0)
        settings->map_bytes = number_in_steps("set map_bytes", value, 1, BYTES_MAX, (uint64_t)sysconf(_SC_PAGESIZE));
    else
        return false;
    return true;
}

static inline void lmdb_check(const struct lmdb_settings *settings)
{
    if (settings->sync == SYNC_MAPASYNC && !settings->writemap)
        usage_error("--set sync=mapasync says how a writable map is written: it needs --set writemap=true");
}

/* Those of the map; how it is synced is said by SYNC_FLAGS. */
static inline unsigned lmdb_map_flags(const struct lmdb_settings *settings)
{
    return (settings->writemap ? MDB_WRITEMAP : 0) | (settings->no_readahead ? MDB_NORDAHEAD : 0);
}

/* An errno, or 0. */
static inline int lmdb_write_zeros(int file, uint64_t from, uint64_t to)
{
    static char zeros[ZEROS_BYTES];
    while (from < to && stop_signal == 0) {
        size_t part = to - from < ZEROS_BYTES ? (size_t)(to - from) : ZEROS_BYTES;
        ssize_t written = pwrite(file, zeros, part, (off_t)from);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : ENOSPC;
        from += (uint64_t)written;
    }
    return 0;
}

/*
 * From behind the meta pages on, which hold data by now, to the end of the map; no other page does yet. The library's code,
 * or an errno, of which it has the text too; `step` is then what failed.
 */
static inline int lmdb_preallocate(MDB_env *env, const struct lmdb_settings *settings, const char **step)
{
    int file, code;
    MDB_stat stat;
    off_t end = (off_t)settings->map_bytes;
    *step = "preallocate";
    if (settings->preallocation == PREALLOCATE_NONE)
        return 0;
    if ((code = mdb_env_stat(env, &stat)) != 0 || (code = mdb_env_get_fd(env, &file)) != 0)
        return code;
    switch (settings->preallocation) {
    case PREALLOCATE_NONE: break;
    case PREALLOCATE_FTRUNCATE:
        *step = "preallocate: ftruncate";
        code = ftruncate(file, end) == 0 ? 0 : errno;
        break;
    case PREALLOCATE_FALLOCATE:
        /* Not posix_fallocate(3), which writes zeros where the file system cannot: another level of the factor. */
        *step = "preallocate: fallocate";
        code = fallocate(file, 0, 0, end) == 0 ? 0 : errno;
        break;
    case PREALLOCATE_WRITTEN:
        *step = "preallocate: written";
        code = lmdb_write_zeros(file, META_PAGES * (uint64_t)stat.ms_psize, settings->map_bytes);
        break;
    }
    if (code != 0)
        return code;
    *step = "preallocate: fsync";
    return fsync(file) == 0 ? 0 : errno;
}

#endif
