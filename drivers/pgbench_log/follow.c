/* Follows all logs of one running pgbench until it is told that pgbench has ended. */
#define _GNU_SOURCE
#include "options.h"
#include "source.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 250 };

struct follower {
    const struct options *options;
    struct table *table;
    char *directory;
    const char *base;
    char *block;
    struct source *sources;
    size_t count;
    int inotify, signals;
};

/* PREFIX.PID or PREFIX.PID.THREAD, as pgbench names its logs; other files stand beside them. */
static bool follower_matches(const struct follower *follower, const char *name)
{
    size_t length = strlen(follower->base);
    if (strncmp(name, follower->base, length) != 0)
        return false;
    name += length;
    for (unsigned part = 0; part < 2; part++) {
        size_t digits = *name == '.' ? strspn(name + 1, "0123456789") : 0;
        if (digits == 0)
            return false;
        name += 1 + digits;
        if (*name == '\0')
            return true;
    }
    return false;
}

static void follower_scan(struct follower *follower)
{
    DIR *directory = opendir(follower->directory);
    if (directory == NULL)
        die("cannot list %s: %s", follower->directory, strerror(errno));
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[PATH_MAX];
        if (!follower_matches(follower, entry->d_name))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", follower->directory, entry->d_name) >= (int)sizeof path)
            die("the path of %s in %s is too long", entry->d_name, follower->directory);
        size_t known = 0;
        while (known < follower->count && strcmp(follower->sources[known].path, path) != 0)
            known++;
        if (known < follower->count)
            continue;
        struct source *grown = realloc(follower->sources, (follower->count + 1) * sizeof *grown);
        if (grown == NULL)
            die("out of memory for one more log file");
        follower->sources = grown;
        source_open(&grown[follower->count], path, follower->count, follower->options->punch);
        follower->count++;
    }
    closedir(directory);
}

/*
 * The last second that can be closed. Within one file lines are in the order of completion, so a file
 * that shows a line of second S has shown everything before S. A file that shows nothing (its clients
 * stall or are gone) holds the others back for `patience` seconds only; its lines make late records.
 */
static int64_t follower_horizon(const struct follower *follower)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t overdue = (int64_t)now.tv_sec - follower->options->patience_s - 1, horizon = INT64_MAX;
    for (size_t i = 0; i < follower->count; i++) {
        int64_t last = follower->sources[i].last_second;
        int64_t bound = last != INT64_MIN && last - 1 > overdue ? last - 1 : overdue;
        horizon = bound < horizon ? bound : horizon;
    }
    return horizon;
}

static void follower_open(struct follower *follower)
{
    const char *prefix = follower->options->prefix, *slash = strrchr(prefix, '/');
    follower->base = slash == NULL ? prefix : slash + 1;
    follower->directory = slash == NULL ? strdup(".") : strndup(prefix, slash == prefix ? 1 : (size_t)(slash - prefix));
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN); /* whoever watches the live lines may go; the record goes on */
    follower->signals = signalfd(-1, &stop, SFD_CLOEXEC);
    follower->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (follower->signals < 0 || follower->inotify < 0)
        die("cannot wait for events: %s", strerror(errno));
    /* The watch comes before the first scan, so that no file can slip between the two. */
    if (inotify_add_watch(follower->inotify, follower->directory, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
        die("cannot watch the directory %s: %s", follower->directory, strerror(errno));
    follower_scan(follower);
}

static void follower_run(struct follower *follower)
{
    struct pollfd events[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                              {.fd = follower->signals, .events = POLLIN},
                              {.fd = follower->inotify, .events = POLLIN}};
    for (bool stop = false; !stop;) {
        /* Files are looked at four times a second, not at every write: pgbench writes hundreds of
         * blocks a second, and waking for each would cost the machine that is measured. */
        if (poll(events, 3, TICK_MS) < 0 && errno != EINTR)
            die("cannot wait for events: %s", strerror(errno));
        stop = events[0].revents != 0 || events[1].revents != 0;
        if (events[2].revents != 0) {
            char ignored[4096];
            while (read(follower->inotify, ignored, sizeof ignored) > 0)
                continue;
        }
        if (stop || events[2].revents != 0)
            follower_scan(follower);
        for (size_t i = 0; i < follower->count; i++)
            source_read(&follower->sources[i], follower->table, follower->block, follower->options->punch);
        table_close_through(follower->table, follower_horizon(follower));
        output_flush(follower->table->output);
    }
}

uint64_t follow(const struct options *options, struct table *table)
{
    struct follower follower = {.options = options, .table = table, .block = block_new()};
    table->live = true;
    follower_open(&follower);
    follower_run(&follower);
    for (size_t i = 0; i < follower.count; i++) {
        source_finish(&follower.sources[i], table);
        table->totals.bytes += follower.sources[i].offset;
    }
    table_close_through(table, INT64_MAX);
    return follower.count;
}
