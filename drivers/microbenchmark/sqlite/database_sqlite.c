/*
 * SQLite behind ../database.h, on the table of LevelDB's db_bench_sqlite3.cc: test(key blob, value blob, PRIMARY KEY(key)).
 *
 * A put is REPLACE, in a transaction of BEGIN IMMEDIATE and COMMIT; a read is a SELECT by the key, a transaction of its own;
 * a walk is one SELECT in the order of the key. Each thread has a connection, whose PRAGMAs are those of --set; what is not
 * set stays the library's own. --set synchronous=by-test (the model's way) is full for the tests named sync and off for the
 * rest; another value holds for every test that writes. Unlike the model there is no WAL unless journal_mode asks for it.
 *
 * tpcb, which the model has not, is called synchronous as to by-test. Its tables are pgbench's, with the numbers as INTEGER
 * PRIMARY KEY; all else is the same connection. --set busy_timeout holds from the moment that a connection is ready: what
 * makes it ready waits as long as it takes.
 */
#define _GNU_SOURCE
#include "../loops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER "bedplate-microbenchmark"
#define USAGE ENGINE_USAGE
#include "../../arguments.h"
#include "../../sqlite_pragmas.h"

/* Connections wait for one another this long, unless busy_timeout is set. */
enum { BUSY_MS = 600000 };

const char ENGINE_NAME[] = "sqlite";
const char ENGINE_FILE[] = "test.db";
const char ENGINE_USAGE[] = "Settings of SQLite, each --set NAME=VALUE:\n"
                            "  synchronous    by-test (default)\n"
                            "  begin          immediate (default), deferred: how a transaction that writes begins\n" SQLITE_PRAGMAS_USAGE;
const bool ENGINE_TRANSFERS = true;

static const char *const FILES[] = {"test.db", "test.db-journal", "test.db-wal", "test.db-shm"};
static struct pragmas pragmas;
static bool by_test = true, has_settings, made_one;

enum { BEGIN_IMMEDIATE, BEGIN_DEFERRED };
static const char *const BEGIN_WORDS[] = {"immediate", "deferred", NULL};
static int begin_how = BEGIN_IMMEDIATE;

/* ?1 is the amount, ?2 the account, ?3 the teller and ?4 the branch. */
static const struct {
    const char *text, *step;
    int last; /* the greatest of them that it has */
} TRANSFERS[] = {
    {"SELECT abalance FROM accounts WHERE aid = ?2", "read a balance", 2},
    {"UPDATE accounts SET abalance = abalance + ?1 WHERE aid = ?2", "update an account", 2},
    {"UPDATE tellers SET tbalance = tbalance + ?1 WHERE tid = ?3", "update a teller", 3},
    {"UPDATE branches SET bbalance = bbalance + ?1 WHERE bid = ?4", "update a branch", 4},
    {"INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (?3, ?4, ?2, ?1, CURRENT_TIMESTAMP)", "insert into history", 4},
};
enum { TRANSFER_STATEMENTS = sizeof TRANSFERS / sizeof *TRANSFERS };

struct own {
    sqlite3 *connection;
    sqlite3_stmt *begin, *commit, *rollback, *put, *get, *walk, *transfer[TRANSFER_STATEMENTS];
};

static void demand(sqlite3 *connection, int code, const char *step)
{
    if (__builtin_expect(code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW, 1))
        return;
    fail_with(connection == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(connection), code, step);
}

struct library engine_library(void) { return (struct library){sqlite3_libversion(), sqlite3_sourceid(), SQLITE_VERSION}; }

/* Whether commits of a test wait is said by its name, unless --set says it for all. */
bool engine_take(const char *name, const char *value)
{
    if (!has_settings)
        pragmas = pragmas_unset();
    has_settings = true;
    if (strcmp(name, "synchronous") == 0) {
        by_test = strcmp(value, "by-test") == 0;
        if (by_test)
            return true;
    }
    if (strcmp(name, "begin") == 0) {
        begin_how = word("set begin", value, BEGIN_WORDS);
        return true;
    }
    return pragmas_take(&pragmas, name, value);
}

void engine_check(const struct options *options)
{
    for (size_t at = 0; at < options->test_count; at++)
        if ((options->tests[at]->kind == READ_WHILE_WRITING || options->tests[at]->kind == TRANSFER) && has_settings &&
            pragmas.value[LOCKING_MODE] == LOCKING_EXCLUSIVE)
            usage_error("%s has several connections, of which --set locking_mode=exclusive lets one in",
                        options->tests[at]->name);
}

bool engine_may_wait(void) { return by_test || pragmas.value[SYNCHRONOUS] != SYNCHRONOUS_OFF; }

static struct pragmas pragmas_of(const struct test *test)
{
    struct pragmas found = has_settings ? pragmas : pragmas_unset();
    if (by_test && test_writes(test))
        found.value[SYNCHRONOUS] = test->synchronous || test->kind == TRANSFER ? SYNCHRONOUS_FULL : SYNCHRONOUS_OFF;
    found.value[BUSY_TIMEOUT] = -1;
    return found;
}

