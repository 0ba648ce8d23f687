"""The declared durability class: what flushes and settings promise, before any power is cut.

Rules, each with its source:
- PostgreSQL, "Reliability" and "Asynchronous Commit": `fsync=off` promises nothing after an
  operating-system crash; `synchronous_commit=off` loses the last commits and stays consistent;
  `full_page_writes=off` is unsafe wherever a page can be torn.
- A commit is on the medium only after a flush of the device's volatile cache
  (Documentation/block/writeback_cache_control.rst), so an fsync that reaches the device without a
  flush is worth nothing on a volatile cache and everything on a protected one.
- A flush of an external journal's device brings only that device's cache to the medium. What fsync
  promises is safe with it where the journal holds the data too (`data=journal`, a log of ZFS), and
  else stands in the cache of the data device.
- A journal in memory is gone after a power cut, and what it had not yet handed on with it.
- ZFS goes back to its last transaction group as a whole (zfsconcepts(7); zfsprops(7), `sync`), which is
  to a server as if the power had gone some seconds earlier: bounded loss, if the group was flushed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from bedplate.model.device_cache import CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.reason import (
    FULL_PAGE_WRITES_OFF,
    Reason,
    because,
    distinct,
)
from bedplate.model.visit import Durability, FlushCount, Outcome, VisitRecord
from bedplate.units import format_count

DURABLE = "durable"
BOUNDED_LOSS = "bounded loss"
UNSAFE = "unsafe"
UNKNOWN = "unknown"

# The basis of a class that power cuts show.
MEASURED = "measured"

# In the values of a reason: the class that an engine's settings promise at best.
PROMISED = "promised"

# Beside the classes, of a part of a run that commits nothing.
ONLY_READS = "reads only"

_TORN = because(
    FULL_PAGE_WRITES_OFF, "full_page_writes = off: a page torn by the cut cannot be repaired from the WAL"
)

_FSYNC_OFF = because(
    "fsync-off", "fsync = off: the operating system may lose what the server believes written"
)

_ASYNCHRONOUS = because(
    "synchronous-commit-off",
    "synchronous_commit = off: the last commits may be lost, what stays is whole",
)

_JOURNAL_IN_MEMORY = because(
    "journal-in-memory", "the journal is in memory: a power cut takes it, and what only it holds"
)

_LOG_IN_MEMORY = because(
    "log-in-memory", "the log is in memory: a power cut takes the last seconds, what stays is whole"
)

_DELAYED = because(
    "fsync-waits-for-nothing", "fsync waits for nothing: the last seconds may be lost, what stays is whole"
)

_WITHOUT_JOURNAL = because("no-journal", "no journal: the file system needs fsck after every cut")

# What a session may have set otherwise than the server, or must be known to judge it.
SESSION_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "wal_sync_method")

# With these the WAL is synced by a call of its own, which is counted.
_SYNCED_BY_CALLS = ("fdatasync", "fsync", "fsync_writethrough")

_LOGGING = "logging"
_COUNTED_LATE_SHARE_MAX = 0.05
_OTHERS_COMMITS = 10

# A commit of nothing else writes no WAL record that it waits for (RecordTransactionCommit, src/backend/access/transam/xact.c).
_ONLY_TEMPORARY = "; a script makes temporary tables, and a commit that writes to nothing else waits for nothing and leaves nothing"

FSCK_FOUND_ERRORS = because(
    "fsck-found-errors", "fsck found errors after a clean unmount, without any power cut"
)

NOT_COUNTED = "no-flushes-counted"

# Codes of reasons that speak of the file system, its journal or its options; all others speak of the engine's settings.
OF_FILE_SYSTEM = frozenset(
    {
        _JOURNAL_IN_MEMORY.code,
        _LOG_IN_MEMORY.code,
        _DELAYED.code,
        _WITHOUT_JOURNAL.code,
        FSCK_FOUND_ERRORS.code,
        "flushes-missing",
        "data-flushes-missing",
        NOT_COUNTED,
    }
)

# Of these, those that a device's cache has to be volatile for: what is kept in order needs no flush.
OF_FLUSHES = frozenset({"flushes-missing", "data-flushes-missing", NOT_COUNTED})

# Of a file system's, what a journal or a log in memory takes with it.
_OF_MEMORY = frozenset({_JOURNAL_IN_MEMORY.code, _LOG_IN_MEMORY.code})

# Codes of reasons that take the last transactions, and leave what stays whole; of an engine's own `takes_the_last` asks.
OF_THE_LAST = frozenset({_ASYNCHRONOUS.code, _LOG_IN_MEMORY.code, _DELAYED.code})

# Codes of reasons that take nothing away: nothing is known of what is kept, or another mode is named beside.
OF_NOTHING = frozenset({"no-promise", "innodb-setting-not-known", NOT_COUNTED, "sync-by-test"})

NO_JOURNAL = _WITHOUT_JOURNAL.code

# From best to worst; `unknown` stands last because nothing may be built on it.
CLASSES = (DURABLE, BOUNDED_LOSS, UNSAFE, UNKNOWN)


@dataclass(frozen=True)
class FilesystemPromise:
    """What a file system is known for under an engine: the flushes that syncs were counted to cause, and how it is made.

    `checked_by_fsck` marks file systems without a journal, whose repair after each cut is not modelled here.
    `journal_holds_data` and `journal_in_memory` speak of an external journal. `rolls_back_whole` marks a file system that
    returns to one of its last moments; `flushes_when_delayed` is None while fsync waits, else whether such a moment is
    flushed. `keeps_write_order` is true of a file system whose writes reach the medium in the order in which they
    were made even without a sync: one that rolls back whole does, and ext3 and ext4 with `data=journal`, where "all data are
    committed into the journal prior to being written into the main file system"
    (Documentation/admin-guide/ext4.rst), one transaction of the journal after the other.
    """

    flush_counts: tuple[FlushCount, ...]
    checked_by_fsck: bool = False
    journal_holds_data: bool = False
    journal_in_memory: bool = False
    rolls_back_whole: bool = False
    flushes_when_delayed: bool | None = None
    keeps_write_order: bool = False


def declared(filesystem: FilesystemPromise, settings: Mapping[str, str] | None = None) -> Durability:
    """The class that the file system and the engine's effective settings declare.

    `settings` are read back from the server, by name; without them it is the file system's own.
    """
    settings = settings or {}
    reasons: list[Reason] = []
    if settings.get("fsync") == "off":
        reasons.append(_FSYNC_OFF)
    if filesystem.journal_in_memory and not filesystem.rolls_back_whole:
        reasons.append(_JOURNAL_IN_MEMORY)
    # Nothing that follows makes it better, or less certain; it is told all the same.
    certainly_unsafe = bool(reasons)
    if filesystem.flushes_when_delayed is None:
        volatile, protected = _by_flushes(filesystem, reasons)
    else:
        reasons.append(_DELAYED)
        volatile, protected = BOUNDED_LOSS if filesystem.flushes_when_delayed else UNSAFE, BOUNDED_LOSS
    if filesystem.journal_in_memory and filesystem.rolls_back_whole:
        reasons.append(_LOG_IN_MEMORY)
        volatile, protected = worst(volatile, BOUNDED_LOSS), worst(protected, BOUNDED_LOSS)
    if settings.get("full_page_writes") == "off":
        reasons.append(_TORN)
        volatile, protected = UNSAFE, worst(protected, UNKNOWN)
    if settings.get("synchronous_commit") == "off":
        reasons.append(_ASYNCHRONOUS)
        volatile, protected = worst(volatile, BOUNDED_LOSS), worst(protected, BOUNDED_LOSS)
    if filesystem.checked_by_fsck:
        reasons.append(_WITHOUT_JOURNAL)
    if certainly_unsafe:
        volatile = protected = UNSAFE
    return Durability(volatile, protected, "declared", tuple(reasons))


def lowered_to(durability: Durability, volatile: str, protected: str, reason: Reason) -> Durability:
    """The class that an engine's settings leave of a file system's: no better than both of these, and why.

    The reason says what they promise with a volatile cache (`promised`), as one of several.
    """
    told = replace(reason, values=reason.values.updated(**{PROMISED: volatile}))
    return replace(_lowered(durability, volatile, protected), reasons=(*durability.reasons, told))


def takes_the_last(reason: Reason, declared: Durability) -> bool:
    """Whether one of the reasons of a class takes the last transactions, and leaves what stays whole.

    Reasons of older studies do not say what is promised. Where that is a bounded loss in all, none takes more than that.
    """
    if reason.code in OF_FLUSHES:
        return False
    return reason.code in OF_THE_LAST or BOUNDED_LOSS in (
        reason.values.text(PROMISED),
        declared.protected_cache,
    )


def _lowered(durability: Durability, volatile: str, protected: str) -> Durability:
    with_512 = durability.volatile_cache_512
    return replace(
        durability,
        volatile_cache=_no_better(durability.volatile_cache, volatile),
        protected_cache=_no_better(durability.protected_cache, protected),
        volatile_cache_512=None if with_512 is None else _no_better(with_512, volatile),
    )


def _no_better(of_filesystem: str, of_settings: str) -> str:
    # Damage that a setting allows needs no count of flushes, so an unknown file system makes it no less sure.
    return UNSAFE if of_settings == UNSAFE else worst(of_filesystem, of_settings)


@dataclass(frozen=True)
class Commits:
    """What one run committed, and what it may have waited for meanwhile; None is not known.

    `transactions` wrote and committed, at `clients` sessions. `flushes` are of data and journal device, `wal_syncs`
    calls of fsync and fdatasync on the WAL, of a server that has one. `settings` are those of a session as the run had them. `unlogged` are the unlogged tables that were
    written; `sets_asynchronous` says that a script's text sets synchronous_commit off, `has_temporary` that one makes temporary tables.
    """

    run: str
    clients: int
    transactions: int | None
    flushes: float | None
    wal_syncs: float | None
    settings: Mapping[str, str]
    roles: str = ""
    unlogged: str = ""
    sets_asynchronous: bool = False
    has_temporary: bool = False


def lowered_by(
    declared: Durability,
    commits: Commits,
    flush_counts: Iterable[FlushCount],
    server_settings: Mapping[str, str],
) -> Durability:
    """The class after a run: lower where what the run did, or was told, promises less than was declared.

    `server_settings` are those that the class was declared from. A session waits for the flush that its commit needs,
    and `clients` sessions can share one at most. So a run with fewer than 1 / clients for each writing transaction has
    not waited, whatever any setting says. More prove nothing: others flush the same device.
    """
    found = list(_told_otherwise(commits, server_settings))
    if found and commits.roles:
        found[0] = (*found[0][:2], _longer(found[0][2], f" (set for {commits.roles})"))
    numbers = _not_waited_for(commits, tuple(flush_counts))
    if numbers is not None and found:
        found[0] = (*found[0][:2], _longer(found[0][2], f"; {numbers}"))
    elif numbers is not None and "off" not in map(server_settings.get, ("fsync", "synchronous_commit")):
        words = _ONLY_TEMPORARY if commits.has_temporary else ""
        found.append((UNKNOWN, UNKNOWN, _longer(numbers, words)))
    reasons = tuple(reason.about(f"run {commits.run}") for _, _, reason in found)
    for volatile, protected, _ in found:
        declared = _lowered(declared, volatile, protected)
    return replace(declared, reasons=(*declared.reasons, *reasons), by_runs=(*declared.by_runs, *reasons))


def _told_otherwise(
    commits: Commits, server_settings: Mapping[str, str]
) -> Iterator[tuple[str, str, Reason]]:
    """What a run's sessions were told that the server was not: both classes, and the reason."""
    off = {name for name, value in commits.settings.items() if value == "off"}
    off -= {name for name, value in server_settings.items() if value == "off"}
    if "fsync" in off:
        yield UNSAFE, UNSAFE, _FSYNC_OFF
    if "full_page_writes" in off:
        yield UNSAFE, UNKNOWN, _TORN
    if "synchronous_commit" in off:
        yield BOUNDED_LOSS, BOUNDED_LOSS, _ASYNCHRONOUS
    elif commits.sets_asynchronous and server_settings.get("synchronous_commit") != "off":
        by_script = replace(_ASYNCHRONOUS, sentence=f"the script sets {_ASYNCHRONOUS}")
        yield BOUNDED_LOSS, BOUNDED_LOSS, by_script
    if commits.unlogged:
        words = f"rows were written to unlogged tables ({commits.unlogged}), which a crash empties"
        yield UNSAFE, UNSAFE, because("unlogged-tables-written", words, tables=commits.unlogged)


