/*
 * The engine under test, LMDB or none: what the loops call for each entry. The one that does nothing is
 * called just as the library is, so that the difference of two runs is the library and the disk.
 */
#pragma once

#include "document.h"
#include "failure.h"
#include "options.h"

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

struct database {
    const struct options *options;
    bool null, is_open;
    MDB_env *env;
    MDB_dbi dbi;
    uint64_t keys; /* numbers below it may be there */
    MDB_val null_value;
};

struct transaction {
    MDB_txn *txn;
    MDB_cursor *cursor;
    uint64_t null_left;
};

/* A new, empty database, in place of the one of the last test. */
void database_make(struct database *database, const struct test *test);
/* The one that is there already, or that a test before left. */
void database_keep(struct database *database, const struct test *test);
void database_close(struct database *database);
void database_flush(struct database *database);
/* Size and space of the data file, where there is one. */
void database_space(const struct database *database, struct outcome *outcome);

int null_call(const void *first, const void *second, const void *third);
int null_read(const struct database *database, MDB_val *key, MDB_val *value);
int null_step(const struct database *database, uint64_t *left, MDB_val *key, MDB_val *value);

static inline void demand(int code, const char *step)
{
    if (__builtin_expect(code != 0, 0))
        fail(code, step);
}

static inline void transaction_begin(struct database *database, struct transaction *transaction, unsigned flags)
{
    if (database->null) {
        transaction->null_left = database->keys;
        null_call(database, transaction, NULL);
        return;
    }
    demand(mdb_txn_begin(database->env, NULL, flags, &transaction->txn), "begin a transaction");
    demand(mdb_cursor_open(transaction->txn, database->dbi, &transaction->cursor), "open a cursor");
}

static inline void transaction_put(struct database *database, struct transaction *transaction, MDB_val *key,
                                   MDB_val *value, unsigned flags)
{
    if (database->null)
        demand(null_call(transaction, key, value), "put");
    else
        demand(mdb_cursor_put(transaction->cursor, key, value, flags), "put");
}

static inline void transaction_commit(struct database *database, struct transaction *transaction)
{
    if (database->null) {
        null_call(database, transaction, NULL);
        return;
    }
    mdb_cursor_close(transaction->cursor);
    demand(mdb_txn_commit(transaction->txn), "commit");
}

/* For a transaction that reads: what it saw is given up. */
static inline void transaction_end(struct database *database, struct transaction *transaction)
{
    if (database->null)
        return;
    mdb_cursor_close(transaction->cursor);
    mdb_txn_abort(transaction->txn);
}

/* One read in a transaction of its own: 0 or MDB_NOTFOUND. The value is whole until the next one. */
static inline int transaction_read(struct database *database, struct transaction *transaction, MDB_val *key,
                                   MDB_val *value)
{
    if (database->null)
        return null_read(database, key, value);
    mdb_txn_reset(transaction->txn);
    demand(mdb_txn_renew(transaction->txn), "renew a read transaction");
    int code = mdb_get(transaction->txn, database->dbi, key, value);
    if (__builtin_expect(code != 0 && code != MDB_NOTFOUND, 0))
        fail(code, "get");
    return code;
}

/* The next entry in that direction: false behind the last one. */
static inline bool transaction_step(struct database *database, struct transaction *transaction, MDB_val *key,
                                    MDB_val *value, MDB_cursor_op direction)
{
    int code = database->null ? null_step(database, &transaction->null_left, key, value)
                              : mdb_cursor_get(transaction->cursor, key, value, direction);
    if (__builtin_expect(code != 0 && code != MDB_NOTFOUND, 0))
        fail(code, "step of a cursor");
    return code == 0;
}
