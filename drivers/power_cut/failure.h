/* How a failure ends the program: with the mode's document, the reason in it, and status 1. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the document of the mode; `error` is NULL where nothing failed. */
extern void (*say)(const char *error, int code, const char *step);

static inline void __attribute__((noreturn)) fail(const char *error, int code, const char *step)
{
    say(error, code, step);
    exit(1);
}

/* For errnos; an engine's own codes have its library's text. */
static inline void demand_system(int code, const char *step)
{
    if (code != 0)
        fail(strerror(code), code, step);
}

/* A text in JSON: what would end it is replaced, as no text of a library that was seen has it. */
static inline void print_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++)
        putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '?' : *text);
    putchar('"');
}

/* The end of both documents. */
static inline void print_failure(const char *error, int code, const char *step)
{
    fputs(", \"failure\": ", stdout);
    if (error == NULL) {
        puts("null}");
    } else {
        fputs("{\"error\": ", stdout);
        print_text(error);
        printf(", \"code\": %d, \"step\": \"%s\"}}\n", code, step);
    }
    fflush(stdout);
}