def worse(first: Durability, second: Durability) -> Durability:
    """Where visits disagree, the cell promises only what all of them do."""
    others = [found.without_waiting for found in (first, second) if found.without_waiting is not None]
    return replace(
        worst_of(first, second),
        basis=first.basis if first.basis == second.basis else "declared",
        reasons=distinct((*first.reasons, *second.reasons)),
        without_waiting=worse(others[0], others[-1]) if others else None,
        by_runs=distinct((*first.by_runs, *second.by_runs)),
    )


def _longer(reason: Reason, words: str) -> Reason:
    return replace(reason, sentence=f"{reason}{words}")


def _not_waited_for(commits: Commits, counts: tuple[FlushCount, ...]) -> Reason | None:
    transactions, clients = commits.transactions, commits.clients
    if not transactions:
        return None
    # Where the visit counted no flush per sync of the WAL (barriers off), their number says nothing of waiting.
    logging = [count for count in counts if count.pattern == _LOGGING]
    are_flushed = bool(logging) and sum(count.flushes for count in logging) >= logging[0].calls
    by_calls = commits.settings.get("wal_sync_method") in _SYNCED_BY_CALLS
    known = (
        ("flushes of the device", commits.flushes if are_flushed else None),
        ("syncs of the WAL", commits.wal_syncs if by_calls else None),
    )
    for name, count in known:
        # Each session's first and last commit may have its flush outside the window, and counts reach the server's
        # statistics a moment late.
        needed = transactions * (1 - _COUNTED_LATE_SHARE_MAX) - 2 * clients - _OTHERS_COMMITS
        if count is not None and count * clients < needed:
            return because(
                "commits-not-waited-for",
                f"{count:.0f} {name} for {transactions} transactions that wrote, {count / transactions:.2g} each; "
                f"{clients} client{'s' * (clients > 1)} that wait{'s' * (clients == 1)} for the medium need{'s' * (clients == 1)} "
                f"{1 / clients:.2g} or more",
                count=count,
                transactions=transactions,
                clients=clients,
            )
    return None


