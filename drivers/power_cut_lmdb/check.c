/* Walks the whole environment and holds it against itself. */
#define _GNU_SOURCE
#include "check.h"

#include "schema.h"

#include <errno.h>
#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>

enum { FREE_DBI = 0, META_PAGES = 2 };

struct client {
    bool seen;
    uint64_t last, entries;
};

static struct {
    const struct options *options;
    MDB_env *env;
    MDB_txn *txn;
    struct client clients[CLIENTS_MAX];
    struct account *expected; /* from the entries */
    uint64_t entries, accounts, balances_wrong, values_wrong, order_wrong, counts_wrong, transaction;
    uint64_t branch, leaf, overflow, free, last, unaccounted;
} found;

static void say(const char *error, int code, const char *step)
{
    printf("{\"library\": \"%d.%d.%d\", \"transaction\": %" PRIu64 ", \"entries\": %" PRIu64 ", \"accounts\": %" PRIu64,
           MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH, found.transaction, found.entries, found.accounts);
    const char *before = "";
    fputs(", \"clients\": [", stdout);
    for (uint32_t number = 0; number < CLIENTS_MAX; number++) {
        const struct client *client = &found.clients[number];
        if (!client->seen)
            continue;
        printf("%s{\"client\": %" PRIu32 ", \"last\": %" PRIu64 ", \"entries\": %" PRIu64 ", \"gaps\": %" PRIu64 "}",
               before, number, client->last, client->entries, client->last - client->entries);
        before = ", ";
    }
    printf("], \"balances_wrong\": %" PRIu64 ", \"values_wrong\": %" PRIu64 ", \"order_wrong\": %" PRIu64,
           found.balances_wrong, found.values_wrong, found.order_wrong);
    printf(", \"counts_wrong\": %" PRIu64, found.counts_wrong);
    printf(", \"pages\": {\"branch\": %" PRIu64 ", \"leaf\": %" PRIu64 ", \"overflow\": %" PRIu64 ", \"free\": %" PRIu64
           ", \"last\": %" PRIu64 "}, \"pages_unaccounted\": %" PRIu64, found.branch, found.leaf, found.overflow,
           found.free, found.last, found.unaccounted);
    if (error == NULL)
        puts(", \"failure\": null}");
    else
        printf(", \"failure\": {\"error\": \"%s\", \"code\": %d, \"step\": \"%s\"}}\n", error, code, step);
    fflush(stdout);
}

static void demand(int code, const char *step)
{
    if (code == 0)
        return;
    say(mdb_strerror(code), code, step);
    exit(1);
}

static void take_entry(const MDB_val *key, const MDB_val *value)
{
    struct entry_key ours;
    struct entry entry;
    found.entries++;
    if (key->mv_size != sizeof ours || value->mv_size != found.options->value_bytes) {
        found.values_wrong++;
        return;
    }
    memcpy(&ours, key->mv_data, sizeof ours);
    memcpy(&entry, value->mv_data, sizeof entry);
    uint32_t number = be32toh(ours.client);
    uint64_t sequence = be64toh(ours.sequence);
    if (number >= CLIENTS_MAX || sequence == 0 ||
        !is_padded(value->mv_data, sizeof entry, value->mv_size, pad_of(&ours, sizeof ours))) {
        found.values_wrong++;
        return;
    }
    struct client *client = &found.clients[number];
    client->seen = true;
    client->entries++;
    if (sequence > client->last)
        client->last = sequence;
    for (int at = 0; at < CHANGES; at++) {
        if (entry.account[at] >= ACCOUNTS_MAX) {
            found.values_wrong++;
            return;
        }
        found.expected[entry.account[at]].balance += entry.change[at];
        found.expected[entry.account[at]].changes++;
    }
}

