/*
 * Addresses run from the outer edge inwards, track by track, in zones of as many tracks each. `turns_at` is where an
 * address lies on the way of a head that reads everything: its fraction is the angle, and the way from one address to a
 * later one takes as many turns as lie between them. A track begins later than the one before it ends, by as much as
 * the heads need (skew). The rates of a data sheet are sustained, so they contain that.
 *
 * Three figures of a data sheet make the seek: track + root * sqrt(x) + linear * x, of which x is the share of all
 * tracks; short ways are an acceleration, long ones a speed (Ruemmler and Wilkes, IEEE Computer 27, 3, 1994).
 *
 * Among the requests that the disk knows, that one is next which is reached first. A request that was passed over for
 * PATIENCE_TURNS turns is served before all others.
 *
 * With a cache a write is answered when it is there. It is written out upwards in address and from the beginning again,
 * a run of sectors up to CHUNK_SECTORS at once, when nobody asked for anything for IDLE_TURNS turns, so that the heads do
 * not leave who reads. Above half of the cache, or while a write waits for room, they begin at once, and reads and
 * writes take turns. A flush is answered when nothing is left in it. It begins when everything
 * before it is answered, and what comes behind it waits for its end. A loop device above knows no FUA: the kernel makes a
 * flush of it.
 */
#define _GNU_SOURCE
#include "disk.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 512, WORD = 64, CHUNK_SECTORS = 512, PATIENCE_TURNS = 120, IDLE_TURNS = 2 };
/* SATA of 2009 to 2013. */
static const double LINK_BYTES_PER_S = 300e6, NS = 1e9, NOTHING_NS = -1, ALMOST_A_TURN = 1 - 1e-5;

bool disk_parse(const char *text, struct disk_parameters *into)
{
    char rest;
    struct disk_parameters is = {0};
    int taken = sscanf(text,
                       "rpm=%lf,track_ns=%lf,average_ns=%lf,full_ns=%lf,settle_ns=%lf,outer=%lf,inner=%lf,overhead_ns=%lf,"
                       "cache=%" SCNu64 ",ahead=%" SCNu64 ",capacity=%" SCNu64 ",depth=%u,speed=%lf%c",
                       &is.rpm, &is.track_ns, &is.average_ns, &is.full_ns, &is.settle_ns, &is.outer_bytes_per_s,
                       &is.inner_bytes_per_s, &is.overhead_ns, &is.cache_bytes, &is.ahead_bytes, &is.capacity, &is.depth,
                       &is.speed, &rest);
    *into = is;
    return taken == 13 && is.rpm >= 1000 && is.rpm <= 100000 && is.track_ns > 0 && is.track_ns <= is.average_ns &&
           is.average_ns <= is.full_ns && is.full_ns <= NS && is.settle_ns >= 0 && is.settle_ns <= NS &&
           is.inner_bytes_per_s >= 1e6 && is.inner_bytes_per_s <= is.outer_bytes_per_s && is.outer_bytes_per_s <= 1e9 &&
           is.overhead_ns >= 0 && is.overhead_ns <= NS && is.depth >= 1 && is.speed >= 1 && is.speed <= 1000;
}

bool disk_begin(struct disk *disk, const struct disk_parameters *parameters, uint64_t bytes)
{
    *disk = (struct disk){.is = *parameters, .busy_ns = NOTHING_NS};
    struct disk_parameters *is = &disk->is;
    if (is->capacity < bytes)
        is->capacity = bytes;
    double turn_ns = 60 * NS / is->rpm, skew_ns = is->track_ns + is->settle_ns, sum = 0;
    for (int zone = 0; zone < DISK_ZONES; zone++) {
        double rate = is->outer_bytes_per_s + (is->inner_bytes_per_s - is->outer_bytes_per_s) * zone / (DISK_ZONES - 1);
        disk->track_bytes[zone] = SECTOR * (uint64_t)(rate * (turn_ns + skew_ns) / NS / SECTOR);
        sum += (double)disk->track_bytes[zone];
    }
    disk->zone_tracks = (uint64_t)ceil((double)is->capacity / sum);
    disk->tracks = disk->zone_tracks * DISK_ZONES;
    for (int zone = 0; zone < DISK_ZONES; zone++)
        disk->zone_at[zone + 1] = disk->zone_at[zone] + disk->zone_tracks * disk->track_bytes[zone];
    disk->turn_ns = turn_ns / is->speed;
    disk->skew_turns = skew_ns / turn_ns;
    is->track_ns /= is->speed;
    is->settle_ns /= is->speed;
    is->overhead_ns /= is->speed;
    /* Of two random tracks the mean of x is 1/3 and that of its root 8/15. */
    double average_ns = is->average_ns / is->speed - is->track_ns, full_ns = is->full_ns / is->speed - is->track_ns;
    disk->root_ns = (average_ns - full_ns / 3) / (8.0 / 15 - 1.0 / 3);
    disk->linear_ns = full_ns - disk->root_ns;
    disk->sectors = (bytes + SECTOR - 1) / SECTOR;
    size_t words = disk->sectors / WORD + 1;
    disk->dirty = calloc(words, sizeof *disk->dirty);
    disk->dirty_words = calloc(words / WORD + 1, sizeof *disk->dirty_words);
    return disk->dirty != NULL && disk->dirty_words != NULL;
}