def promised(visit: VisitRecord) -> Durability | None:
    """What a visit promises as it ended; None of one that failed. Errors that fsck found leave nothing to build on."""
    if visit.found_errors:
        nothing = Durability(UNKNOWN, UNKNOWN, "declared", (FSCK_FOUND_ERRORS,))
        has_two = visit.durability is not None and visit.durability.without_waiting is not None
        return replace(nothing, without_waiting=nothing) if has_two else nothing
    return visit.durability if visit.outcome is Outcome.COMPLETED else None


def worst(first: str, second: str) -> str:
    """The class that promises less."""
    return max(first, second, key=CLASSES.index)


def worst_of(first: Durability, second: Durability) -> Durability:
    """The first with no better class than the second has, for any cache. What one was seen to lose, no doubt about the other takes back."""
    lost = {
        cache
        for cache in CACHES
        for one in (first, second)
        if one.basis == MEASURED and one.class_with(cache) == UNSAFE
    }
    together = {
        cache: UNSAFE if cache in lost else worst(first.class_with(cache), second.class_with(cache))
        for cache in CACHES
    }
    tells_512 = (first.volatile_cache_512, second.volatile_cache_512) != (None, None)
    return replace(
        first,
        volatile_cache=together[VOLATILE_4K],
        protected_cache=together[PROTECTED],
        volatile_cache_512=together[VOLATILE_512] if tells_512 else None,
    )


