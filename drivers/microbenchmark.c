/*
 * bedplate-microbenchmark: LMDB's microbenchmark, on the engine that was compiled in.
 *
 * Goals: the tests of the published LMDB microbenchmark (Howard Chu's db_bench_mdb.cc, which descends
 * from LevelDB's db_bench), with latencies, CPU time and space; a loop that costs little beside the
 * library, and that can be measured alone (--null). Non-goals: percentiles, rates, medians. The
 * host makes those from this program's document.
 *
 * Tests. N is --entries. A key has 16 bytes (its number in decimal digits), a value --value-bytes, cut
 * out of text that compresses to half. One transaction is one put, except in the batches.
 *     fillrandsync, fillseqsync    N/1000 entries (at least 10; --sync-entries), each commit synchronous
 *     fillrandom, fillseq          N entries, each commit asynchronous
 *     fillrandbatch, fillseqbatch  N entries, --batch of them in one asynchronous commit
 *     fillrand100K, fillseq100K    N/1000 entries of 100,000 bytes, each commit asynchronous
 *     overwrite                    N entries in random order into what the last fill left, asynchronous
 *     readrandom, readrand100K     --reads reads (N; N/1000) by random keys, the read transaction reset
 *                                  and renewed for each
 *     readseq, readseq100K         one walk of a cursor over everything that is there
 *     readreverse                  the same walk from the end
 *     readwhilewriting             --threads readers as in readrandom while one writer overwrites random
 *                                  keys, until each reader has done --reads reads or --duration-s is over
 *     tpcb                         --threads processes for --duration-s, each with a connection of its own: the five
 *                                  statements of pgbench's TPC-B on its four tables, with N accounts. The SELECT comes
 *                                  first, so that a transaction that begins without a lock has to get one for what it
 *                                  has read. One that meets another's lock is rolled back and begun again at once; its
 *                                  latency counts all of it. Not of every engine.
 * A fill takes a fresh database, in sequence with keys that are known to come last, at random with numbers drawn
 * with replacement (so about 63 % of N remain) or, with --keys shuffled, each number once. Making, opening
 * and preallocating the database is not timed with the test. Unlike the model, readrandom draws from
 * the keys of the last fill, whatever their number, and reads touch the value's first byte, as its later
 * versions do (--touch).
 *
 * Output, one JSON document on standard output at the end, also after a failure, with the tests that
 * ended before it; times are whole nanoseconds of the monotonic clock, or microseconds of CPU:
 *     format_version, program, engine, library {version, text, header}, clock_read_ns, options
 *     tests [{test, settings (as the engine answers them; {} of none), fresh, complete, operations,
 *             found (random reads), busy (tpcb: attempts that met a lock), elapsed_ns, prepare_ns, flush_ns, bytes (of keys and values), cpu_user_us, cpu_system_us,
 *             minor_faults, major_faults, data_size_bytes, data_allocated_bytes (null: no file),
 *             latency, threads (readers, or processes of tpcb), writer (null except in readwhilewriting)}]
 *     failure {error (the library's own text), code (the library's, an errno, or minus a signal), test, step,
 *             operations, free_bytes (null: no such directory)} or null
 *     interrupted: null, or the name of the signal that ended it
 * latency is {of: "transaction" | "read", every (the n-th is timed), count, sum_ns, min_ns, max_ns,
 * sub_buckets, buckets [[bucket, count], ...]}, or null where a clock would be measured with it; how
 * values fall into buckets stands in microbenchmark/histogram.h. A transaction of a batch is the whole batch.
 * Progress, once a second, one JSON line each on --progress-fd (2): test, elapsed_ns, operations.
 * Exit status: 0 done, 1 failed, 2 the call is wrong, 128 + signal when SIGTERM, SIGINT or SIGHUP ended it.
 */
#define _GNU_SOURCE
#include "microbenchmark/bench.h"
#include "microbenchmark/clock.h"
#include "microbenchmark/database.h"
#include "microbenchmark/document.h"
#include "microbenchmark/failure.h"
#include "microbenchmark/options.h"

#include <signal.h>
#include <stdio.h>

static void ask_to_stop(int number) { stop_signal = number; }

static void take_signals(void)
{
    /* Restarting keeps a half-done pwrite of the library's from failing; the loops look at the flag. */
    struct sigaction stop = {.sa_handler = ask_to_stop, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    /* A reader of progress or of the document that went away shows as a failed write. */
    signal(SIGPIPE, SIG_IGN);
}

int main(int count, char **words)
{
    struct options options = options_parse(count, words);
    take_signals();
    failure_watch_map(options.directory);
    document_begin(&options, clock_cost_ns());
    bench_run(&options);
    document_finish(stop_signal);
    return stop_signal != 0 ? 128 + stop_signal : 0;
}