static sqlite3 *connect_to(const struct options *options, const struct test *test, int flags)
{
    char path[PATH_MAX];
    sqlite3 *connection;
    struct pragmas wanted = pragmas_of(test);
    path_of(options, ENGINE_FILE, path);
    demand(NULL, sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE | flags, NULL), "open the database");
    demand(connection, sqlite3_busy_timeout(connection, BUSY_MS), "open the database");
    demand(connection, pragmas_set(connection, &wanted), "set the PRAGMAs");
    return connection;
}

static void flush(sqlite3 *connection, const struct options *options)
{
    char path[PATH_MAX];
    demand(connection, sqlite3_wal_checkpoint_v2(connection, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), "flush");
    path_of(options, ENGINE_FILE, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fsync(file) != 0)
        fail(errno, "flush");
    /* Not closed: POSIX gives up every lock of the process on a file with the first descriptor of it that is closed. */
}

/* The rows of pgbench's tables, with as much text behind the numbers as there. */
static void make_ledger(sqlite3 *connection, const struct options *options, uint64_t accounts)
{
    static const char TEXT[] =
        "CREATE TABLE branches (bid integer PRIMARY KEY, bbalance integer, filler text);"
        "CREATE TABLE tellers (tid integer PRIMARY KEY, bid integer, tbalance integer, filler text);"
        "CREATE TABLE accounts (aid integer PRIMARY KEY, bid integer, abalance integer, filler text);"
        "CREATE TABLE history (tid integer, bid integer, aid integer, delta integer, mtime text, filler text);"
        "BEGIN;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %1$" PRIu64 ")"
        " INSERT INTO branches SELECT i, 0, printf('%%-88s', '') FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %2$" PRIu64 ")"
        " INSERT INTO tellers SELECT i, (i - 1) / %3$d + 1, 0, printf('%%-84s', '') FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %4$" PRIu64 ")"
        " INSERT INTO accounts SELECT i, min((i - 1) / %5$d + 1, %1$" PRIu64 "), 0, printf('%%-84s', '') FROM n;"
        "COMMIT";
    char text[sizeof TEXT + 200];
    uint64_t branches = branches_of(accounts);
    snprintf(text, sizeof text, TEXT, branches, branches * TELLERS_OF_BRANCH, TELLERS_OF_BRANCH, accounts, ACCOUNTS_OF_BRANCH);
    demand(connection, sqlite3_exec(connection, text, NULL, NULL, NULL), "make and fill the tables");
    flush(connection, options);
}

void engine_make(struct database *database, const struct test *test)
{
    const struct options *options = database->options;
    if (made_one)
        for (size_t at = 0; at < sizeof FILES / sizeof *FILES; at++)
            remove_file(options, FILES[at]);
    else
        demand_none(options, ENGINE_FILE, "open the database");
    made_one = true;
    sqlite3 *connection = connect_to(options, test, SQLITE_OPEN_CREATE);
    if (test->kind == TRANSFER)
        make_ledger(connection, options, database->keys);
    else
        demand(connection, sqlite3_exec(connection, "CREATE TABLE test (key blob, value blob, PRIMARY KEY(key))", NULL, NULL, NULL),
               "make the table");
    demand(NULL, sqlite3_close(connection), "close the database");
}

void engine_keep(struct database *database, const struct test *test)
{
    (void)test;
    if (!is_there(database->options, ENGINE_FILE))
        fail(ENOENT, "open the database");
}

/* What is open is open by sessions. */
void engine_close(void) {}

void engine_flush(struct session *session)
{
    struct own *own = session->of_engine;
    flush(own->connection, session->database->options);
}

void engine_settings(struct session *session, const struct test *test, void (*put)(const char *name, const char *json))
{
    struct own *own = session->of_engine;
    char quoted[24];
    (void)test;
    demand(own->connection, pragmas_read(own->connection, put), "read the PRAGMAs back");
    snprintf(quoted, sizeof quoted, "\"%s\"", BEGIN_WORDS[begin_how]);
    put("begin", quoted);
}

static sqlite3_stmt *prepared(sqlite3 *connection, const char *text)
{
    sqlite3_stmt *made;
    demand(connection, sqlite3_prepare_v3(connection, text, -1, SQLITE_PREPARE_PERSISTENT, &made, NULL), "prepare a statement");
    return made;
}

