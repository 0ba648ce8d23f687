/*
 * SQLite behind ../store.h: two tables of one file, each with its key as PRIMARY KEY, so that an index stands beside the rows.
 *
 * The writer is one connection with the PRAGMAs of --set. The check opens the file as anybody does: a hot journal is rolled
 * back, a WAL is recovered. Then come `PRAGMA integrity_check` and a walk of every row by its index.
 */
#define _GNU_SOURCE
#include "../store.h"

#include "../failure.h"
#include "../schema.h"

#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <unistd.h>

#define DRIVER "bedplate-power-cut"
#define USAGE STORE_USAGE
#include "../../arguments.h"
#include "../../sqlite_pragmas.h"

const char STORE_NAME[] = "sqlite";
const char STORE_USAGE[] = "Settings of SQLite, each --set NAME=VALUE:\n" SQLITE_PRAGMAS_USAGE;

static const char *const NAMES[TABLES] = {[ENTRIES] = "entries", [ACCOUNTS] = "accounts"};
static const char *const WALKS[TABLES] = {[ENTRIES] = "walk the entries", [ACCOUNTS] = "walk the accounts"};

static struct {
    const char *directory;
    sqlite3 *connection;
    sqlite3_stmt *begin, *commit, *get[TABLES], *insert[TABLES], *update[TABLES];
    struct pragmas pragmas;
    bool has_settings;
} sqlite;

static void demand(int code, const char *step)
{
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        fail(sqlite.connection == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(sqlite.connection), code, step);
}

const char *store_version(void) { return sqlite3_libversion(); }

bool store_take(const char *name, const char *value)
{
    if (!sqlite.has_settings)
        sqlite.pragmas = pragmas_unset();
    sqlite.has_settings = true;
    return pragmas_take(&sqlite.pragmas, name, value);
}

void store_check(void) {}

static void path_of(const char *name, char path[PATH_MAX])
{
    demand_system(snprintf(path, PATH_MAX, "%s/%s", sqlite.directory, name) >= PATH_MAX ? ENAMETOOLONG : 0, "name the database");
}

static void open_file(const struct options *options, int flags)
{
    char path[PATH_MAX];
    sqlite.directory = options->directory;
    path_of("test.db", path);
    if (flags & SQLITE_OPEN_CREATE)
        demand_system(access(path, F_OK) == 0 ? EEXIST : 0, "make a new database");
    demand(sqlite3_open_v2(path, &sqlite.connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE | flags, NULL), "open the database");
}

static sqlite3_stmt *prepared(const char *format, const char *table)
{
    sqlite3_stmt *made;
    char text[200];
    snprintf(text, sizeof text, format, table);
    demand(sqlite3_prepare_v3(sqlite.connection, text, -1, SQLITE_PREPARE_PERSISTENT, &made, NULL), "prepare a statement");
    return made;
}

void store_make(const struct options *options)
{
    open_file(options, SQLITE_OPEN_CREATE);
    if (sqlite.has_settings)
        demand(pragmas_set(sqlite.connection, &sqlite.pragmas), "set the PRAGMAs");
    sqlite.begin = prepared("BEGIN IMMEDIATE", "");
    sqlite.commit = prepared("COMMIT", "");
    for (int table = 0; table < TABLES; table++) {
        char text[100];
        snprintf(text, sizeof text, "CREATE TABLE %s (key blob PRIMARY KEY, value blob)", NAMES[table]);
        demand(sqlite3_exec(sqlite.connection, text, NULL, NULL, NULL), "make the tables");
        sqlite.get[table] = prepared("SELECT value FROM %s WHERE key = ?1", NAMES[table]);
        sqlite.insert[table] = prepared("INSERT INTO %s (key, value) VALUES (?1, ?2)", NAMES[table]);
        sqlite.update[table] = prepared("UPDATE %s SET value = ?2 WHERE key = ?1", NAMES[table]);
    }
}

/* One that gives no rows. */
static void run(sqlite3_stmt *statement, const char *step)
{
    demand(sqlite3_step(statement), step);
    demand(sqlite3_reset(statement), step);
}

