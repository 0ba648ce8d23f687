/* microbenchmark.c describes the document. Every number is an integer: no digits are lost on the way. */
#define _GNU_SOURCE
#include "document.h"

#include "database.h"
#include "failure.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FORMAT_VERSION = 2, FIRST_BYTES = 64 * 1024 };

struct document_text document;
static bool has_tests;

static void __attribute__((format(printf, 1, 2))) put(const char *format, ...)
{
    for (;;) {
        va_list arguments;
        va_start(arguments, format);
        size_t room = document.size - document.used;
        int length = vsnprintf(document.bytes == NULL ? NULL : document.bytes + document.used, room, format, arguments);
        va_end(arguments);
        if ((size_t)length < room) {
            document.used += (size_t)length;
            return;
        }
        size_t wanted = document.size == 0 ? FIRST_BYTES : 2 * document.size;
        char *bytes = realloc(document.bytes, wanted);
        if (bytes == NULL)
            fail_with("no memory is left for the document", 12, "document");
        document.bytes = bytes;
        document.size = wanted;
    }
}

static void put_number(const char *name, uint64_t value) { put("\"%s\": %" PRIu64 ", ", name, value); }
static void put_word(const char *name, const char *word) { put("\"%s\": \"%s\", ", name, word); }
static void put_truth(const char *name, bool value) { put("\"%s\": %s, ", name, value ? "true" : "false"); }

/* Absent is not zero. */
static void put_optional(const char *name, bool is_there, uint64_t value)
{
    if (is_there)
        put_number(name, value);
    else
        put("\"%s\": null, ", name);
}

static void put_options(const struct options *options)
{
    put("\"options\": {");
    put_number("entries", options->entries);
    put_number("sync_entries", options->sync_entries);
    put_number("reads", options->reads);
    put_number("key_bytes", KEY_BYTES);
    put_number("value_bytes", options->value_bytes);
    put_number("batch", options->batch);
    put_word("keys", KEY_WORDS[options->keys]);
    put_word("touch", TOUCH_WORDS[options->touch]);
    put_number("threads", options->threads);
    put_optional("duration_s", options->duration_s != 0, options->duration_s);
    put_optional("write_rate", options->write_rate != 0, options->write_rate);
    put_truth("flush_after", options->flush_after);
    put_truth("existing", options->existing);
    put_number("seed", options->seed);
    put("\"tests\": [");
    for (size_t at = 0; at < options->test_count; at++)
        put("%s\"%s\"", at == 0 ? "" : ", ", options->tests[at]->name);
    put("]},\n");
}

void document_begin(const struct options *options, uint64_t clock_read_ns)
{
    struct library library = engine_library();
    put("{\"format_version\": %d, \"program\": \"bedplate-microbenchmark\", \"engine\": \"%s\",\n", FORMAT_VERSION,
        options->null ? "null" : ENGINE_NAME);
    put("\"library\": {\"version\": \"%s\", \"text\": \"%s\", \"header\": \"%s\"},\n", library.version, library.text,
        library.header);
    put_number("clock_read_ns", clock_read_ns);
    put_options(options);
    put("\"tests\": [");
}

static void put_latency(const struct side *side)
{
    const struct histogram *latency = &side->latency;
    if (side->latency_every == 0) {
        put("\"latency\": null");
        return;
    }
    put("\"latency\": {");
    put_word("of", side->latency_of);
    put_number("every", side->latency_every);
    put_number("count", latency->count);
    put_number("sum_ns", latency->sum_ns);
    put_optional("min_ns", latency->count > 0, latency->min_ns);
    put_optional("max_ns", latency->count > 0, latency->max_ns);
    put_number("sub_buckets", SUB_BUCKETS);
    put("\"buckets\": [");
    const char *separator = "";
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++)
        if (latency->buckets[bucket] > 0) {
            put("%s[%" PRIu32 ", %" PRIu64 "]", separator, bucket, latency->buckets[bucket]);
            separator = ", ";
        }
    put("]}");
}

static void put_side(const struct side *side, enum kind kind)
{
    put_number("operations", side->operations);
    put_optional("found", kind == READ_RANDOM || kind == READ_WHILE_WRITING, side->found);
    put_optional("busy", kind == TRANSFER, side->busy);
    put_number("elapsed_ns", side->elapsed_ns);
    put_number("bytes", side->bytes);
    put_number("cpu_user_us", side->cpu_user_us);
    put_number("cpu_system_us", side->cpu_system_us);
    put_latency(side);
}

static void put_threads(const struct outcome *outcome)
{
    if (outcome->readers == NULL) {
        put(", \"threads\": null, \"writer\": null}");
        return;
    }
    put(",\n \"threads\": [");
    for (uint64_t at = 0; at < outcome->reader_count; at++) {
        put("%s{", at == 0 ? "" : ",\n  ");
        put_side(&outcome->readers[at], outcome->test->kind);
        put("}");
    }
    if (outcome->writer == NULL) {
        put("],\n \"writer\": null}");
        return;
    }
    put("],\n \"writer\": {");
    put_side(outcome->writer, OVERWRITE);
    put("}}");
}

static const char *before_setting;

static void put_setting(const char *name, const char *json)
{
    put("%s\"%s\": %s", before_setting, name, json);
    before_setting = ", ";
}

static void put_settings(struct session *session, const struct test *test)
{
    before_setting = "";
    put("\"settings\": {");
    if (!is_null(session))
        engine_settings(session, test, put_setting);
    put("}, ");
}

void document_test(struct session *session, const struct outcome *outcome)
{
    const struct test *test = outcome->test;
    put("%s\n{", has_tests ? "," : "");
    has_tests = true;
    put_word("test", test->name);
    put_settings(session, test);
    put_truth("fresh", test_makes(test));
    put_truth("complete", outcome->complete);
    put_optional("prepare_ns", test_makes(test), outcome->prepare_ns);
    put_optional("flush_ns", outcome->flushed, outcome->flush_ns);
    put_number("minor_faults", outcome->minor_faults);
    put_number("major_faults", outcome->major_faults);
    put_optional("data_size_bytes", outcome->has_file, outcome->data_size_bytes);
    put_optional("data_allocated_bytes", outcome->has_file, outcome->data_allocated_bytes);
    put_side(&outcome->total, test->kind);
    put_threads(outcome);
}

static const char *signal_word(int number)
{
    switch (number) {
    case SIGTERM: return "\"SIGTERM\"";
    case SIGINT: return "\"SIGINT\"";
    case SIGHUP: return "\"SIGHUP\"";
    default: return "null";
    }
}

void document_finish(int stop_signal)
{
    put("\n],\n\"failure\": null, \"interrupted\": %s}\n", signal_word(stop_signal));
    document_write_out(document.bytes, document.used);
}