void disk_end(struct disk *disk)
{
    free(disk->dirty);
    free(disk->dirty_words);
}

static void append(struct disk_list *list, struct disk_request *request)
{
    request->next = NULL;
    if (list->first == NULL)
        list->first = request;
    else
        list->last->next = request;
    list->last = request;
}

static void cut_out(struct disk_list *list, const struct disk_request *request)
{
    struct disk_request *before = NULL, **link = &list->first;
    for (; *link != request; link = &before->next)
        before = *link;
    *link = request->next;
    if (list->last == request)
        list->last = before;
}

static int zone_of(const struct disk *disk, uint64_t at)
{
    int zone = 0;
    while (zone + 1 < DISK_ZONES && at >= disk->zone_at[zone + 1])
        zone++;
    return zone;
}

static uint64_t track_of(const struct disk *disk, uint64_t at)
{
    int zone = zone_of(disk, at);
    return (uint64_t)zone * disk->zone_tracks + (at - disk->zone_at[zone]) / disk->track_bytes[zone];
}

static double turns_at(const struct disk *disk, uint64_t at)
{
    int zone = zone_of(disk, at);
    uint64_t from = at - disk->zone_at[zone], bytes = disk->track_bytes[zone];
    double track = (double)((uint64_t)zone * disk->zone_tracks + from / bytes);
    return track * (1 + disk->skew_turns) + (double)(from % bytes) / (double)bytes;
}

/* Behind the last sector before an address, without the way to a next track. */
static double turns_behind(const struct disk *disk, uint64_t at)
{
    double sector = (double)SECTOR / (double)disk->track_bytes[zone_of(disk, at - SECTOR)];
    return turns_at(disk, at - SECTOR) + sector;
}

static double pass_ns(const struct disk *disk, uint64_t from, uint64_t until)
{
    return (turns_behind(disk, until) - turns_at(disk, from)) * disk->turn_ns;
}

static double seek_ns(const struct disk *disk, uint64_t from, uint64_t to, bool writes)
{
    if (from == to)
        return 0;
    double distance = (double)(from < to ? to - from : from - to);
    double share = (distance - 1) / (double)(disk->tracks - 1);
    return disk->is.track_ns + disk->root_ns * sqrt(share) + disk->linear_ns * share + (writes ? disk->is.settle_ns : 0);
}

/* What passes until the heads are over an address. */
static double reach_ns(const struct disk *disk, uint64_t track, uint64_t at, double from_ns, bool writes)
{
    double seek = seek_ns(disk, track, track_of(disk, at), writes);
    double turns = turns_at(disk, at) - (from_ns + seek) / disk->turn_ns;
    double wait = turns - floor(turns);
    return seek + (wait > ALMOST_A_TURN ? 0 : wait) * disk->turn_ns;
}

/* How far the heads have read ahead by now. */
static uint64_t ahead_by(const struct disk *disk, double ns)
{
    double turns = turns_behind(disk, disk->ahead_at) + (ns - disk->ahead_ns) / disk->turn_ns;
    double track = floor(turns / (1 + disk->skew_turns));
    if (track >= (double)disk->tracks)
        return disk->ahead_until;
    int zone = (int)((uint64_t)track / disk->zone_tracks);
    double share = fmin(1, turns - track * (1 + disk->skew_turns));
    uint64_t at = disk->zone_at[zone] + ((uint64_t)track % disk->zone_tracks) * disk->track_bytes[zone] +
                  SECTOR * (uint64_t)(share * (double)(disk->track_bytes[zone] / SECTOR) + 1e-6);
    at = at < disk->ahead_at ? disk->ahead_at : at;
    return at < disk->ahead_until ? at : disk->ahead_until;
}

static void note_ahead(struct disk *disk, double ns)
{
    if (!disk->reads_ahead)
        return;
    uint64_t until = ahead_by(disk, ns);
    if (until > disk->segments[disk->newest].until)
        disk->segments[disk->newest].until = until;
    disk->track = track_of(disk, until > disk->ahead_at ? until - SECTOR : disk->ahead_at);
}