static void take_account(const MDB_val *key, const MDB_val *value)
{
    uint32_t ours;
    struct account account;
    if (key->mv_size != sizeof ours || value->mv_size != found.options->value_bytes) {
        found.accounts++;
        found.values_wrong++;
        return;
    }
    memcpy(&ours, key->mv_data, sizeof ours);
    memcpy(&account, value->mv_data, sizeof account);
    uint32_t number = be32toh(ours);
    /* They were made without a gap, so the walk meets them as it counts. */
    if (number != found.accounts || number >= ACCOUNTS_MAX ||
        !is_padded(value->mv_data, sizeof account, value->mv_size, pad_of(&ours, sizeof ours)))
        found.values_wrong++;
    else if (memcmp(&account, &found.expected[number], sizeof account) != 0)
        found.balances_wrong++;
    found.accounts++;
}

static void take_name(const MDB_val *key, const MDB_val *value)
{
    (void)key;
    (void)value;
}

/* A list of free pages: how many, then their numbers. */
static void take_free(const MDB_val *key, const MDB_val *value)
{
    (void)key;
    size_t count;
    if (value->mv_size < sizeof count) {
        found.values_wrong++;
        return;
    }
    memcpy(&count, value->mv_data, sizeof count);
    if (count > value->mv_size / sizeof count - 1)
        found.values_wrong++;
    else
        found.free += count;
}

static bool is_behind(const MDB_val *key, const MDB_val *before)
{
    size_t least = key->mv_size < before->mv_size ? key->mv_size : before->mv_size;
    int order = memcmp(key->mv_data, before->mv_data, least);
    return order > 0 || (order == 0 && key->mv_size > before->mv_size);
}

/* Every entry of one database; a damaged one may lead in a circle, so no further than it says that it goes. */
static void walk(MDB_dbi database, const char *step, void (*take)(const MDB_val *key, const MDB_val *value))
{
    MDB_cursor *cursor;
    MDB_stat stat;
    MDB_val key, value, before = {0, NULL};
    demand(mdb_stat(found.txn, database, &stat), step);
    demand(mdb_cursor_open(found.txn, database, &cursor), step);
    uint64_t count = 0;
    int code;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0 && count <= stat.ms_entries) {
        /* The keys of the free list are numbers of this machine's byte order. */
        if (count > 0 && database != FREE_DBI && !is_behind(&key, &before))
            found.order_wrong++;
        take(&key, &value);
        before = key;
        count++;
    }
    if (code != 0 && code != MDB_NOTFOUND)
        demand(code, step);
    found.counts_wrong += count != stat.ms_entries;
    found.branch += stat.ms_branch_pages;
    found.leaf += stat.ms_leaf_pages;
    found.overflow += stat.ms_overflow_pages;
    mdb_cursor_close(cursor);
}

int check_environment(const struct options *options)
{
    MDB_dbi names, entries, accounts;
    MDB_envinfo info;
    found.options = options;
    found.expected = calloc(ACCOUNTS_MAX, sizeof *found.expected);
    demand(found.expected == NULL ? ENOMEM : 0, "find memory for the accounts");
    demand(mdb_env_create(&found.env), "create the environment");
    demand(mdb_env_set_maxdbs(found.env, DATABASES), "set the databases");
    demand(mdb_env_open(found.env, options->directory, MDB_RDONLY, 0664), "open the environment");
    demand(mdb_txn_begin(found.env, NULL, MDB_RDONLY, &found.txn), "begin to read");
    demand(mdb_env_info(found.env, &info), "begin to read");
    found.transaction = info.me_last_txnid;
    found.last = info.me_last_pgno;
    demand(mdb_dbi_open(found.txn, NULL, 0, &names), "open the databases");
    demand(mdb_dbi_open(found.txn, ENTRIES_NAME, 0, &entries), "open the entries");
    demand(mdb_dbi_open(found.txn, ACCOUNTS_NAME, 0, &accounts), "open the accounts");
    walk(names, "walk the names of the databases", take_name);
    walk(entries, "walk the entries", take_entry);
    walk(accounts, "walk the accounts", take_account);
    for (uint64_t number = found.accounts; number < ACCOUNTS_MAX; number++)
        found.balances_wrong += found.expected[number].changes != 0;
    walk(FREE_DBI, "walk the list of free pages", take_free);
    uint64_t known = META_PAGES + found.branch + found.leaf + found.overflow + found.free, there = found.last + 1;
    found.unaccounted = known > there ? known - there : there - known;
    say(NULL, 0, NULL);
    return 0;
}
