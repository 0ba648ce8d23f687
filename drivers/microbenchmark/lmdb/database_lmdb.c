/*
 * LMDB behind ../database.h.
 *
 * --set sync by-test (the model's way) is full for the tests named sync and nosync for the rest; another mode holds for
 * every test that writes. Preallocation goes from behind the two meta pages to the end of the map, once the library has
 * made the file: it takes no file that is already there and empty.
 */
#define _GNU_SOURCE
#include "../database.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRIVER "bedplate-microbenchmark"
#define USAGE ENGINE_USAGE
#include "../../arguments.h"

enum sync_mode { SYNC_BY_TEST, SYNC_FULL, SYNC_NOMETASYNC, SYNC_NOSYNC, SYNC_MAPASYNC };
enum preallocation { PREALLOCATE_NONE, PREALLOCATE_FTRUNCATE, PREALLOCATE_FALLOCATE, PREALLOCATE_WRITTEN };
enum {
    ZEROS_BYTES = 1024 * 1024,
    READERS_BESIDE = 16,
    MAP_MARGIN_BYTES = 16 * 1024 * 1024,
    /* A reader that waits for a processor keeps every page that the writer replaces meanwhile. */
    MAP_READERS_BYTES = 1024 * 1024 * 1024,
    MAP_UNIT_BYTES = 64 * 1024, /* a multiple of every page size in use */
};

static const char *const SYNC_WORDS[] = {"by-test", "full", "nometasync", "nosync", "mapasync", NULL};
static const char *const PREALLOCATION_WORDS[] = {"none", "ftruncate", "fallocate", "written", NULL};
static const char *const TRUTH_WORDS[] = {"false", "true", NULL};
static const unsigned SYNC_FLAGS = MDB_NOSYNC | MDB_NOMETASYNC | MDB_MAPASYNC;

const char ENGINE_NAME[] = "lmdb";
const char ENGINE_FILE[] = "data.mdb";
const char ENGINE_USAGE[] =
    "Settings of LMDB, each --set NAME=VALUE:\n"
    "  sync           by-test (default), full, nometasync, nosync, mapasync\n"
    "  writemap       true: write through the memory map (MDB_WRITEMAP); false (default)\n"
    "  readahead      false: no readahead for the map (MDB_NORDAHEAD); true (default)\n"
    "  preallocation  none (default), ftruncate, fallocate, written: of a new database\n"
    "  map_bytes      size of the map (3.2 times the keys and values of the largest test, and 16 MiB,\n"
    "                 or 1 GiB with readwhilewriting, whose readers keep old pages)\n";

/* The one environment of the program. */
static struct {
    MDB_env *env;
    MDB_dbi dbi;
    bool is_open, writemap, no_readahead;
    enum sync_mode sync;
    enum preallocation preallocation;
    uint64_t map_bytes;
} lmdb;

struct own {
    MDB_txn *txn;
    MDB_cursor *cursor;
};

static inline void demand(int code, const char *step)
{
    if (__builtin_expect(code != 0, 0))
        fail_with(mdb_strerror(code), code, step);
}

struct library engine_library(void)
{
    static char version[32], header[32];
    int major, minor, patch;
    const char *text = mdb_version(&major, &minor, &patch);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    snprintf(header, sizeof header, "%d.%d.%d", MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH);
    return (struct library){version, text, header};
}

bool engine_take(const char *name, const char *value)
{
    if (strcmp(name, "sync") == 0)
        lmdb.sync = (enum sync_mode)word("set sync", value, SYNC_WORDS);
    else if (strcmp(name, "writemap") == 0)
        lmdb.writemap = word("set writemap", value, TRUTH_WORDS) == 1;
    else if (strcmp(name, "readahead") == 0)
        lmdb.no_readahead = word("set readahead", value, TRUTH_WORDS) == 0;
    else if (strcmp(name, "preallocation") == 0)
        lmdb.preallocation = (enum preallocation)word("set preallocation", value, PREALLOCATION_WORDS);
    else if (strcmp(name, "map_bytes") == 0)
        lmdb.map_bytes = number_in_steps("set map_bytes", value, 1, BYTES_MAX, (uint64_t)sysconf(_SC_PAGESIZE));
    else
        return false;
    return true;
}