static void stop_ahead(struct disk *disk)
{
    note_ahead(disk, disk->now_ns);
    disk->reads_ahead = false;
}

/* What was read is known, and the heads go on behind it. */
static void begin_ahead(struct disk *disk, uint64_t from, uint64_t until)
{
    struct segment *newest = &disk->segments[disk->newest];
    if (from >= newest->from && from <= newest->until && newest->until > newest->from)
        newest->until = until > newest->until ? until : newest->until;
    else {
        disk->newest = (disk->newest + 1) % DISK_SEGMENTS;
        disk->segments[disk->newest] = (struct segment){from, until};
    }
    uint64_t end = disk->sectors * SECTOR, ahead = until + disk->is.ahead_bytes;
    disk->ahead_at = until;
    disk->ahead_until = ahead < end ? ahead : end;
    disk->ahead_ns = disk->now_ns;
    disk->reads_ahead = until < disk->ahead_until;
}

/* Who is read ahead of goes on: so do the heads, which wait for a turn where they had come to their end. */
static void extend_ahead(struct disk *disk, uint64_t until, double ns)
{
    uint64_t end = disk->sectors * SECTOR, ahead = until + disk->is.ahead_bytes;
    ahead = ahead < end ? ahead : end;
    if (!disk->reads_ahead || ahead <= disk->ahead_until)
        return;
    if (ahead_by(disk, ns) == disk->ahead_until) {
        disk->ahead_at = disk->ahead_until;
        disk->ahead_ns = ns + reach_ns(disk, disk->track, disk->ahead_at, ns, false);
    }
    disk->ahead_until = ahead;
}

/* Of a segment no more is kept than is read ahead in all. */
static void shorten(const struct disk *disk, struct segment *segment)
{
    uint64_t most = 2 * disk->is.ahead_bytes;
    if (segment->until - segment->from > most)
        segment->from = segment->until - most;
}

static bool is_dirty(const struct disk *disk, uint64_t sector)
{
    return disk->dirty[sector / WORD] >> sector % WORD & 1;
}

static void set_dirty(struct disk *disk, uint64_t at, uint64_t bytes, bool dirty)
{
    for (uint64_t sector = at / SECTOR; sector < (at + bytes) / SECTOR; sector++) {
        if (is_dirty(disk, sector) == dirty)
            continue;
        uint64_t word = sector / WORD, whole;
        disk->dirty[word] ^= (uint64_t)1 << sector % WORD;
        disk->dirty_sectors += dirty ? 1 : (uint64_t)-1;
        whole = (uint64_t)1 << word % WORD;
        if (disk->dirty[word] != 0)
            disk->dirty_words[word / WORD] |= whole;
        else
            disk->dirty_words[word / WORD] &= ~whole;
    }
}

/* From this sector on; `sectors` where there is none. */
static uint64_t next_dirty(const struct disk *disk, uint64_t sector)
{
    uint64_t word = sector / WORD, bits = disk->dirty[word] & UINT64_MAX << sector % WORD;
    if (bits != 0)
        return word * WORD + (uint64_t)__builtin_ctzll(bits);
    uint64_t words = disk->sectors / WORD + 1;
    for (word++; word < words;) {
        bits = disk->dirty_words[word / WORD] & UINT64_MAX << word % WORD;
        if (bits == 0) {
            word = (word / WORD + 1) * WORD;
            continue;
        }
        word = word / WORD * WORD + (uint64_t)__builtin_ctzll(bits);
        return word * WORD + (uint64_t)__builtin_ctzll(disk->dirty[word]);
    }
    return disk->sectors;
}

/* Whether a read needs no heads. */
static bool is_known(struct disk *disk, const struct disk_request *request, double ns)
{
    note_ahead(disk, ns);
    for (struct segment *segment = disk->segments; segment < disk->segments + DISK_SEGMENTS; segment++)
        if (request->at >= segment->from && request->at + request->bytes <= segment->until) {
            if (segment == &disk->segments[disk->newest])
                extend_ahead(disk, request->at + request->bytes, ns);
            shorten(disk, segment);
            return true;
        }
    uint64_t sector = request->at / SECTOR, until = (request->at + request->bytes) / SECTOR;
    while (sector < until && is_dirty(disk, sector))
        sector++;
    return sector == until;
}

static double ready_ns(const struct disk *disk, const struct disk_request *request)
{
    return request->came_ns + disk->is.overhead_ns;
}

