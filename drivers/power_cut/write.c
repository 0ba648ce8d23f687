/* Makes the tables and commits to them, a mark behind each commit. */
#define _GNU_SOURCE
#include "write.h"

#include "failure.h"
#include "schema.h"
#include "store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PREPARED_AT_ONCE = 10000 };
static const uint64_t SECOND_NS = 1000000000u;

/* One, so that a failure anywhere can say how far it came. */
static struct {
    const struct options *options;
    int mark;
    uint64_t transactions, begun_ns;
} writer;

volatile sig_atomic_t stop_signal;

static void ask_to_stop(int number) { stop_signal = number; }

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void say_written(const char *error, int code, const char *step)
{
    uint64_t elapsed_ns = writer.begun_ns == 0 ? 0 : clock_ns() - writer.begun_ns;
    printf("{\"library\": \"%s\", \"transactions\": %" PRIu64 ", \"elapsed_ns\": %" PRIu64, store_version(),
           writer.transactions, elapsed_ns);
    print_failure(error, code, step);
}

static void write_mark(const char *text, int length)
{
    if (writer.mark >= 0 && write(writer.mark, text, (size_t)length) != length)
        demand_system(errno, "write a mark");
}

static void make_accounts(const struct options *options)
{
    static char value[VALUE_BYTES_MAX];
    for (uint64_t from = 0; from < options->accounts; from += PREPARED_AT_ONCE) {
        store_begin();
        for (uint64_t number = from; number < options->accounts && number < from + PREPARED_AT_ONCE; number++) {
            uint32_t key = htobe32((uint32_t)number);
            pad(value, sizeof(struct account), options->value_bytes, pad_of(&key, sizeof key));
            struct bytes name = {sizeof key, &key}, data = {options->value_bytes, value};
            store_put(ACCOUNTS, &name, &data, true, true);
        }
        store_commit();
    }
    /* A database that was made long ago has nothing unwritten, the file system's own maps of it included. */
    store_flush();
}

static void change_account(const struct options *options, uint32_t number, int32_t change)
{
    char value[VALUE_BYTES_MAX];
    uint32_t key = htobe32(number);
    struct bytes name = {sizeof key, &key};
    if (store_get(ACCOUNTS, &name, value) != options->value_bytes)
        fail("an account has another size than it was made with", EINVAL, "read an account");
    struct account *account = (struct account *)value;
    account->balance += change;
    account->changes++;
    struct bytes data = {options->value_bytes, value};
    store_put(ACCOUNTS, &name, &data, false, false);
}

static void commit_one(const struct options *options, uint32_t client, uint64_t sequence)
{
    char value[VALUE_BYTES_MAX], mark[80];
    struct entry *entry = (struct entry *)value;
    struct entry_key key = {htobe32(client), htobe64(sequence)};
    store_begin();
    for (uint64_t at = 0; at < CHANGES; at++) {
        uint64_t drawn = mix(options->seed ^ mix(((uint64_t)client << 40) + sequence * CHANGES + at));
        entry->account[at] = (uint32_t)(drawn % options->accounts);
        entry->change[at] = (int32_t)(drawn >> 44) - (1 << 19);
        change_account(options, entry->account[at], entry->change[at]);
    }
    pad(value, sizeof *entry, options->value_bytes, pad_of(&key, sizeof key));
    struct bytes name = {sizeof key, &key}, data = {options->value_bytes, value};
    store_put(ENTRIES, &name, &data, true, false);
    store_commit();
    uint64_t now_us = clock_ns() / 1000;
    int length = snprintf(mark, sizeof mark, "A %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", client, sequence, now_us);
    write_mark(mark, length);
    writer.transactions++;
}

/* Without it a short run without flushes would leave everything in the page cache, and nothing on the disk. */
static void *press(void *unused)
{
    (void)unused;
    uint64_t every_ns = writer.options->pressure_ms * 1000000;
    for (uint64_t next_ns = clock_ns() + every_ns;; next_ns += every_ns) {
        struct timespec next = {(time_t)(next_ns / SECOND_NS), (long)(next_ns % SECOND_NS)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        store_press();
    }
    return NULL;
}

static uint64_t size_of(const char *path)
{
    struct stat found;
    demand_system(stat(path, &found) == 0 ? 0 : errno, "look at the log");
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
    say = say_written;
    writer.options = options;
    writer.mark = options->mark == NULL ? -1 : open(options->mark, O_WRONLY | O_CLOEXEC);
    demand_system(options->mark != NULL && writer.mark < 0 ? errno : 0, "open the file of marks");
    store_make(options);
    make_accounts(options);
    puts("{\"ready\": true}");
    fflush(stdout);
    pthread_t thread;
    if (options->pressure_ms > 0)
        demand_system(pthread_create(&thread, NULL, press, NULL), "start the thread of pressure");
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
    /* No closing of the database: nothing more is written than the run itself did. */
    return 0;
}
