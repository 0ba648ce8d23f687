/*
 * bedplate-power-cut-recorder: one or two disks as files, every write to which is logged in one order.
 *
 * Goals: a log from which the content of the disks at any moment can be rebuilt, with the flushes that were asked for
 * and the marks of clients among the writes; one thread, so that there is one order; memory that is bounded, and an end
 * with a reason where the bound is reached. Non-goals: choosing where to cut, building images; the visit does that
 * from the log (bedplate/workloads/power_cut/run).
 *
 * A file system of FUSE with these files is mounted on --mount:
 *     disk, journal  as large as asked, zeros at first; a loop device goes above each
 *     mark           each line that is written to it becomes a mark in the log (at most 468 bytes), by anybody
 *     status         the document below, as of its opening
 *     seal           any write to it ends the log: from then on the disks work, and nothing is logged
 *     fault          each line that is written to it, in one write(2), is an order to the disk, or to the journal:
 *                        [journal] OPERATION EFFECT HITS SKIP [FROM+BYTES]...
 *                            what a request is answered, in place of the order before, on whichever device that was. OPERATION write with EFFECT eio,
 *                            enospc, lost (answered as done, and not done) or misdirected (done elsewhere, 1 MiB off);
 *                            or flush or read, with eio; or read, with unreadable: eio until its place is written. HITS requests, 0 without end, once SKIP have passed,
 *                            of those that touch a range of the disk; without a range any
 *                        ranges FROM+BYTES...    the same order at other places; it keeps its count
 *                        clear                   nothing fails any more
 *                    The log has what the disk holds: nothing of a write that failed or was lost, a misdirected one
 *                    at its other place, no flush that failed
 * What the disks hold and the log stand as `store/disk`, `store/journal` and `log` in --directory, which should be on
 * tmpfs. Only fsync(2) of a disk is a flush; close(2) is none. Punching a hole is a discard, zeroing a range a
 * write of zeros that takes no room in the log.
 *
 * Order. An entry is logged when the kernel hands the request over, before it is answered: what was answered before
 * a flush was asked for stands before that flush, and a mark stands behind every write that was answered before it.
 * With --late-us a write is held until a moment that chance chooses, and logged when it is answered: several are under way
 * at once and come to their end in any order, as in a device with a queue.
 *
 * Without --log-limit-bytes nothing is logged. With laws of service the disks are a device with latency then: queue.c has
 * what is served when, service.c how long it takes. With a model disk.c has both.
 *
 * Log, little-endian, in sectors of 512 bytes; the format of the kernel's drivers/md/dm-log-writes.c:
 *     superblock  u64 0x6a736677736872, u64 version (1), u64 entries, u32 512; the entries are filled in at the end
 *     entry       u64 sector, u64 sectors, u64 flags (1 flush, 4 discard, 8 mark), u64 length of a mark's text;
 *                 u64 monotonic time in ns, u32 device (0 disk, 1 journal), our addition where others have
 *                 zeros; a mark has its text there instead, and the addition in the last 12 bytes of the sector.
 *                 Behind the addition of all others: u32, how many entries were logged between the moment at which
 *                 the request was handed over and its own; 0 if it was answered at once
 *     data        as many sectors, after an entry that is none of flush, discard and mark
 * Without its number of entries the log is of a recorder that was killed, and whole up to its last whole entry.
 *
 * Standard output: a line `{"ready": true}` once it is mounted, and at the end the document, one line of JSON:
 *     entries, log_bytes, marks, sealed, fault_hits (requests that an order hit), fault_at, fault_bytes (where the first of them
 *     was; 0 and 0 of none and of a flush), memory_locked, io_flusher, real_time (whether the kernel took mlockall(2), PR_SET_IO_FLUSHER and, of a device with
 *     latency, SCHED_FIFO), served, late, due_ns, late_ns, late_ns_max (requests that had a moment, those that were answered later
 *     than it by a twentieth of what they should take, what all should take together, how late all were, and the latest), library, devices [{name, bytes, writes, write_bytes, flushes, discards, reads, read_bytes}],
 *     failure (null, or why nothing was logged any more: all later writes and flushes then fail with EIO)
 * It ends when it is unmounted, on SIGTERM, SIGINT or SIGHUP, and with --parent.
 * Exit status: 0 done, 1 failed, 2 the call is wrong.
 */
#define _GNU_SOURCE
#include "power_cut_recorder/files.h"
#include "power_cut_recorder/options.h"
#include "power_cut_recorder/probe.h"
#include "power_cut_recorder/recorder.h"
#include "power_cut_recorder/rehearsal.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57 /* linux/prctl.h since 5.6 */
#endif

static void end_with(const struct options *options)
{
    if (options->parent == 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != options->parent)
        exit(0);
}

/* A loop device stands above: to wait for memory that is only free once we have written would be for ever. */
static void never_wait_for_memory(struct recorder *recorder)
{
    recorder->io_flusher = prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0;
    recorder->memory_locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

/* Who answers at a moment is not to wait for others then, nor for the kernel to put wakings together. */
static void be_punctual(struct recorder *recorder)
{
    struct sched_param priority = {.sched_priority = 1};
    recorder->real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

static int rehearsed(const struct options *options)
{
    char text[REHEARSAL_BYTES];
    bool done = rehearse(options->model, options->rehearsed, text);
    fputs(text, done ? stdout : stderr);
    return done && fflush(stdout) == 0 ? 0 : 1;
}

int main(int count, char **words)
{
    static struct recorder recorder;
    struct options options = options_parse(count, words);
    end_with(&options);
    if (options.probed != NULL)
        return probe(&options);
    if (options.rehearsed != NULL)
        return rehearsed(&options);
    if (!recorder_open(&recorder, &options))
        return 1;
    struct fuse_session *session = files_mount(&recorder, options.mount);
    if (session == NULL) {
        fprintf(stderr, "bedplate-power-cut-recorder: nothing could be mounted on %s\n", options.mount);
        return 1;
    }
    never_wait_for_memory(&recorder);
    if (!recorder.has_log)
        be_punctual(&recorder);
    puts("{\"ready\": true}");
    fflush(stdout);
    bool ended = files_serve(session, &recorder, &options);
    recorder_seal(&recorder);
    char text[STATUS_BYTES];
    recorder_status(&recorder, text);
    if (fputs(text, stdout) < 0 || fflush(stdout) != 0) {
        fputs("bedplate-power-cut-recorder: the document cannot be written to standard output\n", stderr);
        return 1;
    }
    return ended && recorder.failure[0] == '\0' ? 0 : 1;
}
