/*
 * The settings of SQLite that drivers have in common: taken from the command line, set on a connection, and asked for again.
 * Whoever includes this has included arguments.h. Sizes are in bytes, whatever the PRAGMA counts in.
 */
#ifndef BEDPLATE_SQLITE_PRAGMAS_H
#define BEDPLATE_SQLITE_PRAGMAS_H

#include <inttypes.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQLITE_PRAGMAS_USAGE \
    "  synchronous         off, normal, full, extra\n" \
    "  journal_mode        delete, truncate, persist, memory, wal, off\n" \
    "  locking_mode        normal, exclusive\n" \
    "  auto_vacuum         none, full, incremental: of a new database\n" \
    "  page_size           512 to 65536, a power of two: of a new database\n" \
    "  wal_autocheckpoint  pages of the log before a checkpoint; 0 never\n" \
    "  cache_size          bytes, in whole KiB\n" \
    "  mmap_size           bytes; 0 none\n" \
    "  busy_timeout        milliseconds for which a lock of another connection is waited for\n" \
    "  library             version and check-in that sqlite3_sourceid() has to answer\n" \
    "What is not set is the library's own.\n"

enum { SYNCHRONOUS_OFF, SYNCHRONOUS_NORMAL, SYNCHRONOUS_FULL, SYNCHRONOUS_EXTRA };
enum { LOCKING_NORMAL, LOCKING_EXCLUSIVE };
/* In the order in which they are set: what belongs to a new file comes first, and locking before the first look at a WAL. */
enum { PAGE_SIZE, AUTO_VACUUM, LOCKING_MODE, JOURNAL_MODE, SYNCHRONOUS, WAL_AUTOCHECKPOINT, CACHE_SIZE, MMAP_SIZE, BUSY_TIMEOUT, PRAGMAS };

static const char *const SYNCHRONOUS_WORDS[] = {"off", "normal", "full", "extra", NULL};
static const char *const JOURNAL_WORDS[] = {"delete", "truncate", "persist", "memory", "wal", "off", NULL};
static const char *const LOCKING_WORDS[] = {"normal", "exclusive", NULL};
static const char *const VACUUM_WORDS[] = {"none", "full", "incremental", NULL};

static const struct pragma {
    const char *name;
    const char *const *words;     /* NULL: a number */
    bool answers_text;            /* else the place of the word */
    uint64_t least, most, step;
} KNOWN_PRAGMAS[PRAGMAS] = {
    [PAGE_SIZE] = {"page_size", NULL, false, 512, 65536, 512},
    [AUTO_VACUUM] = {"auto_vacuum", VACUUM_WORDS, false, 0, 0, 0},
    [LOCKING_MODE] = {"locking_mode", LOCKING_WORDS, true, 0, 0, 0},
    [JOURNAL_MODE] = {"journal_mode", JOURNAL_WORDS, true, 0, 0, 0},
    [SYNCHRONOUS] = {"synchronous", SYNCHRONOUS_WORDS, false, 0, 0, 0},
    [WAL_AUTOCHECKPOINT] = {"wal_autocheckpoint", NULL, false, 0, 1000000000, 1},
    [CACHE_SIZE] = {"cache_size", NULL, false, 1024, (uint64_t)1 << 40, 1024},
    [MMAP_SIZE] = {"mmap_size", NULL, false, 0, (uint64_t)1 << 46, 1},
    [BUSY_TIMEOUT] = {"busy_timeout", NULL, false, 0, 600000, 1},
};

/* By the places above; -1 where nothing is set. Of words the place in their list. */
struct pragmas {
    int64_t value[PRAGMAS];
};

static inline struct pragmas pragmas_unset(void)
{
    struct pragmas found;
    memset(&found, 0xFF, sizeof found);
    return found;
}

/* Version and check-in of the library that runs: 3.54.1-0123456789. */
static inline void library_text(char text[40])
{
    int year, month, day, hour, minute, second;
    char check_in[11] = "";
    sscanf(sqlite3_sourceid(), "%d-%d-%d %d:%d:%d %10s", &year, &month, &day, &hour, &minute, &second, check_in);
    snprintf(text, 40, "%.20s-%s", sqlite3_libversion(), check_in);
}

