/*
 * bedplate-power-cut: transactions on an engine that can be told afterwards, and the check that tells them.
 *
 * Goals: after a power cut say exactly which transactions a database holds, and whether all of each is there.
 * Non-goals: speed, and a verdict; the visit compares what is found with the marks of what was acknowledged.
 *
 * write. A new database is made in --directory, with accounts at zero, and brought to the medium. Then comes
 * `{"ready": true}` on standard output, the mark `begin`, and transactions of --clients clients in turn, for
 * --duration-s or until SIGTERM. The engines have one writer, so the clients are one thread here. A transaction of client c
 * with sequence s (1, 2, ...) puts one entry and changes three accounts; once its commit has returned the mark
 * `A c s t` is written, t in microseconds of the monotonic clock. The mark `end` comes last, without any flush. The
 * document on standard output, one line of JSON:
 *     library, transactions, elapsed_ns, failure (null, or {error, code, step})
 * --pressure-ms asks the kernel every so often to write what is dirty: a run of some seconds would otherwise end before
 * the kernel does so by itself.
 *
 * check. The database that is in --directory is opened and walked, every entry and what the engine has besides. Run it
 * as a process of its own: a damaged database may end it by SIGSEGV, SIGBUS or SIGABRT, or keep it in a circle. The
 * document:
 *     library, transaction (the last; 0 of an engine without numbers), entries, accounts,
 *     clients [{client, last, entries, gaps}],
 *     balances_wrong (accounts that are not the sum of what the entries say), values_wrong (keys or values that are not
 *     ours, or not whole), order_wrong (keys that are not behind the one before), counts_wrong (databases that hold
 *     more or fewer entries than they say),
 *     pages {branch, leaf, overflow, free, last}, pages_unaccounted (neither used nor free, or both; LMDB),
 *     complaints (of the engine itself),
 *     failure (null, or {error (the library's own text), code, step}: then the walk ended there)
 *
 * Tables: `entries` has the key client and sequence, big-endian u32 and u64, and the value of struct entry;
 * `accounts` the key number, big-endian u32, and the value of struct account (power_cut/schema.h). Both are padded
 * to --value-bytes with bytes that follow from the key.
 * Exit status: 0 written or walked to the end, 1 the engine failed, 2 the call is wrong.
 */
#define _GNU_SOURCE
#include "power_cut/check.h"
#include "power_cut/options.h"
#include "power_cut/write.h"

int main(int count, char **words)
{
    struct options options = options_parse(count, words);
    return options.is_check ? check_store(&options) : write_transactions(&options);
}
