/* What all engines share: their files, and what is left out where there is no engine. */
#define _GNU_SOURCE
#include "database.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of an engine that says nothing of it. */
const bool ENGINE_TRANSFERS __attribute__((weak)) = false;

bool __attribute__((weak)) engine_transfer(struct session *session, const struct transfer *transfer)
{
    (void)session, (void)transfer;
    fail(ENOSYS, "transfer");
}

void path_of(const struct options *options, const char *name, char path[PATH_MAX])
{
    if (snprintf(path, PATH_MAX, "%s/%s", options->directory, name) >= PATH_MAX)
        fail(ENAMETOOLONG, "name the database");
}

bool is_there(const struct options *options, const char *name)
{
    char path[PATH_MAX];
    path_of(options, name, path);
    return access(path, F_OK) == 0;
}

void remove_file(const struct options *options, const char *name)
{
    char path[PATH_MAX];
    path_of(options, name, path);
    if (unlink(path) != 0 && errno != ENOENT)
        fail(errno, "remove the database of the test before");
}

void demand_none(const struct options *options, const char *name, const char *step)
{
    if (is_there(options, name))
        fail_with("a database is in the directory already; remove it, or read it with --existing", EEXIST, step);
}

void database_make(struct database *database, const struct test *test)
{
    database->keys = test_entries(database->options, test);
    if (!database->options->null)
        engine_make(database, test);
}

void database_keep(struct database *database, const struct test *test)
{
    if (database->keys == 0 || test->kind == OVERWRITE)
        database->keys = test_entries(database->options, test);
    if (!database->options->null)
        engine_keep(database, test);
}

void database_close(const struct database *database)
{
    if (!database->options->null)
        engine_close();
}

void database_flush(struct session *session)
{
    if (!is_null(session))
        engine_flush(session);
}

void database_space(const struct database *database, struct outcome *outcome)
{
    struct stat stat;
    char path[PATH_MAX];
    if (database->options->null)
        return;
    path_of(database->options, ENGINE_FILE, path);
    if (lstat(path, &stat) != 0)
        fail(errno, "measure the space");
    outcome->has_file = true;
    outcome->data_size_bytes = (uint64_t)stat.st_size;
    outcome->data_allocated_bytes = (uint64_t)stat.st_blocks * 512; /* of 512 bytes on Linux, whatever the block */
}

struct session session_open(struct database *database, const struct test *test)
{
    struct session session = {.database = database};
    if (!database->options->null)
        engine_open_session(&session, test);
    return session;
}

void session_close(struct session *session)
{
    if (!is_null(session))
        engine_close_session(session);
}
