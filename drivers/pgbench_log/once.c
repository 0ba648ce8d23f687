/* Reads complete logs, in parts, on several cores. */
#define _GNU_SOURCE
#include "options.h"
#include "source.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct chunk {
    const char *path;
    uint64_t number, begin, end;
};

struct reading {
    const struct chunk *chunks;
    size_t count;
    atomic_size_t next;
};

struct worker {
    pthread_t thread;
    struct reading *reading;
    struct table *table;
};

static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    char *block = block_new();
    for (;;) {
        size_t index = atomic_fetch_add(&worker->reading->next, 1);
        if (index >= worker->reading->count)
            break;
        const struct chunk *chunk = &worker->reading->chunks[index];
        struct source source;
        source_open(&source, chunk->path, chunk->number, false);
        /* A line belongs to the chunk that it starts in. Starting one byte early and skipping to the
         * first newline finds a line that starts exactly at the boundary. */
        source.skipping = chunk->begin > 0;
        source.offset = chunk->begin > 0 ? chunk->begin - 1 : 0;
        source.end = chunk->end;
        source_read(&source, worker->table, block, false);
        source_finish(&source, worker->table);
        close(source.fd);
        free(source.path);
    }
    free(block);
    return NULL;
}

static struct chunk *chunks_of(const struct options *options, char *const *paths, size_t files, size_t *count,
                               uint64_t *bytes)
{
    struct chunk *chunks = NULL;
    for (size_t file = 0; file < files; file++) {
        struct stat status;
        if (stat(paths[file], &status) != 0)
            die("cannot open %s: %s", paths[file], strerror(errno));
        uint64_t size = (uint64_t)status.st_size;
        *bytes += size;
        for (uint64_t begin = 0; begin == 0 || begin < size; begin += options->chunk_bytes) {
            chunks = realloc(chunks, (*count + 1) * sizeof *chunks);
            if (chunks == NULL)
                die("out of memory for the list of chunks");
            uint64_t end = begin + options->chunk_bytes < size ? begin + options->chunk_bytes : UINT64_MAX;
            chunks[(*count)++] = (struct chunk){paths[file], file, begin, end};
        }
    }
    return chunks;
}

static size_t useful_threads(const struct options *options, size_t chunks)
{
    cpu_set_t cores;
    size_t threads = 1;
    if (options->threads > 0)
        threads = (size_t)options->threads;
    else if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        threads = (size_t)CPU_COUNT(&cores);
    return threads < chunks ? threads : chunks;
}

uint64_t read_once(const struct options *options, struct table *table, char *const *paths, size_t files)
{
    size_t count = 0;
    struct reading reading = {.chunks = chunks_of(options, paths, files, &count, &table->totals.bytes)};
    reading.count = count;
    size_t threads = useful_threads(options, count);
    struct worker *workers = calloc(threads, sizeof *workers);
    if (workers == NULL)
        die("out of memory for %zu threads", threads);
    for (size_t i = 0; i < threads; i++) {
        workers[i].reading = &reading;
        workers[i].table = i == 0 ? table : table_new(table->output, table->flags);
        if (i > 0 && pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]) != 0)
            die("cannot start a thread; try --threads 1");
    }
    worker_run(&workers[0]);
    for (size_t i = 1; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    for (size_t i = 1; i < threads; i++)
        table_merge(table, workers[i].table);
    table_close_through(table, INT64_MAX);
    return files;
}