/* False where there is no such setting. */
static inline bool pragmas_take(struct pragmas *pragmas, const char *name, const char *text)
{
    char running[40];
    library_text(running);
    if (strcmp(name, "library") == 0 && strcmp(text, running) != 0)
        usage_error("--set library=%s was asked for, and this is %s", text, running);
    if (strcmp(name, "library") == 0)
        return true;
    for (size_t at = 0; at < PRAGMAS; at++) {
        const struct pragma *pragma = &KNOWN_PRAGMAS[at];
        char called[40];
        if (strcmp(pragma->name, name) != 0)
            continue;
        snprintf(called, sizeof called, "set %s", name);
        pragmas->value[at] = pragma->words != NULL
                                 ? word(called, text, pragma->words)
                                 : (int64_t)number_in_steps(called, text, pragma->least, pragma->most, pragma->step);
        return true;
    }
    return false;
}

/* The library's code. A journal mode that cannot be had is no error here: the answer says which it is. */
static inline int pragmas_set(sqlite3 *connection, const struct pragmas *pragmas)
{
    for (size_t at = 0; at < PRAGMAS; at++) {
        const struct pragma *pragma = &KNOWN_PRAGMAS[at];
        int64_t value = pragmas->value[at];
        char text[80];
        if (value < 0)
            continue;
        if (pragma->words != NULL)
            snprintf(text, sizeof text, "PRAGMA %s = %s", pragma->name, pragma->words[value]);
        else
            /* Of a cache minus means KiB. */
            snprintf(text, sizeof text, "PRAGMA %s = %" PRId64, pragma->name, at == CACHE_SIZE ? -(value / 1024) : value);
        int code = sqlite3_exec(connection, text, NULL, NULL, NULL);
        if (code != SQLITE_OK)
            return code;
    }
    return SQLITE_OK;
}

/* One PRAGMA's answer in JSON; the library's code. */
static inline int pragma_read(sqlite3 *connection, size_t at, int64_t page_size, char json[40])
{
    const struct pragma *pragma = &KNOWN_PRAGMAS[at];
    sqlite3_stmt *asked;
    char text[60];
    snprintf(text, sizeof text, "PRAGMA %s", pragma->name);
    int code = sqlite3_prepare_v2(connection, text, -1, &asked, NULL);
    if (code != SQLITE_OK)
        return code;
    if ((code = sqlite3_step(asked)) == SQLITE_ROW) {
        int64_t value = sqlite3_column_int64(asked, 0);
        if (pragma->answers_text)
            snprintf(json, 40, "\"%s\"", (const char *)sqlite3_column_text(asked, 0));
        else if (pragma->words != NULL)
            snprintf(json, 40, "\"%s\"", pragma->words[value]);
        else if (at == CACHE_SIZE)
            snprintf(json, 40, "%" PRId64, value < 0 ? -value * 1024 : value * page_size);
        else
            snprintf(json, 40, "%" PRId64, value);
        code = SQLITE_OK;
    } else if (code == SQLITE_DONE) {
        /* A build without memory maps answers nothing. */
        snprintf(json, 40, "null");
        code = SQLITE_OK;
    }
    sqlite3_finalize(asked);
    return code;
}

/* Each as the library answers it; its code. */
static inline int pragmas_read(sqlite3 *connection, void (*put)(const char *name, const char *json))
{
    int64_t page_size = 0;
    for (size_t at = 0; at < PRAGMAS; at++) {
        char json[40];
        int code = pragma_read(connection, at, page_size, json);
        if (code != SQLITE_OK)
            return code;
        if (at == PAGE_SIZE)
            page_size = atoll(json);
        put(KNOWN_PRAGMAS[at].name, json);
    }
    char library[40], quoted[44];
    library_text(library);
    snprintf(quoted, sizeof quoted, "\"%s\"", library);
    put("library", quoted);
    return SQLITE_OK;
}

#endif