def _by_flushes(filesystem: FilesystemPromise, reasons: list[Reason]) -> tuple[str, str]:
    counts = filesystem.flush_counts
    if not counts:
        reasons.append(because(NOT_COUNTED, "no flushes were counted"))
        return UNKNOWN, UNKNOWN
    found = len(reasons)
    for pattern in sorted({count.pattern for count in counts}):
        here = [count for count in counts if count.pattern == pattern]
        calls, flushes = here[0].calls, sum(count.flushes for count in here)
        if flushes < calls:
            words = f"{format_count(flushes, 'flush', 'flushes')} in {calls} {pattern} syncs: a volatile cache may lose them"
            reasons.append(because("flushes-missing", words, pattern=pattern, calls=calls, flushes=flushes))
            continue
        data = sum(count.flushes for count in here if count.device == "data")
        if data < calls and not (filesystem.journal_holds_data and flushes - data >= calls):
            reasons.append(
                because(
                    "data-flushes-missing",
                    f"{format_count(data, 'flush', 'flushes')} of the data device in {calls} {pattern} syncs, the others went to the "
                    f"journal's: what was written in place may be lost from a volatile cache",
                    pattern=pattern,
                    calls=calls,
                    flushes=data,
                )
            )
    return (UNSAFE if len(reasons) > found else DURABLE), DURABLE


def with_kept_journal(declared: Durability) -> Durability:
    """What is left of a declaration where the journal in memory was cut like a disk, and was not gone: its other reasons."""
    return replace(declared, reasons=tuple(each for each in declared.reasons if each.code not in _OF_MEMORY))
