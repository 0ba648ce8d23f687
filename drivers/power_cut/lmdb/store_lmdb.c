/* LMDB behind ../store.h: two databases of one environment. */
#define _GNU_SOURCE
#include "../store.h"

#include "../failure.h"
#include "../schema.h"
#include "../write.h"

#include <lmdb.h>
#include <unistd.h>

#define DRIVER "bedplate-power-cut"
#define USAGE STORE_USAGE
#include "../../arguments.h"
#include "../../lmdb_settings.h"

enum { DEFAULT_MAP_BYTES = 128 * 1024 * 1024, FREE_DBI = 0 };

static const char *const NAMES[TABLES] = {[ENTRIES] = "entries", [ACCOUNTS] = "accounts"};
static const char *const WALKS[TABLES] = {[ENTRIES] = "walk the entries", [ACCOUNTS] = "walk the accounts"};

const char STORE_NAME[] = "lmdb";
const char STORE_USAGE[] = "Settings of LMDB, each --set NAME=VALUE:\n"
                           "  sync           full (default), nometasync, nosync, mapasync\n" LMDB_SETTINGS_USAGE
                           "  map_bytes      size of the map (128 MiB)\n";

static struct {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi[TABLES];
    struct lmdb_settings settings;
    struct pages pages; /* of the databases that were walked */
} lmdb = {.settings = {.map_bytes = DEFAULT_MAP_BYTES}};

static void demand(int code, const char *step)
{
    if (code != 0)
        fail(mdb_strerror(code), code, step);
}

const char *store_version(void)
{
    static char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH);
    return version;
}

bool store_take(const char *name, const char *value) { return lmdb_take(&lmdb.settings, name, value); }

void store_check(void) { lmdb_check(&lmdb.settings); }

static void preallocate(void)
{
    MDB_stat stat;
    const char *step;
    demand(mdb_env_stat(lmdb.env, &stat), "preallocate");
    demand_system(stat.ms_entries > 0 ? EEXIST : 0, "make a new environment");
    int code = lmdb_preallocate(lmdb.env, &lmdb.settings, &step);
    demand(code, step);
}

void store_make(const struct options *options)
{
    unsigned flags = SYNC_FLAGS[lmdb.settings.sync] | lmdb_map_flags(&lmdb.settings);
    demand(mdb_env_create(&lmdb.env), "create the environment");
    demand(mdb_env_set_mapsize(lmdb.env, lmdb.settings.map_bytes), "set the map's size");
    demand(mdb_env_set_maxdbs(lmdb.env, TABLES), "set the databases");
    demand(mdb_env_open(lmdb.env, options->directory, flags, 0664), "open the environment");
    preallocate();
    demand(mdb_txn_begin(lmdb.env, NULL, 0, &lmdb.txn), "make the databases");
    for (int table = 0; table < TABLES; table++)
        demand(mdb_dbi_open(lmdb.txn, NAMES[table], MDB_CREATE, &lmdb.dbi[table]), "make the databases");
    demand(mdb_txn_commit(lmdb.txn), "make the databases");
}

void store_begin(void) { demand(mdb_txn_begin(lmdb.env, NULL, 0, &lmdb.txn), "begin a transaction"); }

size_t store_get(enum table table, const struct bytes *key, char *value)
{
    MDB_val name = {key->size, (void *)key->data}, data;
    demand(mdb_get(lmdb.txn, lmdb.dbi[table], &name, &data), "read an account");
    size_t size = data.mv_size < VALUE_BYTES_MAX ? data.mv_size : VALUE_BYTES_MAX;
    memcpy(value, data.mv_data, size);
    return data.mv_size;
}

void store_put(enum table table, const struct bytes *key, const struct bytes *value, bool is_new, bool is_last)
{
    MDB_val name = {key->size, (void *)key->data}, data = {value->size, (void *)value->data};
    unsigned flags = (is_new ? MDB_NOOVERWRITE : 0) | (is_last ? MDB_APPEND : 0);
    demand(mdb_put(lmdb.txn, lmdb.dbi[table], &name, &data, flags), table == ENTRIES ? "put an entry" : "put an account");
}

