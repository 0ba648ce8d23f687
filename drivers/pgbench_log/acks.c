/*
 * Times what a writer of somebody's own acknowledges, as it comes through a pipe.
 *
 * The writer prints `begin` once, and `ack CLIENT NUMBER` behind each transaction (docs/ENGINES.md). Latency of a
 * transaction is the time from its client's line before it (the first: from `begin`) to its own, so it holds what the
 * client does between two transactions. The time of a line is that of the read(2) that brought it, on the monotonic clock.
 * Two lines of one client in one read show that the reader came late, or that the writer held lines back: they are counted.
 *
 * Standard input says what is counted: from a first byte on, until its end. What comes before the byte is the warm-up.
 */
#define _GNU_SOURCE
#include "options.h"
#include "parser.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 250, BLOCK_BYTES = 64 * 1024, LINE_BYTES = 64, NUMBER_DIGITS = 18 };
static const int64_t SECOND_NS = 1000000000;

struct client {
    uint64_t last, read; /* its last number, and in which read that was */
    int64_t since_ns;
};

struct writer {
    const struct options *options;
    struct client *clients;
    struct table *table; /* NULL: nothing is counted */
    struct output *output;
    bool begun, measured;
    uint64_t reads, acks, together;
    int64_t now_ns, second, closed;      /* of the last look; the last second that was closed */
    int64_t from_ns, heard_ns, quiet_ns; /* of the part that is measured; the longest time without an ack in it */
    char rest[LINE_BYTES];
    size_t rest_bytes;
};

static void look_at_clocks(struct writer *writer)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    writer->second = now.tv_sec;
    clock_gettime(CLOCK_MONOTONIC, &now);
    writer->now_ns = now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void part_begin(struct writer *writer, const char *path)
{
    output_open(writer->output, path, 0);
    writer->table = table_new(writer->output, 0);
    writer->table->live = true;
}

static void part_end(struct writer *writer)
{
    struct table *table = writer->table;
    if (table == NULL)
        return;
    table_close_through(table, INT64_MAX);
    table->totals.files = 1;
    output_finish(writer->output, &table->totals, table->quote);
    writer->table = NULL;
}

static void hear(struct writer *writer)
{
    if (writer->now_ns - writer->heard_ns > writer->quiet_ns)
        writer->quiet_ns = writer->now_ns - writer->heard_ns;
    writer->heard_ns = writer->now_ns;
}

static void __attribute__((noreturn)) refuse(const char *line, size_t bytes, const char *why)
{
    char shown[LINE_BYTES + 1];
    size_t at = 0;
    for (; at < bytes && at < LINE_BYTES; at++)
        shown[at] = line[at] >= ' ' && line[at] <= '~' ? line[at] : '?';
    shown[at] = '\0';
    fprintf(stderr, "%s%s\n", shown, why);
    exit(REFUSED);
}

static const char *digits(const char *at, const char *end, size_t most, uint64_t *value)
{
    const char *first = at;
    for (*value = 0; at < end && *at >= '0' && *at <= '9' && (size_t)(at - first) < most; at++)
        *value = *value * 10 + (uint64_t)(*at - '0');
    return at == first ? NULL : at;
}

static void ack_count(struct writer *writer, struct client *client)
{
    if (writer->table == NULL)
        return;
    transaction_add(writer->table, writer->second, (uint64_t)(writer->now_ns - client->since_ns) / 1000);
    writer->table->totals.lines++;
    if (!writer->measured)
        return;
    writer->acks++;
    writer->together += client->read == writer->reads;
    hear(writer);
}