static void answer(struct disk *disk, struct disk_request *request, double due_ns)
{
    request->due_ns = due_ns;
    struct disk_request **link = &disk->answered.first;
    while (*link != NULL && (*link)->due_ns <= due_ns)
        link = &(*link)->next;
    request->next = *link;
    *link = request;
}

static void answer_by_link(struct disk *disk, struct disk_request *request)
{
    double from_ns = fmax(fmax(ready_ns(disk, request), disk->now_ns), disk->link_free_ns);
    disk->link_free_ns = from_ns + NS * (double)request->bytes / (LINK_BYTES_PER_S * disk->is.speed);
    answer(disk, request, disk->link_free_ns);
}

static bool has_room(const struct disk *disk, uint64_t bytes)
{
    return (disk->dirty_sectors + disk->leaving_sectors) * SECTOR + bytes <= disk->is.cache_bytes;
}

/* A request that is larger than the cache goes past it. */
static bool is_cached(const struct disk *disk, const struct disk_request *request)
{
    return request->work == DISK_WRITE && request->bytes <= disk->is.cache_bytes;
}

static void cache_write(struct disk *disk, struct disk_request *request)
{
    set_dirty(disk, request->at, request->bytes, true);
    answer_by_link(disk, request);
}

/* Let in as many as the disk may know, up to a flush. */
static void admit(struct disk *disk)
{
    while (disk->arrived.first != NULL && disk->flush == NULL && disk->inside < disk->is.depth) {
        struct disk_request *request = disk->arrived.first;
        if (request->work == DISK_FLUSH && disk->inside > 0)
            return;
        cut_out(&disk->arrived, request);
        disk->inside++;
        if (request->work == DISK_FLUSH)
            disk->flush = request;
        else if (request->work == DISK_DISCARD)
            answer(disk, request, fmax(ready_ns(disk, request), disk->now_ns));
        else if (request->work == DISK_READ && is_known(disk, request, fmax(ready_ns(disk, request), disk->now_ns)))
            answer_by_link(disk, request);
        else if (is_cached(disk, request) && has_room(disk, request->bytes))
            cache_write(disk, request);
        else
            append(&disk->mechanical, request);
    }
}

static void move_for(struct disk *disk, struct disk_request *request, double end_ns)
{
    disk->moving = request;
    disk->busy_ns = end_ns;
}

/* When the heads would be done with it. */
static double served_ns(const struct disk *disk, const struct disk_request *request)
{
    uint64_t until = request->at + request->bytes;
    double reached = reach_ns(disk, disk->track, request->at, disk->now_ns, request->work == DISK_WRITE);
    double ns = disk->now_ns + reached + pass_ns(disk, request->at, until);
    if (request->work != DISK_READ || !disk->reads_ahead)
        return ns;
    /* The heads come by, or have begun with it. */
    const struct segment *newest = &disk->segments[disk->newest];
    bool comes_by = request->at >= newest->from && request->at <= disk->ahead_until && until > newest->until &&
                    newest->until < disk->ahead_until;
    if (!comes_by)
        return ns;
    double passed = turns_behind(disk, until) - turns_behind(disk, disk->ahead_at);
    return fmin(ns, disk->ahead_ns + passed * disk->turn_ns);
}

/* That which is served first of those that are ready; a cached one waits for room, not for the heads. */
static struct disk_request *choose(struct disk *disk)
{
    struct disk_request *chosen = NULL;
    double least_ns = 0;
    note_ahead(disk, disk->now_ns);
    for (struct disk_request *request = disk->mechanical.first; request != NULL; request = request->next) {
        if (is_cached(disk, request) || ready_ns(disk, request) > disk->now_ns)
            continue;
        if (disk->now_ns - request->came_ns > PATIENCE_TURNS * disk->turn_ns)
            return request;
        double ns = served_ns(disk, request);
        if (chosen == NULL || ns < least_ns) {
            chosen = request;
            least_ns = ns;
        }
    }
    return chosen;
}

static void write_out(struct disk *disk)
{
    stop_ahead(disk);
    uint64_t from = next_dirty(disk, disk->elevator);
    if (from == disk->sectors)
        from = next_dirty(disk, 0);
    uint64_t until = from + 1;
    while (until < disk->sectors && until - from < CHUNK_SECTORS && is_dirty(disk, until))
        until++;
    double reached = reach_ns(disk, disk->track, from * SECTOR, disk->now_ns, true);
    set_dirty(disk, from * SECTOR, (until - from) * SECTOR, false);
    disk->leaving_sectors = until - from;
    disk->elevator = until % disk->sectors;
    disk->track = track_of(disk, until * SECTOR - SECTOR);
    move_for(disk, NULL, disk->now_ns + reached + pass_ns(disk, from * SECTOR, until * SECTOR));
}

