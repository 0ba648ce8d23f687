/*
 * A model of a disk with a spindle: when each request is done, and nothing else. No clock and no I/O: it is handed the
 * time, in ns from its own beginning, so it can be rehearsed in virtual time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum disk_work { DISK_READ, DISK_WRITE, DISK_FLUSH, DISK_DISCARD };
enum { DISK_ZONES = 16, DISK_SEGMENTS = 16 };

/* All times and rates as of the disk; `speed` divides and multiplies them. */
struct disk_parameters {
    double rpm;
    double track_ns, average_ns, full_ns;       /* seeks: to the next track, between two random ones, over all of them */
    double settle_ns;                           /* longer is one before a write */
    double outer_bytes_per_s, inner_bytes_per_s; /* sustained, at the first and the last address */
    double overhead_ns;                         /* of the controller, for each request */
    uint64_t cache_bytes;                       /* of writes; 0: none is answered before it is on the medium */
    uint64_t ahead_bytes;                       /* read behind a read while nothing else is wanted */
    uint64_t capacity;                          /* of the disk whose outer part is used; 0: all of it is */
    unsigned depth;                             /* so many requests are known at once */
    double speed;
};

struct disk_request {
    enum disk_work work;
    uint64_t at, bytes; /* in whole sectors */
    double came_ns, due_ns;
    struct disk_request *next;
};

struct disk_list {
    struct disk_request *first, *last;
};

struct disk {
    struct disk_parameters is;
    double now_ns, turn_ns, skew_turns, linear_ns, root_ns; /* of a seek: track + root * sqrt(x) + linear * x */
    double active_ns;             /* when a request last came, or the heads had served one */
    double link_free_ns, busy_ns; /* busy_ns: the end of what the heads do; below 0: nothing */
    uint64_t track_bytes[DISK_ZONES], zone_at[DISK_ZONES + 1];
    uint64_t zone_tracks, tracks, track; /* track: where the heads are */
    struct disk_list arrived, mechanical, answered; /* answered: in the order of due_ns */
    size_t inside;
    struct disk_request *moving; /* for this the heads move; NULL while they write out */
    struct disk_request *flush;  /* the only one inside while it lasts */
    /* What writes left in the cache: a bit for a sector, and a bit for 64 of them. */
    uint64_t *dirty, *dirty_words, sectors, dirty_sectors, leaving_sectors, elevator;
    bool is_write_turn;
    /* What was read and is still known. The newest grows from `ahead_at` while the heads have nothing else to do. */
    struct segment {
        uint64_t from, until;
    } segments[DISK_SEGMENTS];
    unsigned newest;
    bool reads_ahead;
    uint64_t ahead_at, ahead_until;
    double ahead_ns;
};

/* "rpm=7200,track_ns=800000,..." with every field of the parameters; false for anything else, or what no disk can be. */
bool disk_parse(const char *text, struct disk_parameters *parameters);
/* A disk at rest with its heads at the outer edge. False where there is no memory. */
bool disk_begin(struct disk *disk, const struct disk_parameters *parameters, uint64_t bytes);
void disk_end(struct disk *disk);
/* A request that comes now, or at the last moment that the disk has passed, if that is later. It stays the caller's memory. */
void disk_take(struct disk *disk, struct disk_request *request, double now_ns);
/* The next that is done at that moment or before, with its `due_ns`; NULL where there is none. */
struct disk_request *disk_done(struct disk *disk, double now_ns);
/* When disk_done() has something to do; false while nothing is under way. */
bool disk_next(const struct disk *disk, double *ns);
