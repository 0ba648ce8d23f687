#define _GNU_SOURCE
#include "rehearsal.h"

#include "disk.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 256, MOST_COUNT = 10000000 };

struct load {
    enum disk_work work;
    bool is_random;
    unsigned depth;
    uint64_t bytes, count, skip, disk_bytes, from, until, flush;
    double think_ns;
};

struct client {
    struct disk_request request; /* first: an answer is its client's */
    double from_ns;              /* when it asks again */
    bool waits;
};

struct rehearsal {
    struct load load;
    struct disk disk;
    struct client clients[MOST_DEPTH];
    uint64_t chance, asked, done, next_at;
    double begun_ns, *took;
};

static bool load_parse(const char *text, struct load *load)
{
    char work[16], order[16], rest;
    int taken = sscanf(text,
                       "%15s %15s depth=%u bytes=%" SCNu64 " count=%" SCNu64 " skip=%" SCNu64 " disk=%" SCNu64 " from=%" SCNu64
                       " until=%" SCNu64 " flush=%" SCNu64 " think_ns=%lf%c",
                       work, order, &load->depth, &load->bytes, &load->count, &load->skip, &load->disk_bytes, &load->from,
                       &load->until, &load->flush, &load->think_ns, &rest);
    load->work = taken > 0 && strcmp(work, "read") == 0 ? DISK_READ : DISK_WRITE;
    load->is_random = taken > 1 && strcmp(order, "random") == 0;
    return taken == 11 && load->depth >= 1 && load->depth <= MOST_DEPTH && load->bytes >= 512 && load->bytes % 512 == 0 &&
           load->from % 512 == 0 && load->from + load->bytes <= load->until && load->until <= load->disk_bytes &&
           load->count > load->skip && load->count <= MOST_COUNT && load->think_ns >= 0;
}

/* Vigna's xorshift64*, as in service.c. */
static uint64_t draw(struct rehearsal *rehearsal, uint64_t below)
{
    uint64_t *chance = &rehearsal->chance;
    *chance ^= *chance >> 12;
    *chance ^= *chance << 25;
    *chance ^= *chance >> 27;
    return (*chance * 0x2545f4914f6cdd1du >> 11) % below;
}

static void ask(struct rehearsal *rehearsal, struct client *client, double now_ns)
{
    const struct load *load = &rehearsal->load;
    client->waits = true;
    if (client->request.work == load->work && client->request.bytes > 0 && load->flush > 0 &&
        rehearsal->asked % load->flush == 0)
        client->request = (struct disk_request){.work = DISK_FLUSH};
    else {
        uint64_t places = (load->until - load->from) / load->bytes;
        uint64_t place = load->is_random ? draw(rehearsal, places) : rehearsal->next_at++ % places;
        client->request =
            (struct disk_request){.work = load->work, .at = load->from + place * load->bytes, .bytes = load->bytes};
        rehearsal->asked++;
    }
    disk_take(&rehearsal->disk, &client->request, now_ns);
}

static void take_answer(struct rehearsal *rehearsal, struct client *client)
{
    const struct load *load = &rehearsal->load;
    double ns = client->request.due_ns;
    client->waits = false;
    client->from_ns = ns + load->think_ns;
    if (client->request.work == DISK_FLUSH)
        return;
    if (rehearsal->done++ < load->skip)
        rehearsal->begun_ns = ns;
    else
        rehearsal->took[rehearsal->done - load->skip - 1] = ns - client->request.came_ns;
}

/* Whoever asks first; NULL while all wait. */
static struct client *next_client(struct rehearsal *rehearsal)
{
    struct client *first = NULL;
    for (struct client *client = rehearsal->clients; client < rehearsal->clients + rehearsal->load.depth; client++)
        if (!client->waits && (first == NULL || client->from_ns < first->from_ns))
            first = client;
    return first;
}

static double run(struct rehearsal *rehearsal)
{
    double now_ns = 0;
    while (rehearsal->done < rehearsal->load.count) {
        struct client *client = next_client(rehearsal);
        double ns = INFINITY;
        disk_next(&rehearsal->disk, &ns);
        now_ns = client != NULL && client->from_ns <= ns ? client->from_ns : ns;
        struct disk_request *done = disk_done(&rehearsal->disk, now_ns);
        if (done != NULL)
            take_answer(rehearsal, (struct client *)done);
        else if (client != NULL && client->from_ns <= now_ns)
            ask(rehearsal, client, client->from_ns);
    }
    return now_ns;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void report(struct rehearsal *rehearsal, double end_ns, char *text)
{
    const struct load *load = &rehearsal->load;
    size_t count = load->count - load->skip;
    double seconds = (end_ns - rehearsal->begun_ns) / 1e9, sum = 0;
    for (size_t at = 0; at < count; at++)
        sum += rehearsal->took[at];
    qsort(rehearsal->took, count, sizeof *rehearsal->took, by_size);
    snprintf(text, REHEARSAL_BYTES,
             "{\"per_s\": %.3f, \"bytes_per_s\": %.0f, \"seconds\": %.6f, \"ns_mean\": %.0f, \"ns_p50\": %.0f, "
             "\"ns_p99\": %.0f}\n",
             (double)count / seconds, (double)(count * load->bytes) / seconds, seconds, sum / (double)count,
             rehearsal->took[count / 2], rehearsal->took[count * 99 / 100]);
}

bool rehearse(const char *model, const char *load, char text[REHEARSAL_BYTES])
{
    struct disk_parameters parameters;
    struct rehearsal *rehearsal = calloc(1, sizeof *rehearsal);
    bool can = false;
    snprintf(text, REHEARSAL_BYTES, "there is no memory for the disk\n");
    if (rehearsal == NULL)
        return false;
    rehearsal->chance = 0x9e3779b97f4a7c15u;
    if (!disk_parse(model, &parameters))
        snprintf(text, REHEARSAL_BYTES, "this is no disk: %.200s\n", model);
    else if (!load_parse(load, &rehearsal->load))
        snprintf(text, REHEARSAL_BYTES, "this is no load: %.200s\n", load);
    else if (disk_begin(&rehearsal->disk, &parameters, rehearsal->load.disk_bytes) &&
             (rehearsal->took = calloc(rehearsal->load.count, sizeof *rehearsal->took)) != NULL) {
        report(rehearsal, run(rehearsal), text);
        can = true;
    }
    disk_end(&rehearsal->disk);
    free(rehearsal->took);
    free(rehearsal);
    return can;
}