/* The model takes 3.2 times the values alone, which short values do not fit in; here keys count too. */
static uint64_t default_map_bytes(const struct options *options)
{
    uint64_t most = 0, margin = MAP_MARGIN_BYTES;
    for (size_t at = 0; at < options->test_count; at++) {
        uint64_t bytes, entry_bytes = test_value_bytes(options, options->tests[at]) + KEY_BYTES;
        if (__builtin_mul_overflow(test_entries(options, options->tests[at]), entry_bytes, &bytes) ||
            bytes > BYTES_MAX / 4)
            usage_error("%s would write more than a map can hold; use fewer --entries or name --set map_bytes",
                        options->tests[at]->name);
        if (bytes > most)
            most = bytes;
        if (options->tests[at]->kind == READ_WHILE_WRITING)
            margin = MAP_READERS_BYTES;
    }
    return (most / 10 * 32 + margin + MAP_UNIT_BYTES - 1) / MAP_UNIT_BYTES * MAP_UNIT_BYTES;
}

void engine_check(const struct options *options)
{
    if (lmdb.sync == SYNC_MAPASYNC && !lmdb.writemap)
        usage_error("--set sync=mapasync says how a writable map is written: it needs --set writemap=true");
    if (options->existing && lmdb.preallocation != PREALLOCATE_NONE)
        usage_error("--set preallocation is for a new database, and --existing keeps the one that is there");
    if (lmdb.map_bytes == 0)
        lmdb.map_bytes = default_map_bytes(options);
}

bool engine_may_wait(void) { return lmdb.sync != SYNC_NOSYNC && lmdb.sync != SYNC_MAPASYNC; }

static unsigned sync_flags(const struct test *test)
{
    if (!test_writes(test))
        return MDB_NOSYNC;
    switch (lmdb.sync) {
    case SYNC_BY_TEST: return test->synchronous ? 0 : MDB_NOSYNC;
    case SYNC_NOMETASYNC: return MDB_NOMETASYNC;
    case SYNC_NOSYNC: return MDB_NOSYNC;
    case SYNC_MAPASYNC: return MDB_MAPASYNC;
    default: return 0;
    }
}

