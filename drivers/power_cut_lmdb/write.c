/* Makes the environment and commits to it, a mark behind each commit. */
#define _GNU_SOURCE
#include "write.h"

#include "schema.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ZEROS_BYTES = 1024 * 1024, PREPARED_AT_ONCE = 10000 };
static const uint64_t SECOND_NS = 1000000000u;

struct writer {
    const struct options *options;
    MDB_env *env;
    MDB_dbi entries, accounts;
    int mark;
    uint64_t transactions, begun_ns;
};

static volatile sig_atomic_t stop_signal;
static struct writer writer; /* one, so that a failure anywhere can say how far it came */

static void ask_to_stop(int number) { stop_signal = number; }

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void say(const char *error, int code, const char *step)
{
    uint64_t elapsed_ns = writer.begun_ns == 0 ? 0 : clock_ns() - writer.begun_ns;
    printf("{\"library\": \"%d.%d.%d\", \"transactions\": %" PRIu64 ", \"elapsed_ns\": %" PRIu64, MDB_VERSION_MAJOR,
           MDB_VERSION_MINOR, MDB_VERSION_PATCH, writer.transactions, elapsed_ns);
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

static void write_mark(const char *text, int length)
{
    if (writer.mark >= 0 && write(writer.mark, text, (size_t)length) != length)
        demand(errno, "write a mark");
}

static void write_zeros(int file, uint64_t from, uint64_t to)
{
    static char zeros[ZEROS_BYTES];
    while (from < to && stop_signal == 0) {
        size_t part = to - from < ZEROS_BYTES ? (size_t)(to - from) : ZEROS_BYTES;
        ssize_t written = pwrite(file, zeros, part, (off_t)from);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            demand(written < 0 ? errno : ENOSPC, "preallocate: written");
        from += (uint64_t)written;
    }
}

/* From behind the meta pages on, which hold data by now, to the end of the map; no other page does yet. */
static void preallocate(const struct options *options)
{
    int file;
    MDB_stat stat;
    off_t end = (off_t)options->map_bytes;
    demand(mdb_env_stat(writer.env, &stat), "preallocate");
    demand(stat.ms_entries > 0 ? EEXIST : 0, "make a new environment");
    demand(mdb_env_get_fd(writer.env, &file), "preallocate");
    switch (options->preallocation) {
    case PREALLOCATE_NONE: return;
    case PREALLOCATE_FTRUNCATE: demand(ftruncate(file, end) == 0 ? 0 : errno, "preallocate: ftruncate"); break;
    case PREALLOCATE_FALLOCATE: demand(fallocate(file, 0, 0, end) == 0 ? 0 : errno, "preallocate: fallocate"); break;
    case PREALLOCATE_WRITTEN: write_zeros(file, 2 * (uint64_t)stat.ms_psize, options->map_bytes); break;
    }
    demand(fsync(file) == 0 ? 0 : errno, "preallocate: fsync");
}

static void open_environment(const struct options *options)
{
    static const unsigned SYNC_FLAGS[] = {0, MDB_NOMETASYNC, MDB_NOSYNC, MDB_MAPASYNC};
    unsigned flags = SYNC_FLAGS[options->sync] | (options->writemap ? MDB_WRITEMAP : 0) |
                     (options->readahead ? 0 : MDB_NORDAHEAD);
    MDB_txn *txn;
    demand(mdb_env_create(&writer.env), "create the environment");
    demand(mdb_env_set_mapsize(writer.env, options->map_bytes), "set the map's size");
    demand(mdb_env_set_maxdbs(writer.env, DATABASES), "set the databases");
    demand(mdb_env_open(writer.env, options->directory, flags, 0664), "open the environment");
    preallocate(options);
    demand(mdb_txn_begin(writer.env, NULL, 0, &txn), "make the databases");
    demand(mdb_dbi_open(txn, ENTRIES_NAME, MDB_CREATE, &writer.entries), "make the databases");
    demand(mdb_dbi_open(txn, ACCOUNTS_NAME, MDB_CREATE, &writer.accounts), "make the databases");
    demand(mdb_txn_commit(txn), "make the databases");
}

static void make_accounts(const struct options *options)
{
    static char value[VALUE_BYTES_MAX];
    for (uint64_t from = 0; from < options->accounts; from += PREPARED_AT_ONCE) {
        MDB_txn *txn;
        demand(mdb_txn_begin(writer.env, NULL, 0, &txn), "make the accounts");
        for (uint64_t number = from; number < options->accounts && number < from + PREPARED_AT_ONCE; number++) {
            uint32_t key = htobe32((uint32_t)number);
            pad(value, sizeof(struct account), options->value_bytes, pad_of(&key, sizeof key));
            MDB_val key_value = {sizeof key, &key}, data = {options->value_bytes, value};
            demand(mdb_put(txn, writer.accounts, &key_value, &data, MDB_APPEND), "make the accounts");
        }
        demand(mdb_txn_commit(txn), "make the accounts");
    }
    demand(mdb_env_sync(writer.env, 1), "bring the accounts to the medium");
    /* A database that was made long ago has nothing unwritten, the file system's own maps of it included. */
    int file;
    demand(mdb_env_get_fd(writer.env, &file), "bring the file system to the medium");
    demand(syncfs(file) == 0 ? 0 : errno, "bring the file system to the medium");
}

static void change_account(MDB_txn *txn, const struct options *options, uint32_t number, int32_t change)
{
    char value[VALUE_BYTES_MAX];
    uint32_t key = htobe32(number);
    MDB_val key_value = {sizeof key, &key}, data;
    demand(mdb_get(txn, writer.accounts, &key_value, &data), "read an account");
    if (data.mv_size != options->value_bytes)
        demand(MDB_BAD_VALSIZE, "read an account");
    memcpy(value, data.mv_data, data.mv_size);
    struct account *account = (struct account *)value;
    account->balance += change;
    account->changes++;
    data = (MDB_val){options->value_bytes, value};
    demand(mdb_put(txn, writer.accounts, &key_value, &data, 0), "change an account");
}

static void commit_one(const struct options *options, uint32_t client, uint64_t sequence)
{
    char value[VALUE_BYTES_MAX], mark[80];
    struct entry *entry = (struct entry *)value;
    struct entry_key key = {htobe32(client), htobe64(sequence)};
    MDB_txn *txn;
    demand(mdb_txn_begin(writer.env, NULL, 0, &txn), "begin a transaction");
    for (uint64_t at = 0; at < CHANGES; at++) {
        uint64_t drawn = mix(options->seed ^ mix(((uint64_t)client << 40) + sequence * CHANGES + at));
        entry->account[at] = (uint32_t)(drawn % options->accounts);
        entry->change[at] = (int32_t)(drawn >> 44) - (1 << 19);
        change_account(txn, options, entry->account[at], entry->change[at]);
    }
    pad(value, sizeof *entry, options->value_bytes, pad_of(&key, sizeof key));
    MDB_val key_value = {sizeof key, &key}, data = {options->value_bytes, value};
    demand(mdb_put(txn, writer.entries, &key_value, &data, MDB_NOOVERWRITE), "put an entry");
    demand(mdb_txn_commit(txn), "commit");
    uint64_t now_us = clock_ns() / 1000;
    int length = snprintf(mark, sizeof mark, "A %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", client, sequence, now_us);
    write_mark(mark, length);
    writer.transactions++;
}

/* Without it a short run without flushes would leave everything in the page cache, and nothing on the disk. */
static void *press(void *unused)
{
    (void)unused;
    int file;
    uint64_t every_ns = writer.options->pressure_ms * 1000000;
    if (mdb_env_get_fd(writer.env, &file) != 0)
        return NULL;
    for (uint64_t next_ns = clock_ns() + every_ns;; next_ns += every_ns) {
        struct timespec next = {(time_t)(next_ns / SECOND_NS), (long)(next_ns % SECOND_NS)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
}

static uint64_t size_of(const char *path)
{
    struct stat found;
    demand(stat(path, &found) == 0 ? 0 : errno, "look at the log");
    return (uint64_t)found.st_size;
}

/* Full speed until this second's part of the log is used up, then a rest until the next (../power_cut/pressure.py). */
static void keep_pace(const struct options *options, uint64_t first_bytes, uint64_t end_ns)
{
    if (options->log == NULL)
        return;
    uint64_t left = options->log_most > first_bytes ? options->log_most - first_bytes : 0;
    uint64_t room = options->log_bytes < left ? options->log_bytes : left;
    for (;;) {
        uint64_t second = (clock_ns() - writer.begun_ns) / SECOND_NS + 1;
        uint64_t next_ns = writer.begun_ns + second * SECOND_NS;
        if (size_of(options->log) - first_bytes < room / options->duration_s * second)
            return;
        if (stop_signal != 0 || next_ns >= end_ns)
            next_ns = end_ns;
        /* A signal ends the rest. */
        struct timespec next = {(time_t)(next_ns / SECOND_NS), (long)(next_ns % SECOND_NS)};
        if (stop_signal != 0 || clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) != 0 || next_ns == end_ns)
            return;
    }
}

int write_transactions(const struct options *options)
{
    struct sigaction stop = {.sa_handler = ask_to_stop, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    writer.options = options;
    writer.mark = options->mark == NULL ? -1 : open(options->mark, O_WRONLY | O_CLOEXEC);
    demand(options->mark != NULL && writer.mark < 0 ? errno : 0, "open the file of marks");
    open_environment(options);
    make_accounts(options);
    puts("{\"ready\": true}");
    fflush(stdout);
    pthread_t thread;
    if (options->pressure_ms > 0)
        demand(pthread_create(&thread, NULL, press, NULL), "start the thread of pressure");
    write_mark("begin\n", 6);
    writer.begun_ns = clock_ns();
    uint64_t end_ns = writer.begun_ns + options->duration_s * SECOND_NS;
    uint64_t first_bytes = options->log == NULL ? 0 : size_of(options->log);
    for (uint64_t number = 0; stop_signal == 0 && clock_ns() < end_ns; number++) {
        commit_one(options, (uint32_t)(number % options->clients), number / options->clients + 1);
        keep_pace(options, first_bytes, end_ns);
    }
    write_mark("end\n", 4);
    say(NULL, 0, NULL);
    /* No closing of the environment: nothing more is written than the run itself did. */
    return 0;
}
