/* Reading of a driver's command line. Whoever includes this has defined DRIVER, what it calls itself, and USAGE. */

#ifndef BEDPLATE_ARGUMENTS_H
#define BEDPLATE_ARGUMENTS_H

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* The place in `known` of the next option, -1 behind the last; its value is optarg, and what belongs to none is at optind. */
static inline int next_option(int count, char **words, const struct option *known, int last)
{
    opterr = 0;
    int name = getopt_long(count, words, "", known, NULL);
    if (name != -1 && (name < 0 || name > last))
        usage_error("'%s' is no option, or lacks its value, or takes none", words[optind - 1]);
    return name;
}

/* NAME=VALUE of --set, for an engine that may have no such setting. */
static inline void take_setting(const char *engine, bool (*take)(const char *name, const char *value), const char *text)
{
    const char *equals = strchr(text, '=');
    char name[40]; /* longer than that of any setting */
    if (equals == NULL)
        usage_error("--set takes NAME=VALUE, found '%s'", text);
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    if (!take(name, equals + 1))
        usage_error("--set: %s has no setting '%s'", engine, name);
}

#endif