static void line_take(struct writer *writer, const char *line, size_t bytes)
{
    const char *end = line + bytes;
    if (!writer->begun) {
        writer->begun = true;
        for (uint64_t i = 0; i < writer->options->clients; i++)
            writer->clients[i].since_ns = writer->now_ns;
        if (writer->options->warmup != NULL)
            part_begin(writer, writer->options->warmup);
        dprintf(STDOUT_FILENO, "begin\n");
        if (bytes == 5 && memcmp(line, "begin", 5) == 0)
            return;
    }
    uint64_t number = 0, who = 0;
    const char *at = bytes > 4 && memcmp(line, "ack ", 4) == 0 ? digits(line + 4, end, 9, &who) : NULL;
    if (at == NULL || at == end || *at != ' ' || digits(at + 1, end, NUMBER_DIGITS, &number) != end ||
        who >= writer->options->clients)
        refuse(line, bytes, "");
    struct client *client = &writer->clients[who];
    if (number != client->last + 1) {
        char why[80];
        snprintf(why, sizeof why, ", behind %" PRIu64 " of client %" PRIu64, client->last, who);
        refuse(line, bytes, why);
    }
    ack_count(writer, client);
    *client = (struct client){.last = number, .read = writer->reads, .since_ns = writer->now_ns};
}

/* Takes what is in the pipe; false at its end, with what is left of a line that has no end. */
static bool pipe_read(struct writer *writer)
{
    static char block[LINE_BYTES + BLOCK_BYTES];
    memcpy(block, writer->rest, writer->rest_bytes);
    ssize_t found = read(writer->options->acks, block + writer->rest_bytes, BLOCK_BYTES);
    if (found < 0 && errno == EINTR)
        return true;
    if (found < 0)
        die("cannot read what the writer prints: %s", strerror(errno));
    if (found == 0) {
        if (writer->rest_bytes > 0)
            refuse(writer->rest, writer->rest_bytes, ", and no end of the line");
        return false;
    }
    look_at_clocks(writer);
    writer->reads++;
    const char *at = block, *end = block + writer->rest_bytes + found, *stop;
    for (; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL; at = stop + 1)
        line_take(writer, at, (size_t)(stop - at));
    writer->rest_bytes = (size_t)(end - at);
    if (writer->rest_bytes >= LINE_BYTES)
        refuse(at, writer->rest_bytes, "…");
    memcpy(writer->rest, at, writer->rest_bytes);
    return true;
}

static void measure_begin(struct writer *writer)
{
    part_end(writer);
    part_begin(writer, writer->options->output);
    look_at_clocks(writer);
    writer->measured = true;
    writer->from_ns = writer->heard_ns = writer->now_ns;
    dprintf(STDOUT_FILENO, "measure\n");
}

static void measure_end(struct writer *writer)
{
    part_end(writer);
    if (!writer->measured)
        return;
    look_at_clocks(writer);
    hear(writer);
    dprintf(STDOUT_FILENO, "end %" PRIu64 " %.6f %" PRIu64 " %.6f\n", writer->acks,
            (double)(writer->now_ns - writer->from_ns) / (double)SECOND_NS, writer->together,
            (double)writer->quiet_ns / (double)SECOND_NS);
}

static void seconds_close(struct writer *writer)
{
    look_at_clocks(writer);
    if (writer->table == NULL || writer->closed == writer->second - 1)
        return;
    writer->closed = writer->second - 1;
    table_close_through(writer->table, writer->closed);
    output_flush(writer->output);
}

/* The writer may still print, and a pipe that nobody reads would end it before it is told to. */
static void drain(int pipe)
{
    static char block[BLOCK_BYTES];
    while (read(pipe, block, sizeof block) > 0)
        continue;
}

void read_acks(const struct options *options, struct output *output)
{
    struct writer writer = {.options = options, .output = output};
    struct pollfd events[] = {{.fd = options->acks, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    writer.clients = calloc(options->clients, sizeof *writer.clients);
    if (writer.clients == NULL)
        die("out of memory for %" PRIu64 " clients", options->clients);
    signal(SIGPIPE, SIG_IGN); /* whoever watches the live lines may go; the record goes on */
    for (bool more = true; more;) {
        if (poll(events, 2, TICK_MS) < 0 && errno != EINTR)
            die("cannot wait for events: %s", strerror(errno));
        /* What was printed before the measurement begins or ends belongs before it. */
        if (events[0].revents != 0)
            more = pipe_read(&writer);
        char word;
        if (more && events[1].revents != 0 && read(STDIN_FILENO, &word, 1) == 1)
            measure_begin(&writer);
        else if (events[1].revents != 0)
            break;
        seconds_close(&writer);
    }
    measure_end(&writer);
    drain(options->acks);
    free(writer.clients);
}