void store_begin(void) { run(sqlite.begin, "begin a transaction"); }

size_t store_get(enum table table, const struct bytes *key, char *value)
{
    sqlite3_stmt *get = sqlite.get[table];
    demand(sqlite3_bind_blob(get, 1, key->data, (int)key->size, SQLITE_STATIC), "read an account");
    int code = sqlite3_step(get);
    demand(code, "read an account");
    if (code != SQLITE_ROW)
        fail("an account is not there", ENOENT, "read an account");
    size_t size = (size_t)sqlite3_column_bytes(get, 0);
    memcpy(value, sqlite3_column_blob(get, 0), size < VALUE_BYTES_MAX ? size : VALUE_BYTES_MAX);
    demand(sqlite3_reset(get), "read an account");
    return size;
}

void store_put(enum table table, const struct bytes *key, const struct bytes *value, bool is_new, bool is_last)
{
    (void)is_last;
    sqlite3_stmt *put = is_new ? sqlite.insert[table] : sqlite.update[table];
    const char *step = table == ENTRIES ? "put an entry" : "put an account";
    demand(sqlite3_bind_blob(put, 1, key->data, (int)key->size, SQLITE_STATIC), step);
    demand(sqlite3_bind_blob(put, 2, value->data, (int)value->size, SQLITE_STATIC), step);
    run(put, step);
}

void store_commit(void) { run(sqlite.commit, "commit"); }

void store_flush(void)
{
    int directory = open(sqlite.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    demand_system(directory < 0 || syncfs(directory) != 0 ? errno : 0, "bring the file system to the medium");
    close(directory);
}

void store_press(void)
{
    /* The database's own stays open: with the first of its descriptors that is closed every lock of the process goes. */
    static int database = -1;
    static const char *const BESIDE[] = {"test.db-journal", "test.db-wal"};
    char path[PATH_MAX];
    if (database < 0) {
        path_of("test.db", path);
        database = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (database >= 0)
        sync_file_range(database, 0, 0, SYNC_FILE_RANGE_WRITE);
    for (size_t at = 0; at < sizeof BESIDE / sizeof *BESIDE; at++) {
        path_of(BESIDE[at], path);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
            continue;
        sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
        close(file);
    }
}

void store_open(const struct options *options) { open_file(options, 0); }

uint64_t store_transaction(void) { return 0; }

uint64_t store_walk(enum table table, void (*take)(const struct bytes *key, const struct bytes *value))
{
    sqlite3_stmt *walk = prepared("SELECT key, value FROM %s ORDER BY key", NAMES[table]);
    uint64_t count = 0;
    int code;
    while ((code = sqlite3_step(walk)) == SQLITE_ROW) {
        struct bytes key = {(size_t)sqlite3_column_bytes(walk, 0), sqlite3_column_blob(walk, 0)};
        struct bytes value = {(size_t)sqlite3_column_bytes(walk, 1), sqlite3_column_blob(walk, 1)};
        take(&key, &value);
        count++;
    }
    demand(code, WALKS[table]);
    demand(sqlite3_finalize(walk), WALKS[table]);
    /* By the rows and not by the index. */
    sqlite3_stmt *rows = prepared("SELECT count(value) FROM %s NOT INDEXED", NAMES[table]);
    demand(sqlite3_step(rows), WALKS[table]);
    bool differs = (uint64_t)sqlite3_column_int64(rows, 0) != count;
    demand(sqlite3_finalize(rows), WALKS[table]);
    return differs;
}

void store_verify(struct pages *pages, void (*complain)(const char *text))
{
    (void)pages;
    sqlite3_stmt *check = prepared("PRAGMA integrity_check", "");
    int code;
    while ((code = sqlite3_step(check)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(check, 0);
        if (text != NULL && strcmp(text, "ok") != 0)
            complain(text);
    }
    demand(code, "check the integrity");
    demand(sqlite3_finalize(check), "check the integrity");
}