static void open_environment(const struct options *options, const struct test *test)
{
    unsigned flags = sync_flags(test) | (lmdb.writemap ? MDB_WRITEMAP : 0) | (lmdb.no_readahead ? MDB_NORDAHEAD : 0);
    MDB_txn *txn;
    demand(mdb_env_create(&lmdb.env), "create the environment");
    demand(mdb_env_set_mapsize(lmdb.env, lmdb.map_bytes), "set the map's size");
    demand(mdb_env_set_maxreaders(lmdb.env, (unsigned)options->threads + READERS_BESIDE), "set the readers");
    demand(mdb_env_open(lmdb.env, options->directory, flags, 0664), "open the environment");
    lmdb.is_open = true;
    demand(mdb_txn_begin(lmdb.env, NULL, MDB_RDONLY, &txn), "open the database");
    demand(mdb_dbi_open(txn, NULL, 0, &lmdb.dbi), "open the database");
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

static void preallocate(const struct options *options)
{
    char path[PATH_MAX];
    MDB_stat stat;
    if (lmdb.preallocation == PREALLOCATE_NONE)
        return;
    path_of(options, ENGINE_FILE, path);
    demand(mdb_env_stat(lmdb.env, &stat), "preallocate");
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        fail(errno, "preallocate");
    switch (lmdb.preallocation) {
    case PREALLOCATE_FTRUNCATE:
        if (ftruncate(file, (off_t)lmdb.map_bytes) != 0)
            fail(errno, "preallocate: ftruncate");
        break;
    case PREALLOCATE_FALLOCATE:
        /* Not posix_fallocate(3), which writes zeros where the file system cannot: another level of the factor. */
        if (fallocate(file, 0, 0, (off_t)lmdb.map_bytes) != 0)
            fail(errno, "preallocate: fallocate");
        break;
    case PREALLOCATE_WRITTEN: write_zeros(file, 2 * (uint64_t)stat.ms_psize, lmdb.map_bytes); break;
    case PREALLOCATE_NONE: break;
    }
    if (fsync(file) != 0)
        fail(errno, "preallocate: fsync");
    close(file);
}

void engine_make(struct database *database, const struct test *test)
{
    const struct options *options = database->options;
    if (lmdb.is_open) {
        engine_close();
        remove_file(options, ENGINE_FILE);
        remove_file(options, "lock.mdb");
    } else {
        demand_none(options, ENGINE_FILE, "create the environment");
    }
    open_environment(options, test);
    preallocate(options);
}

void engine_keep(struct database *database, const struct test *test)
{
    if (!lmdb.is_open) {
        if (!is_there(database->options, ENGINE_FILE))
            fail(ENOENT, "open the environment");
        open_environment(database->options, test);
        return;
    }
    if (!test_writes(test))
        return;
    unsigned wanted = sync_flags(test), found;
    demand(mdb_env_get_flags(lmdb.env, &found), "change the sync mode");
    if ((found & SYNC_FLAGS) == wanted)
        return;
    /* What the test before left unwritten would be flushed by the first commit of this one. */
    demand(mdb_env_sync(lmdb.env, 1), "flush");
    demand(mdb_env_set_flags(lmdb.env, SYNC_FLAGS, 0), "change the sync mode");
    demand(mdb_env_set_flags(lmdb.env, wanted, 1), "change the sync mode");
}

void engine_close(void)
{
    if (lmdb.is_open)
        mdb_env_close(lmdb.env);
    lmdb.is_open = false;
}

void engine_flush(struct session *session)
{
    (void)session;
    demand(mdb_env_sync(lmdb.env, 1), "flush");
}

void engine_settings(struct session *session, const struct test *test, void (*put)(const char *name, const char *json))
{
    (void)session;
    unsigned flags;
    MDB_envinfo info;
    char size[24];
    demand(mdb_env_get_flags(lmdb.env, &flags), "read the settings back");
    demand(mdb_env_info(lmdb.env, &info), "read the settings back");
    if (test_writes(test))
        put("sync", flags & MDB_NOSYNC       ? "\"nosync\""
                    : flags & MDB_MAPASYNC   ? "\"mapasync\""
                    : flags & MDB_NOMETASYNC ? "\"nometasync\""
                                             : "\"full\"");
    put("writemap", flags & MDB_WRITEMAP ? "true" : "false");
    put("readahead", flags & MDB_NORDAHEAD ? "false" : "true");
    if (test->kind == FILL) {
        char quoted[24];
        snprintf(quoted, sizeof quoted, "\"%s\"", PREALLOCATION_WORDS[lmdb.preallocation]);
        put("preallocation", quoted);
    }
    snprintf(size, sizeof size, "%zu", info.me_mapsize);
    put("map_bytes", size);
}

void engine_open_session(struct session *session, const struct test *test)
{
    (void)test;
    session->of_engine = calloc(1, sizeof(struct own));
    if (session->of_engine == NULL)
        fail(ENOMEM, "memory for a transaction");
}

void engine_close_session(struct session *session) { free(session->of_engine); }

void engine_begin(struct session *session, bool reads)
{
    struct own *own = session->of_engine;
    demand(mdb_txn_begin(lmdb.env, NULL, reads ? MDB_RDONLY : 0, &own->txn), "begin a transaction");
    demand(mdb_cursor_open(own->txn, lmdb.dbi, &own->cursor), "open a cursor");
}

void engine_put(struct session *session, const struct bytes *key, const struct bytes *value, bool appends)
{
    struct own *own = session->of_engine;
    MDB_val name = {key->size, key->data}, data = {value->size, value->data};
    demand(mdb_cursor_put(own->cursor, &name, &data, appends ? MDB_APPEND : 0), "put");
}

void engine_commit(struct session *session)
{
    struct own *own = session->of_engine;
    mdb_cursor_close(own->cursor);
    demand(mdb_txn_commit(own->txn), "commit");
}

void engine_end(struct session *session)
{
    struct own *own = session->of_engine;
    mdb_cursor_close(own->cursor);
    mdb_txn_abort(own->txn);
}

bool engine_read(struct session *session, const struct bytes *key, struct bytes *value)
{
    struct own *own = session->of_engine;
    MDB_val name = {key->size, key->data}, data;
    mdb_txn_reset(own->txn);
    demand(mdb_txn_renew(own->txn), "renew a read transaction");
    int code = mdb_get(own->txn, lmdb.dbi, &name, &data);
    if (code == MDB_NOTFOUND)
        return false;
    demand(code, "get");
    *value = (struct bytes){data.mv_size, data.mv_data};
    return true;
}

bool engine_step(struct session *session, struct bytes *key, struct bytes *value, enum direction direction)
{
    struct own *own = session->of_engine;
    MDB_val name, data;
    int code = mdb_cursor_get(own->cursor, &name, &data, direction == FORWARD ? MDB_NEXT : MDB_PREV);
    if (code == MDB_NOTFOUND)
        return false;
    demand(code, "step of a cursor");
    *key = (struct bytes){name.mv_size, name.mv_data};
    *value = (struct bytes){data.mv_size, data.mv_data};
    return true;
}
