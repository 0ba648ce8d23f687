/* Makes, opens, preallocates and measures the environment; the calls for each entry stand in database.h. */
#define _GNU_SOURCE
#include "database.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ZEROS_BYTES = 1024 * 1024, READERS_BESIDE = 16 };
static const unsigned SYNC_FLAGS = MDB_NOSYNC | MDB_NOMETASYNC | MDB_MAPASYNC;

static void path_of(const struct database *database, const char *name, char path[PATH_MAX])
{
    if (snprintf(path, PATH_MAX, "%s/%s", database->options->directory, name) >= PATH_MAX)
        fail(ENAMETOOLONG, "name the database");
}

static unsigned sync_flags(const struct database *database, const struct test *test)
{
    if (!test_writes(test))
        return MDB_NOSYNC;
    switch (test_sync(database->options, test)) {
    case SYNC_NOMETASYNC: return MDB_NOMETASYNC;
    case SYNC_NOSYNC: return MDB_NOSYNC;
    case SYNC_MAPASYNC: return MDB_MAPASYNC;
    default: return 0;
    }
}

static void open_environment(struct database *database, const struct test *test)
{
    const struct options *options = database->options;
    unsigned flags = sync_flags(database, test) | (options->writemap ? MDB_WRITEMAP : 0) |
                     (options->readahead ? 0 : MDB_NORDAHEAD);
    MDB_txn *txn;
    demand(mdb_env_create(&database->env), "create the environment");
    demand(mdb_env_set_mapsize(database->env, options->map_bytes), "set the map's size");
    demand(mdb_env_set_maxreaders(database->env, (unsigned)options->threads + READERS_BESIDE), "set the readers");
    demand(mdb_env_open(database->env, options->directory, flags, 0664), "open the environment");
    database->is_open = true;
    demand(mdb_txn_begin(database->env, NULL, MDB_RDONLY, &txn), "open the database");
    demand(mdb_dbi_open(txn, NULL, 0, &database->dbi), "open the database");
    demand(mdb_txn_commit(txn), "open the database");
}

/* Zeros from behind the meta pages, which hold data by now, to the end of the map. */
static void write_zeros(int file, uint64_t from, uint64_t to)
{
    static char zeros[ZEROS_BYTES];
    while (from < to && stop_signal == 0) {
        size_t part = to - from < ZEROS_BYTES ? (size_t)(to - from) : ZEROS_BYTES;
        ssize_t written = pwrite(file, zeros, part, (off_t)from);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            fail(written < 0 ? errno : ENOSPC, "preallocate: written");
        from += (uint64_t)written;
    }
}

static void preallocate(const struct database *database)
{
    uint64_t map_bytes = database->options->map_bytes;
    char path[PATH_MAX];
    MDB_stat stat;
    if (database->options->preallocation == PREALLOCATE_NONE)
        return;
    path_of(database, "data.mdb", path);
    demand(mdb_env_stat(database->env, &stat), "preallocate");
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        fail(errno, "preallocate");
    switch (database->options->preallocation) {
    case PREALLOCATE_FTRUNCATE:
        if (ftruncate(file, (off_t)map_bytes) != 0)
            fail(errno, "preallocate: ftruncate");
        break;
    case PREALLOCATE_FALLOCATE:
        /* Not posix_fallocate(3), which writes zeros where the file system cannot: another level of the factor. */
        if (fallocate(file, 0, 0, (off_t)map_bytes) != 0)
            fail(errno, "preallocate: fallocate");
        break;
    case PREALLOCATE_WRITTEN: write_zeros(file, 2 * (uint64_t)stat.ms_psize, map_bytes); break;
    case PREALLOCATE_NONE: break;
    }
    if (fsync(file) != 0)
        fail(errno, "preallocate: fsync");
    close(file);
}

static bool is_there(const struct database *database, const char *name)
{
    char path[PATH_MAX];
    path_of(database, name, path);
    return access(path, F_OK) == 0;
}

static void remove_file(const struct database *database, const char *name)
{
    char path[PATH_MAX];
    path_of(database, name, path);
    if (unlink(path) != 0 && errno != ENOENT)
        fail(errno, "remove the database of the test before");
}

void database_make(struct database *database, const struct test *test)
{
    database->keys = test_entries(database->options, test);
    if (database->null)
        return;
    if (database->is_open) {
        database_close(database);
        remove_file(database, "data.mdb");
        remove_file(database, "lock.mdb");
    } else if (is_there(database, "data.mdb")) {
        fail_with("a database is in the directory already; remove it, or read it with --existing", EEXIST,
                  "create the environment");
    }
    open_environment(database, test);
    preallocate(database);
}

void database_keep(struct database *database, const struct test *test)
{
    if (database->keys == 0 || test->kind == OVERWRITE)
        database->keys = test_entries(database->options, test);
    if (database->null)
        return;
    if (!database->is_open) {
        if (!is_there(database, "data.mdb"))
            fail(ENOENT, "open the environment");
        open_environment(database, test);
        return;
    }
    if (!test_writes(test))
        return;
    unsigned wanted = sync_flags(database, test), found;
    demand(mdb_env_get_flags(database->env, &found), "change the sync mode");
    if ((found & SYNC_FLAGS) == wanted)
        return;
    /* What the test before left unwritten would be flushed by the first commit of this one. */
    database_flush(database);
    demand(mdb_env_set_flags(database->env, SYNC_FLAGS, 0), "change the sync mode");
    demand(mdb_env_set_flags(database->env, wanted, 1), "change the sync mode");
}

void database_close(struct database *database)
{
    if (database->is_open)
        mdb_env_close(database->env);
    database->is_open = false;
}

void database_flush(struct database *database)
{
    if (!database->null)
        demand(mdb_env_sync(database->env, 1), "flush");
}

void database_space(const struct database *database, struct outcome *outcome)
{
    struct stat stat;
    char path[PATH_MAX];
    if (database->null)
        return;
    path_of(database, "data.mdb", path);
    if (lstat(path, &stat) != 0)
        fail(errno, "measure the space");
    outcome->has_file = true;
    outcome->data_size_bytes = (uint64_t)stat.st_size;
    outcome->data_allocated_bytes = (uint64_t)stat.st_blocks * 512; /* of 512 bytes on Linux, whatever the block */
}

/* The empty statements keep the compiler from knowing what these give. */
int null_call(const void *first, const void *second, const void *third)
{
    __asm__ volatile("" : : "r"(first), "r"(second), "r"(third) : "memory");
    return 0;
}

int null_read(const struct database *database, MDB_val *key, MDB_val *value)
{
    __asm__ volatile("" : : "r"(key) : "memory");
    *value = database->null_value;
    return 0;
}

int null_step(const struct database *database, uint64_t *left, MDB_val *key, MDB_val *value)
{
    if (*left == 0)
        return MDB_NOTFOUND;
    --*left;
    *key = *value = database->null_value;
    key->mv_size = KEY_BYTES;
    return 0;
}
