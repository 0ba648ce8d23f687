/*
 * LMDB behind ../database.h.
 *
 * --set sync by-test (the model's way) is full for the tests named sync and nosync for the rest; another mode holds for
 * every test that writes. Preallocation goes from behind the two meta pages to the end of the map, once the library has
 * made the file: it takes no file that is already there and empty.
 */
#define _GNU_SOURCE
#include "../loops.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER "bedplate-microbenchmark"
#define USAGE ENGINE_USAGE
#include "../../arguments.h"
#include "../../lmdb_settings.h"

enum {
    READERS_BESIDE = 16,
    MAP_MARGIN_BYTES = 16 * 1024 * 1024,
    /* A reader that waits for a processor keeps every page that the writer replaces meanwhile. */
    MAP_READERS_BYTES = 1024 * 1024 * 1024,
    MAP_UNIT_BYTES = 64 * 1024, /* a multiple of every page size in use */
};

static const unsigned ANY_SYNC_FLAG = MDB_NOSYNC | MDB_NOMETASYNC | MDB_MAPASYNC;

const char ENGINE_NAME[] = "lmdb";
const char ENGINE_FILE[] = "data.mdb";
const char ENGINE_USAGE[] =
    "Settings of LMDB, each --set NAME=VALUE:\n"
    "  sync           by-test (default), full, nometasync, nosync, mapasync\n" LMDB_SETTINGS_USAGE
    "  map_bytes      size of the map (3.2 times the keys and values of the largest test, and 16 MiB,\n"
    "                 or 1 GiB with readwhilewriting, whose readers keep old pages)\n";

/* The one environment of the program. */
static struct {
    MDB_env *env;
    MDB_dbi dbi;
    bool is_open, by_test;
    struct lmdb_settings settings;
} lmdb = {.by_test = true};

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
    if (strcmp(name, "sync") == 0) {
        lmdb.by_test = strcmp(value, "by-test") == 0;
        lmdb.settings.sync = SYNC_FULL;
        if (lmdb.by_test)
            return true;
    }
    return lmdb_take(&lmdb.settings, name, value);
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
    lmdb_check(&lmdb.settings);
    if (options->existing && lmdb.settings.preallocation != PREALLOCATE_NONE)
        usage_error("--set preallocation is for a new database, and --existing keeps the one that is there");
    if (lmdb.settings.map_bytes == 0)
        lmdb.settings.map_bytes = default_map_bytes(options);
}

bool engine_may_wait(void)
{
    return lmdb.by_test || (lmdb.settings.sync != SYNC_NOSYNC && lmdb.settings.sync != SYNC_MAPASYNC);
}

static unsigned sync_flags(const struct test *test)
{
    if (!test_writes(test))
        return MDB_NOSYNC;
    if (lmdb.by_test)
        return test->synchronous ? 0 : MDB_NOSYNC;
    return SYNC_FLAGS[lmdb.settings.sync];
}

static void open_environment(const struct options *options, const struct test *test)
{
    unsigned flags = sync_flags(test) | lmdb_map_flags(&lmdb.settings);
    MDB_txn *txn;
    demand(mdb_env_create(&lmdb.env), "create the environment");
    demand(mdb_env_set_mapsize(lmdb.env, lmdb.settings.map_bytes), "set the map's size");
    demand(mdb_env_set_maxreaders(lmdb.env, (unsigned)options->threads + READERS_BESIDE), "set the readers");
    demand(mdb_env_open(lmdb.env, options->directory, flags, 0664), "open the environment");
    lmdb.is_open = true;
    demand(mdb_txn_begin(lmdb.env, NULL, MDB_RDONLY, &txn), "open the database");
    demand(mdb_dbi_open(txn, NULL, 0, &lmdb.dbi), "open the database");
    demand(mdb_txn_commit(txn), "open the database");
}

void engine_make(struct database *database, const struct test *test)
{
    const struct options *options = database->options;
    const char *step;
    if (lmdb.is_open) {
        engine_close();
        remove_file(options, ENGINE_FILE);
        remove_file(options, "lock.mdb");
    } else {
        demand_none(options, ENGINE_FILE, "create the environment");
    }
    open_environment(options, test);
    int code = lmdb_preallocate(lmdb.env, &lmdb.settings, &step);
    demand(code, step);
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
    if ((found & ANY_SYNC_FLAG) == wanted)
        return;
    /* What the test before left unwritten would be flushed by the first commit of this one. */
    demand(mdb_env_sync(lmdb.env, 1), "flush");
    demand(mdb_env_set_flags(lmdb.env, ANY_SYNC_FLAG, 0), "change the sync mode");
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
        snprintf(quoted, sizeof quoted, "\"%s\"", PREALLOCATION_WORDS[lmdb.settings.preallocation]);
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

static void begin(struct session *session, bool reads)
{
    struct own *own = session->of_engine;
    demand(mdb_txn_begin(lmdb.env, NULL, reads ? MDB_RDONLY : 0, &own->txn), "begin a transaction");
    demand(mdb_cursor_open(own->txn, lmdb.dbi, &own->cursor), "open a cursor");
}

static void put(struct session *session, const struct bytes *key, const struct bytes *value, bool appends)
{
    struct own *own = session->of_engine;
    MDB_val name = {key->size, key->data}, data = {value->size, value->data};
    demand(mdb_cursor_put(own->cursor, &name, &data, appends ? MDB_APPEND : 0), "put");
}

static void commit(struct session *session)
{
    struct own *own = session->of_engine;
    mdb_cursor_close(own->cursor);
    demand(mdb_txn_commit(own->txn), "commit");
}

static void end(struct session *session)
{
    struct own *own = session->of_engine;
    mdb_cursor_close(own->cursor);
    mdb_txn_abort(own->txn);
}

static bool read_one(struct session *session, const struct bytes *key, struct bytes *value)
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

static bool next_entry(struct session *session, struct bytes *key, struct bytes *value, enum direction direction)
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

static const struct calls CALLS = {begin, put, commit, end, read_one, next_entry};
DEFINE_LOOPS(ENGINE_LOOPS, CALLS);