void store_commit(void) { demand(mdb_txn_commit(lmdb.txn), "commit"); }

void store_flush(void)
{
    int file;
    demand(mdb_env_sync(lmdb.env, 1), "bring the accounts to the medium");
    demand(mdb_env_get_fd(lmdb.env, &file), "bring the file system to the medium");
    demand_system(syncfs(file) == 0 ? 0 : errno, "bring the file system to the medium");
}

void store_press(void)
{
    int file;
    if (mdb_env_get_fd(lmdb.env, &file) == 0)
        sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
}

void store_open(const struct options *options)
{
    MDB_envinfo info;
    demand(mdb_env_create(&lmdb.env), "create the environment");
    demand(mdb_env_set_maxdbs(lmdb.env, TABLES), "set the databases");
    demand(mdb_env_open(lmdb.env, options->directory, MDB_RDONLY, 0664), "open the environment");
    demand(mdb_txn_begin(lmdb.env, NULL, MDB_RDONLY, &lmdb.txn), "begin to read");
    demand(mdb_env_info(lmdb.env, &info), "begin to read");
    lmdb.pages.last = info.me_last_pgno;
    for (int table = 0; table < TABLES; table++)
        demand(mdb_dbi_open(lmdb.txn, NAMES[table], 0, &lmdb.dbi[table]), table == ENTRIES ? "open the entries" : "open the accounts");
}

uint64_t store_transaction(void)
{
    MDB_envinfo info;
    demand(mdb_env_info(lmdb.env, &info), "begin to read");
    return info.me_last_txnid;
}

/* Every entry of one database; a damaged one may lead in a circle, so no further than it says that it goes. */
static uint64_t walk(MDB_dbi database, const char *step, void (*take)(const struct bytes *key, const struct bytes *value))
{
    MDB_cursor *cursor;
    MDB_stat stat;
    MDB_val key, value;
    demand(mdb_stat(lmdb.txn, database, &stat), step);
    demand(mdb_cursor_open(lmdb.txn, database, &cursor), step);
    uint64_t count = 0;
    int code;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0 && count <= stat.ms_entries) {
        struct bytes name = {key.mv_size, key.mv_data}, data = {value.mv_size, value.mv_data};
        take(&name, &data);
        count++;
    }
    if (code != 0 && code != MDB_NOTFOUND)
        demand(code, step);
    lmdb.pages.branch += stat.ms_branch_pages;
    lmdb.pages.leaf += stat.ms_leaf_pages;
    lmdb.pages.overflow += stat.ms_overflow_pages;
    mdb_cursor_close(cursor);
    return count != stat.ms_entries;
}

uint64_t store_walk(enum table table, void (*take)(const struct bytes *key, const struct bytes *value))
{
    return walk(lmdb.dbi[table], WALKS[table], take);
}

static void (*complain_of)(const char *text);

static void take_name(const struct bytes *key, const struct bytes *value)
{
    (void)key;
    (void)value;
}

/* A list of free pages: how many, then their numbers. */
static void take_free(const struct bytes *key, const struct bytes *value)
{
    (void)key;
    size_t count;
    if (value->size < sizeof count) {
        complain_of("a list of free pages is cut off");
        return;
    }
    memcpy(&count, value->data, sizeof count);
    if (count > value->size / sizeof count - 1)
        complain_of("a list of free pages is shorter than it says");
    else
        lmdb.pages.free += count;
}

void store_verify(struct pages *pages, void (*complain)(const char *text))
{
    MDB_dbi names;
    complain_of = complain;
    demand(mdb_dbi_open(lmdb.txn, NULL, 0, &names), "open the databases");
    if (walk(names, "walk the names of the databases", take_name) != 0)
        complain("the names of the databases are more or fewer than it says");
    if (walk(FREE_DBI, "walk the list of free pages", take_free) != 0)
        complain("the lists of free pages are more or fewer than it says");
    uint64_t known = META_PAGES + lmdb.pages.branch + lmdb.pages.leaf + lmdb.pages.overflow + lmdb.pages.free;
    uint64_t there = lmdb.pages.last + 1;
    lmdb.pages.unaccounted = known > there ? known - there : there - known;
    *pages = lmdb.pages;
}
