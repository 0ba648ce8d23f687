/*
 * How a failure ends the program: the document with the tests that ended before it, the reason in it, and
 * status 1. All of it may run inside a signal handler, so nothing here takes memory or a lock.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* The signal that asked to stop, or 0. */
extern volatile sig_atomic_t stop_signal;

/* What runs now, for the sentence about what failed. `operations` may be NULL. */
void failure_context(const char *test, const uint64_t *operations);

/* A page of the map that cannot be had comes as SIGBUS: on a full disk, where the file was sparse. */
void failure_watch_map(const char *directory);

/* In memory that processes share: the first failure of one that has no document. */
struct failure_note {
    char claimed, error[256], step[64];
    int code;
};
/* From now on a failure of this process is left there, for the one that has the document. */
void failure_into(struct failure_note *note);

void document_write_out(const char *bytes, size_t size);
void __attribute__((noreturn)) fail_with(const char *error, int code, const char *step);
/* `code` is an errno; an engine's own has its library's text. */
void __attribute__((noreturn)) fail(int code, const char *step);
