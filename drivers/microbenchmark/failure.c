/* failure.h says what may not be done here. */
#define _GNU_SOURCE
#include "failure.h"

#include "document.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { TAIL_BYTES = 4096, LITTLE_BYTES = 1024 * 1024 };

volatile sig_atomic_t stop_signal;

static const char *test_now;
static const uint64_t *operations_now;
static const char *watched;
static char failed_already;
static struct failure_note *note_now;

struct tail {
    char bytes[TAIL_BYTES];
    size_t used;
};

void failure_context(const char *test, const uint64_t *operations)
{
    test_now = test;
    operations_now = operations;
}

void failure_into(struct failure_note *note) { note_now = note; }

static void copy_text(char *to, size_t size, const char *text)
{
    size_t length = strlen(text);
    memcpy(to, text, length < size ? length : size - 1);
}

static void __attribute__((noreturn)) leave_note(const char *error, int code, const char *step)
{
    if (!__atomic_test_and_set(&note_now->claimed, __ATOMIC_SEQ_CST)) {
        copy_text(note_now->error, sizeof note_now->error, error);
        copy_text(note_now->step, sizeof note_now->step, step);
        note_now->code = code;
    }
    _exit(1);
}

void document_write_out(const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t written = write(STDOUT_FILENO, bytes + done, size - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            static const char lost[] = "bedplate-microbenchmark: the document cannot be written to standard output\n";
            if (write(STDERR_FILENO, lost, sizeof lost - 1) < 0)
                _exit(1);
            _exit(1);
        }
        done += (size_t)written;
    }
}

static void add(struct tail *tail, const char *text)
{
    size_t length = strlen(text);
    if (length > TAIL_BYTES - tail->used)
        length = TAIL_BYTES - tail->used;
    memcpy(tail->bytes + tail->used, text, length);
    tail->used += length;
}

static void add_number(struct tail *tail, uint64_t value, bool negative)
{
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    if (negative)
        digits[--at] = '-';
    add(tail, digits + at);
}

/* Texts come from the C library and the engine's; what JSON would choke on is replaced, as none has it today. */
static void add_text(struct tail *tail, const char *text)
{
    add(tail, "\"");
    for (; *text != '\0'; text++) {
        char one[2] = {*text, '\0'};
        add(tail, *text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? "?" : one);
    }
    add(tail, "\"");
}

/* The library calls a write that a full disk cut short an input/output error; what is free tells them apart. */
static bool room_left(uint64_t *free_bytes)
{
    struct statfs room;
    if (watched == NULL || statfs(watched, &room) != 0)
        return false;
    *free_bytes = room.f_bavail * (uint64_t)room.f_bsize;
    return true;
}

void fail_with(const char *error, int code, const char *step)
{
    /* Several threads may fail at once, and one of them writes. */
    while (__atomic_test_and_set(&failed_already, __ATOMIC_SEQ_CST))
        pause();
    if (note_now != NULL)
        leave_note(error, code, step);
    static struct tail tail;
    add(&tail, "\n],\n\"failure\": {\"error\": ");
    add_text(&tail, error);
    add(&tail, ", \"code\": ");
    add_number(&tail, code < 0 ? (uint64_t)-(int64_t)code : (uint64_t)code, code < 0);
    add(&tail, ", \"test\": ");
    if (test_now == NULL)
        add(&tail, "null");
    else
        add_text(&tail, test_now);
    add(&tail, ", \"step\": ");
    add_text(&tail, step);
    add(&tail, ", \"operations\": ");
    add_number(&tail, operations_now == NULL ? 0 : __atomic_load_n(operations_now, __ATOMIC_RELAXED), false);
    uint64_t free_bytes;
    add(&tail, ", \"free_bytes\": ");
    if (room_left(&free_bytes))
        add_number(&tail, free_bytes, false);
    else
        add(&tail, "null");
    add(&tail, "}, \"interrupted\": null}\n");
    if (document.bytes != NULL)
        document_write_out(document.bytes, document.used);
    document_write_out(tail.bytes, tail.used);
    _exit(1);
}

void fail(int code, const char *step) { fail_with(strerror(code), code, step); }

static void on_bus_error(int number)
{
    uint64_t free_bytes;
    if (room_left(&free_bytes) && free_bytes < LITTLE_BYTES)
        fail_with("No space left on device: a page of the memory map could not be allocated (SIGBUS); the file is "
                  "sparse and the disk is full", ENOSPC, "write through the map");
    fail_with("a page of the memory map could not be read or allocated (SIGBUS): the disk or quota is full, the file was "
              "cut, or the device failed", -number, "access to the map");
}

void failure_watch_map(const char *directory)
{
    watched = directory;
    struct sigaction action = {.sa_handler = on_bus_error};
    sigaction(SIGBUS, &action, NULL);
}
