/* The document about what was recorded so far. */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 34
#include "recorder.h"

#include <fuse3/fuse_lowlevel.h>
#include <inttypes.h>
#include <stdio.h>

struct text {
    char *at;
    size_t left;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->at, text->left, format, arguments);
    va_end(arguments);
    /* STATUS_BYTES leaves room for the longest failure with every byte escaped. */
    if (length > 0 && (size_t)length < text->left) {
        text->at += length;
        text->left -= (size_t)length;
    }
}

/* A path may hold anything. Bytes that are no ASCII go through as they are. */
static void add_string(struct text *text, const char *string)
{
    add(text, "\"");
    for (; *string != '\0'; string++) {
        unsigned char byte = (unsigned char)*string;
        if (byte == '"' || byte == '\\')
            add(text, "\\%c", byte);
        else if (byte < ' ')
            add(text, "\\u%04x", byte);
        else
            add(text, "%c", byte);
    }
    add(text, "\"");
}

static const char *word(bool value) { return value ? "true" : "false"; }

static void add_device(struct text *text, const struct device *device, const char *before)
{
    add(text, "%s{\"name\": \"%s\", \"bytes\": %" PRIu64 ", \"writes\": %" PRIu64 ", \"write_bytes\": %" PRIu64, before,
        device->name, device->bytes, device->writes, device->write_bytes);
    add(text, ", \"flushes\": %" PRIu64 ", \"discards\": %" PRIu64, device->flushes, device->discards);
    add(text, ", \"reads\": %" PRIu64 ", \"read_bytes\": %" PRIu64 "}", device->reads, device->read_bytes);
}

void recorder_status(const struct recorder *recorder, char into[STATUS_BYTES])
{
    struct text text = {into, STATUS_BYTES};
    add(&text, "{\"entries\": %" PRIu64 ", \"log_bytes\": %" PRIu64 ", \"marks\": %" PRIu64, recorder->entries,
        recorder->log_bytes, recorder->marks);
    add(&text, ", \"sealed\": %s, \"memory_locked\": %s, \"io_flusher\": %s", word(recorder->sealed),
        word(recorder->memory_locked), word(recorder->io_flusher));
    const struct faults *faults = &recorder->faults;
    add(&text, ", \"fault_hits\": %" PRIu64 ", \"fault_at\": %" PRIu64 ", \"fault_bytes\": %" PRIu64, faults->hits,
        faults->first.from, faults->first.until - faults->first.from);
    const struct lateness *lateness = &recorder->lateness;
    add(&text, ", \"real_time\": %s, \"served\": %" PRIu64 ", \"late\": %" PRIu64, word(recorder->real_time),
        lateness->served, lateness->late);
    add(&text, ", \"due_ns\": %" PRIu64 ", \"late_ns\": %" PRIu64 ", \"late_ns_max\": %" PRIu64, lateness->due_ns,
        lateness->late_ns, lateness->late_ns_max);
    add(&text, ", \"library\": \"%s\", \"devices\": [", fuse_pkgversion());
    for (const struct device *device = recorder->devices; device < recorder->devices + DEVICES; device++)
        if (device->bytes > 0)
            add_device(&text, device, device == recorder->devices ? "" : ", ");
    add(&text, "], \"failure\": ");
    if (recorder->failure[0] == '\0')
        add(&text, "null");
    else
        add_string(&text, recorder->failure);
    add(&text, "}\n");
}