void engine_open_session(struct session *session, const struct test *test)
{
    struct own *own = calloc(1, sizeof *own);
    if (own == NULL)
        fail(ENOMEM, "memory for a connection");
    own->connection = connect_to(session->database->options, test, 0);
    own->begin = prepared(own->connection, begin_how == BEGIN_IMMEDIATE ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED");
    own->commit = prepared(own->connection, "COMMIT");
    if (test->kind == TRANSFER) {
        own->rollback = prepared(own->connection, "ROLLBACK");
        for (size_t at = 0; at < TRANSFER_STATEMENTS; at++)
            own->transfer[at] = prepared(own->connection, TRANSFERS[at].text);
    } else {
        own->put = prepared(own->connection, "REPLACE INTO test (key, value) VALUES (?1, ?2)");
        own->get = prepared(own->connection, "SELECT value FROM test WHERE key = ?1");
    }
    if (has_settings && pragmas.value[BUSY_TIMEOUT] >= 0)
        demand(own->connection, sqlite3_busy_timeout(own->connection, (int)pragmas.value[BUSY_TIMEOUT]), "set the PRAGMAs");
    session->of_engine = own;
}

void engine_close_session(struct session *session)
{
    struct own *own = session->of_engine;
    sqlite3_stmt *statements[] = {own->begin, own->commit, own->rollback, own->put, own->get, own->walk};
    for (size_t at = 0; at < sizeof statements / sizeof *statements; at++)
        sqlite3_finalize(statements[at]);
    for (size_t at = 0; at < TRANSFER_STATEMENTS; at++)
        sqlite3_finalize(own->transfer[at]);
    demand(NULL, sqlite3_close(own->connection), "close the database");
    free(own);
}

/* One that gives no rows. */
static void run(struct own *own, sqlite3_stmt *statement, const char *step)
{
    demand(own->connection, sqlite3_step(statement), step);
    demand(own->connection, sqlite3_reset(statement), step);
}

static void begin(struct session *session, bool reads)
{
    struct own *own = session->of_engine;
    if (!reads)
        run(own, own->begin, "begin a transaction");
}

static void put(struct session *session, const struct bytes *key, const struct bytes *value, bool appends)
{
    struct own *own = session->of_engine;
    (void)appends;
    demand(own->connection, sqlite3_bind_blob(own->put, 1, key->data, (int)key->size, SQLITE_STATIC), "put");
    demand(own->connection, sqlite3_bind_blob64(own->put, 2, value->data, value->size, SQLITE_STATIC), "put");
    run(own, own->put, "put");
}

static void commit(struct session *session)
{
    struct own *own = session->of_engine;
    run(own, own->commit, "commit");
}

static void end(struct session *session)
{
    struct own *own = session->of_engine;
    sqlite3_reset(own->get);
    if (own->walk != NULL)
        sqlite3_reset(own->walk);
}

static bool read_one(struct session *session, const struct bytes *key, struct bytes *value)
{
    struct own *own = session->of_engine;
    /* The reset ends the transaction of the read before. */
    demand(own->connection, sqlite3_reset(own->get), "get");
    demand(own->connection, sqlite3_bind_blob(own->get, 1, key->data, (int)key->size, SQLITE_STATIC), "get");
    int code = sqlite3_step(own->get);
    demand(own->connection, code, "get");
    if (code != SQLITE_ROW)
        return false;
    *value = (struct bytes){(size_t)sqlite3_column_bytes(own->get, 0), (void *)sqlite3_column_blob(own->get, 0)};
    return true;
}

static bool next_entry(struct session *session, struct bytes *key, struct bytes *value, enum direction direction)
{
    struct own *own = session->of_engine;
    if (own->walk == NULL)
        own->walk = prepared(own->connection, direction == FORWARD ? "SELECT key, value FROM test ORDER BY key"
                                                                    : "SELECT key, value FROM test ORDER BY key DESC");
    int code = sqlite3_step(own->walk);
    demand(own->connection, code, "step of a walk");
    if (code != SQLITE_ROW)
        return false;
    *key = (struct bytes){(size_t)sqlite3_column_bytes(own->walk, 0), (void *)sqlite3_column_blob(own->walk, 0)};
    *value = (struct bytes){(size_t)sqlite3_column_bytes(own->walk, 1), (void *)sqlite3_column_blob(own->walk, 1)};
    return true;
}

static const struct calls CALLS = {begin, put, commit, end, read_one, next_entry};
DEFINE_LOOPS(ENGINE_LOOPS, CALLS);

/* False where a lock was in the way. Every step of a transfer gives one row at most, and none that is looked at. */
static bool step_of_transfer(struct own *own, sqlite3_stmt *statement, const char *step)
{
    int code = sqlite3_step(statement);
    bool is_busy = (code & 0xFF) == SQLITE_BUSY;
    if (!is_busy)
        demand(own->connection, code, step);
    /* Gives the same code again. */
    sqlite3_reset(statement);
    return !is_busy;
}

static bool transfer_at(struct own *own, const int64_t *numbers, size_t at)
{
    sqlite3_stmt *statement = own->transfer[at];
    for (int number = 1; number <= TRANSFERS[at].last; number++)
        demand(own->connection, sqlite3_bind_int64(statement, number, numbers[number - 1]), TRANSFERS[at].step);
    return step_of_transfer(own, statement, TRANSFERS[at].step);
}

bool engine_transfer(struct session *session, const struct transfer *transfer)
{
    struct own *own = session->of_engine;
    const int64_t numbers[] = {transfer->delta, transfer->account, transfer->teller, transfer->branch};
    if (!step_of_transfer(own, own->begin, "begin a transaction"))
        return false;
    bool is_done = true;
    for (size_t at = 0; is_done && at < TRANSFER_STATEMENTS; at++)
        is_done = transfer_at(own, numbers, at);
    if (is_done && step_of_transfer(own, own->commit, "commit"))
        return true;
    run(own, own->rollback, "roll back");
    return false;
}
