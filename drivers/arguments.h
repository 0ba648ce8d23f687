/* Reading of a driver's command line. Whoever includes this has defined DRIVER, what it calls itself, and USAGE. */

#ifndef BEDPLATE_ARGUMENTS_H
#define BEDPLATE_ARGUMENTS_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void __attribute__((noreturn, format(printf, 1, 2))) usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs(DRIVER ": ", stderr);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n\n%s", USAGE);
    va_end(arguments);
    exit(2);
}

static inline uint64_t number_in_steps(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t step)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    /* strtoull takes blanks and a minus, and turns -1 into the largest number. */
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && value >= least && value <= most && value % step == 0)
        return value;
    if (step > 1)
        usage_error("--%s takes a whole number from %llu to %llu, in steps of %llu, found '%s'", name,
                    (unsigned long long)least, (unsigned long long)most, (unsigned long long)step, text);
    usage_error("--%s takes a whole number from %llu to %llu, found '%s'", name, (unsigned long long)least,
                (unsigned long long)most, text);
}

static inline uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    return number_in_steps(name, text, least, most, 1);
}

static inline int word(const char *name, const char *text, const char *const *words)
{
    for (int at = 0; words[at] != NULL; at++)
        if (strcmp(words[at], text) == 0)
            return at;
    usage_error("--%s does not know '%s'", name, text);
}

#endif