static bool has_waiting_write(const struct disk *disk)
{
    for (const struct disk_request *request = disk->mechanical.first; request != NULL; request = request->next)
        if (is_cached(disk, request))
            return true;
    return false;
}

/* When the heads may begin to write out. */
static double writes_from_ns(const struct disk *disk)
{
    if (disk->dirty_sectors == 0)
        return INFINITY;
    bool presses = disk->dirty_sectors * SECTOR * 2 > disk->is.cache_bytes || has_waiting_write(disk);
    return presses || disk->flush != NULL ? disk->now_ns : disk->active_ns + IDLE_TURNS * disk->turn_ns;
}

/* The heads have nothing to do: give them something, or answer what only waited for that. */
static void go_on(struct disk *disk)
{
    struct disk_request *chosen = choose(disk);
    bool writes = writes_from_ns(disk) <= disk->now_ns && (chosen == NULL || disk->is_write_turn);
    disk->is_write_turn = !writes;
    if (writes) {
        write_out(disk);
        return;
    }
    if (chosen == NULL) {
        if (disk->flush != NULL && disk->dirty_sectors == 0) {
            answer(disk, disk->flush, fmax(ready_ns(disk, disk->flush), disk->now_ns));
            disk->flush = NULL;
        }
        return;
    }
    if (chosen->work == DISK_READ && is_known(disk, chosen, disk->now_ns)) {
        cut_out(&disk->mechanical, chosen);
        answer_by_link(disk, chosen);
        return;
    }
    double end_ns = served_ns(disk, chosen);
    stop_ahead(disk);
    disk->track = track_of(disk, chosen->at + chosen->bytes - SECTOR);
    move_for(disk, chosen, fmax(end_ns, disk->now_ns));
}

static void arrive(struct disk *disk)
{
    struct disk_request *done = disk->moving;
    disk->busy_ns = NOTHING_NS;
    disk->leaving_sectors = 0;
    disk->moving = NULL;
    if (done != NULL) {
        disk->active_ns = disk->now_ns;
        cut_out(&disk->mechanical, done);
        answer(disk, done, disk->now_ns);
        if (done->work == DISK_READ)
            begin_ahead(disk, done->at, done->at + done->bytes);
        return;
    }
    struct disk_request *next;
    for (struct disk_request *request = disk->mechanical.first; request != NULL; request = next) {
        next = request->next;
        if (!is_cached(disk, request))
            continue;
        if (!has_room(disk, request->bytes))
            break;
        cut_out(&disk->mechanical, request);
        cache_write(disk, request);
    }
}

/* When the heads have something to do: at the end of what they do, now, or when a request is ready. */
static double heads_next_ns(const struct disk *disk)
{
    if (disk->busy_ns >= 0)
        return disk->busy_ns;
    if (disk->flush != NULL)
        return disk->now_ns;
    double first = writes_from_ns(disk);
    for (const struct disk_request *request = disk->mechanical.first; request != NULL; request = request->next)
        first = fmin(first, ready_ns(disk, request));
    return fmax(first, disk->now_ns);
}

static void move_on(struct disk *disk, double ns)
{
    disk->now_ns = fmax(ns, disk->now_ns);
    if (disk->busy_ns >= 0)
        arrive(disk);
    go_on(disk);
}

void disk_take(struct disk *disk, struct disk_request *request, double now_ns)
{
    for (double ns; (ns = heads_next_ns(disk)) <= now_ns;)
        move_on(disk, ns);
    disk->now_ns = disk->active_ns = request->came_ns = fmax(now_ns, disk->now_ns);
    append(&disk->arrived, request);
    admit(disk);
}

struct disk_request *disk_done(struct disk *disk, double now_ns)
{
    for (;;) {
        struct disk_request *first = disk->answered.first;
        double heads_ns = heads_next_ns(disk);
        if (first == NULL || heads_ns < first->due_ns) {
            if (heads_ns > now_ns)
                return NULL;
            move_on(disk, heads_ns);
            continue;
        }
        if (first->due_ns > now_ns)
            return NULL;
        disk->answered.first = first->next;
        disk->inside--;
        disk->now_ns = fmax(disk->now_ns, first->due_ns);
        admit(disk);
        return first;
    }
}

bool disk_next(const struct disk *disk, double *ns)
{
    double heads = heads_next_ns(disk);
    *ns = disk->answered.first == NULL ? heads : fmin(heads, disk->answered.first->due_ns);
    return *ns < INFINITY;
}
