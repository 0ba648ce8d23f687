/*
 * The engine under test, or none. An engine is a folder beside this file with a database_NAME.c, and a program is compiled
 * with one of them; what the timed loops call of it stands in loops.h.
 */
#pragma once

#include "document.h"
#include "failure.h"
#include "options.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct bytes {
    size_t size;
    void *data;
};

enum direction { FORWARD, BACKWARD };

struct database {
    const struct options *options;
    uint64_t keys; /* numbers below it may be there */
    struct bytes null_value;
};

/* What one thread works with: a transaction of its own, or a connection. */
struct session {
    struct database *database;
    void *of_engine;
    uint64_t null_left;
};

/* One transaction of tpcb: what is moved between whom, each by its number from 1. */
struct transfer {
    int64_t delta, account, teller, branch;
};

enum { ACCOUNTS_OF_BRANCH = 100000, TELLERS_OF_BRANCH = 10 };

/* As pgbench has them; at least one. */
static inline uint64_t branches_of(uint64_t accounts)
{
    return accounts < ACCOUNTS_OF_BRANCH ? 1 : accounts / ACCOUNTS_OF_BRANCH;
}

/* What each engine has. A new, empty database, in place of the one of the last test. */
void engine_make(struct database *database, const struct test *test);
/* The one that is there already, or that a test before left. */
void engine_keep(struct database *database, const struct test *test);
void engine_close(void);
void engine_flush(struct session *session);
/* The data file, in the directory of the options. */
extern const char ENGINE_FILE[];
void engine_open_session(struct session *session, const struct test *test);
void engine_close_session(struct session *session);
/* `put` gets every setting as the engine answers it, in JSON, while the session is open. */
void engine_settings(struct session *session, const struct test *test, void (*put)(const char *name, const char *json));
/* Of engines with ENGINE_TRANSFERS: false where another's lock was in the way, and nothing of it is left then. */
bool engine_transfer(struct session *session, const struct transfer *transfer);

/* The same of the engine, or of none. */
void database_make(struct database *database, const struct test *test);
void database_keep(struct database *database, const struct test *test);
void database_close(const struct database *database);
void database_flush(struct session *session);
/* Size and space of the data file, where there is one. */
void database_space(const struct database *database, struct outcome *outcome);
struct session session_open(struct database *database, const struct test *test);
void session_close(struct session *session);

/* For engines: the path of a file of the database, and whether it is there. */
void path_of(const struct options *options, const char *name, char path[PATH_MAX]);
bool is_there(const struct options *options, const char *name);
void remove_file(const struct options *options, const char *name);
/* Refuses to make a database where one is. */
void demand_none(const struct options *options, const char *name, const char *step);

static inline bool is_null(const struct session *session) { return session->database->options->null; }
