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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from bedplate.model.device_cache import CACHE_WORDS, CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.levels import Levels
from bedplate.model.power_cut import (
    IN_FLIGHT,
    SMALL_WINDOW_WRITES,
    PageCounts,
    PageFacts,
    PointOutcome,
    Profile,
    RecoveredPages,
)
from bedplate.model.reason import (
    FULL_PAGE_WRITES_OFF,
    PAGES_PASSED_OVER,
    PAGES_UNMENDED,
    Reason,
    because,
    distinct,
    pages_unmended,
)
from bedplate.model.visit import Durability, FlushCount, Outcome, VisitRecord
from bedplate.units import KIB, format_count, format_milliseconds, format_size, one_line

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

# Of the rule of that name: the recorded device was not flushed as the visit's own (figures/power_cut_verdict.py).
FLUSHES_DIFFER = "flushes-differ"

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


OK = "ok"
NEEDS_FSCK = "needs fsck"
BOUNDED = "bounded loss"
LOSS = "loss"
DETECTED = "corrupt, detected"
SILENT = "corrupt, silent"
FILE_SYSTEM_LOST = "file system lost"

# From best to worst.
FINDINGS = (OK, NEEDS_FSCK, BOUNDED, LOSS, DETECTED, SILENT, FILE_SYSTEM_LOST)

# Nothing that was acknowledged is gone or damaged.
GOOD = (OK, NEEDS_FSCK)

# So many cuts without a bad one bound the share of bad ones by 5 % (exact, two-sided 95 %): enough to promise more than
# flushes and settings declare. To promise less, one bad cut is enough.
CUTS_FOR_MORE = 72

TOO_FEW_FOR_MORE = "too-few-cuts-for-more"

# What is there is whole, and the engine can go on with it.
WHOLE = (OK, NEEDS_FSCK, BOUNDED, LOSS)

BROKEN = (DETECTED, SILENT, FILE_SYSTEM_LOST)


@dataclass(frozen=True)
class CutCounts:
    """How often each finding came up among cuts of one kind; a finding that did not is left out.

    Of those that left something broken `unmounted` are those whose file system broke itself: unlike behind good cuts it had to be repaired, was
    lost, or a check of it found errors.
    """

    findings: Mapping[str, int] = field(default_factory=dict)
    unmounted: int = 0

    @property
    def cuts(self) -> int:
        """All of them."""
        return sum(self.findings.values())

    @property
    def bad(self) -> int:
        """Those after which something acknowledged was gone or damaged."""
        return sum(count for name, count in self.findings.items() if name not in GOOD)

    @property
    def broken(self) -> int:
        """Those after which what was left was not whole."""
        return self.of(*BROKEN)

    @property
    def grave(self) -> int:
        """Those that took or damaged more than the engine's settings allow."""
        return self.of(LOSS, *BROKEN)

    @property
    def worst(self) -> str | None:
        """The gravest finding; None without a cut."""
        return max(self.findings, key=FINDINGS.index, default=None)

    def of(self, *names: str) -> int:
        """How many cuts came to one of these findings."""
        return sum(self.findings.get(name, 0) for name in names)

    @classmethod
    def together(cls, tallies: Iterable[CutCounts]) -> CutCounts:
        """Several as one, the findings from best to worst."""
        every = tuple(tallies)
        counts = {name: sum(tally.of(name) for tally in every) for name in FINDINGS}
        return cls(
            {name: count for name, count in counts.items() if count}, sum(each.unmounted for each in every)
        )


@dataclass(frozen=True)
class Loss:
    """What was missing after the cuts that lost something and left the rest whole; None where it is not known.

    `bound_ms` and `bound_transactions` are what the engine's settings call bounded, None where they promise nothing.
    """

    transactions_max: int | None = None
    """the most acknowledged transactions that one cut took and left the rest whole"""
    ms_max: float | None = None
    """the longest time before such a cut at which the first missing transaction was acknowledged"""
    bound_ms: float | None = None
    bound_transactions: int | None = None


@dataclass(frozen=True)
class CacheCuts:
    """The cuts of one kind of device cache that are no controls.

    `drawn` are those whose position chance chose: of them alone is a share a share. `sought` are those that were placed where something can
    happen: where metadata was seen to wait, where the order of what the engine does shows (`has_order`), or, where writes were completed
    late (`is_late`), behind a flush that met some on their way. `recut` are those in the
    recovery from another cut. `shown` is the class that all show, None without a cut or in a verdict that is refused. `idle` are the
    drawn ones at which no write waited for a flush: whatever a device does to its cache, they find nothing. `tearing` are
    the weighted ones of the others that tear within a page. `enumerated` are states that were tried one by one. `weaker` are the bad cuts of
    devices that ask more, which were bad with this one too: they show that it can happen, and are no sample.
    """

    drawn: CutCounts = field(default_factory=CutCounts)
    sought: CutCounts = field(default_factory=CutCounts)
    recut: CutCounts = field(default_factory=CutCounts)
    shown: str | None = None
    idle: int = 0
    tearing: int = 0
    is_late: bool = False
    enumerated: CutCounts = field(default_factory=CutCounts)
    weaker: CutCounts = field(default_factory=CutCounts)
    has_order: bool = False

    @property
    def first_hand(self) -> CutCounts:
        """Those that were made with such a cache."""
        return CutCounts.together((self.drawn, self.sought, self.enumerated, self.recut))

    @property
    def all_cuts(self) -> CutCounts:
        """All by which it is judged."""
        return CutCounts.together((self.first_hand, self.weaker))


@dataclass(frozen=True)
class TriedStates:
    """The states that were tried one by one: of windows between two flushes with few writes, and of larger ones.

    `small_states` is how many the former have, whether tried or not.
    """

    small: CutCounts
    large: CutCounts
    small_states: int

    @property
    def words(self) -> str:
        """`all 6,050 states of windows up to 12 writes and 3,000 of larger ones: none bad`."""
        tried = self.small.cuts
        share = "all" if tried == self.small_states else f"{tried:,} of"
        named = [f"{share} {self.small_states:,} states of windows up to {SMALL_WINDOW_WRITES} writes"]
        if not self.small_states:
            named = []
        if self.large.cuts:
            named.append(f"{self.large.cuts:,} {'of larger ones' if named else 'states of larger windows'}")
        found = CutCounts.together((self.small, self.large))
        return f"{' and '.join(named)}: {f'{found.bad:,} bad ({finding_words(found)})' if found.bad else 'none bad'}"


@dataclass(frozen=True)
class Recoveries:
    """How many recoveries from a cut were `asked` for; those of bad cuts are not recorded.

    Where the cuts in them are `refused`, none counts. `not_made` says why none could be recorded at all.
    """

    asked: int
    recorded: int
    """recoveries from a cut that were recorded and cut again; empty where none was asked for"""
    refused: tuple[Reason, ...] = ()
    not_made: Reason | None = None

    @property
    def uncounted(self) -> tuple[Reason, ...]:
        """Why no cut in them counts, each a whole sentence; empty where they count."""
        not_made = () if self.not_made is None else (self.not_made.about("cuts in recovery were not made"),)
        return (*not_made, *(reason.about("cuts in recovery do not count") for reason in self.refused))


@dataclass(frozen=True)
class PowerCutVerdict:
    """The verdict on one run of power cuts.

    `caches` has what was found with each kind of device cache (`model.device_cache.CACHES`). No class is shown where
    it is `refused`, as something in the experiment itself does not hold. `profiles` counts the drawn cuts
    by profile. `waiting` is how many spans of the log had metadata that can be torn, by kind; None where none was looked for.
    `waits` says whether commits wait for the device: where none
    does, controls are bad without any lie about a flush. `unreplayed` are the cuts after which the
    repair could not replay the journal. `lacks_metadata_room`: the type may commit an engine's page by halves on so small a disk.
    """

    caches: Mapping[str, CacheCuts]
    profiles: Mapping[str, CutCounts]
    controls: CutCounts
    loss: Loss
    window_bytes: int
    """the most that the device's cache held"""
    weaker: Mapping[str, CutCounts] = field(default_factory=dict)
    refused: tuple[Reason, ...] = ()
    """why there is no verdict; joined by `; `"""
    never_synced: Reason | None = None
    """that an engine acknowledged far more commits than it sent flushes, and what cuts took for it; null of others"""
    without_cut: Reason | None = None
    """what is missing or damaged though nothing was cut, against the engine's promise; null of others"""
    of_the_cell: bool = True
    """false where a journal in RAM was kept, or the device was said to write a unit whole, so that the verdict is no class of the
    cell as it is"""
    image_bytes: int | None = None
    """size of the recorded disk"""
    lacks_metadata_room: bool = False
    foreign_syncs: int | None = None
    """calls of sync(2) by any program while it was recorded; empty where they were not counted"""
    journal_lost: bool = False
    unreplayed: int = 0
    waits: bool = True
    waiting: Mapping[str, int] | None = None
    # None where none were asked for, or there was nothing to enumerate.
    states: TriedStates | None = None
    # None where no recovery was to be cut again.
    recoveries: Recoveries | None = None
    # How the server's pages came to the file system; None where nobody looked.
    pages: PageFacts | None = None
    # The same of each recovery that left no damage; none of which nobody looked.
    recovered_pages: tuple[RecoveredPages, ...] = ()
    # Cuts whose first look ended on an error that the second, at a fresh copy, did not meet.
    remade: int = 0

    def cuts(self, cache: str) -> CacheCuts:
        """Those with one kind of cache; none where no cut asked."""
        return self.caches.get(cache, CacheCuts())

    @property
    def drawn_cuts(self) -> CutCounts:
        """Every cut at a position that chance chose."""
        return CutCounts.together(self.cuts(cache).drawn for cache in CACHES)

    @property
    def volatile_drawn(self) -> CutCounts:
        """Those of them with a volatile cache, whatever its sectors."""
        return CutCounts.together(self.cuts(cache).drawn for cache in (VOLATILE_4K, VOLATILE_512))

    @property
    def doubts_promise(self) -> bool:
        """Whether what was promised tells nothing more: something was lost, or the engine was not seen to flush what it promised to."""
        is_bad = self.without_cut is not None or self.all_cuts.grave > 0
        return is_bad or any(reason.code == FLUSHES_DIFFER for reason in self.refused)

    @property
    def recut(self) -> CutCounts:
        """Every cut in a recovery."""
        return CutCounts.together(self.cuts(cache).recut for cache in CACHES)

    @property
    def all_cuts(self) -> CutCounts:
        """Every cut that is no control."""
        return CutCounts.together(self.cuts(cache).first_hand for cache in CACHES)

    @property
    def by_device(self) -> Mapping[str, CutCounts]:
        """The drawn cuts by profile, with those of other profiles that were bad with this one too."""
        names = dict.fromkeys((*self.profiles, *self.weaker))
        return {
            name: CutCounts.together(
                counts[name] for counts in (self.profiles, self.weaker) if name in counts
            )
            for name in names
        }


def cut_words(tally: CutCounts) -> str:
    """`0 of 150 bad`, and what else was found, the gravest first: `20 of 60 bad: 20 corrupt, silent`."""
    if not tally.cuts:
        return "not cut"
    words = f"{tally.bad} of {tally.cuts} bad"
    found = finding_words(tally)
    return f"{words}: {found}" if found else words


def finding_words(tally: CutCounts) -> str:
    """`20 corrupt, silent; 3 needs fsck`: what was found but `ok`, the gravest first."""
    return "; ".join(
        f"{tally.of(name)} {name}" for name in reversed(FINDINGS) if name != OK and tally.of(name)
    )


def measured_durability(verdict: PowerCutVerdict, declared: Durability | None) -> Durability | None:
    """The class that the cuts show; None where they show none, or speak of another journal than the cell's.

    A cache that no cut asked keeps what was declared, and so does one of which the cuts would promise more, as long as they
    are few, or the engine's own settings allow the loss. Where cuts and declaration disagree, the reasons say so.
    """
    if verdict.refused or not verdict.of_the_cell:
        return None
    if verdict.without_cut is not None:
        return Durability(UNSAFE, UNSAFE, MEASURED, (verdict.without_cut,))
    if all(verdict.cuts(cache).shown is None for cache in CACHES):
        return None
    reasons: list[Reason] = [] if verdict.never_synced is None else [verdict.never_synced]
    classes: dict[str, str] = {}
    for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED):
        classes[cache], said = _measured_with(cache, verdict, declared)
        reasons += said
    return Durability(
        classes[VOLATILE_4K],
        classes[PROTECTED],
        MEASURED,
        (*reasons, *_asides(verdict)),
        # A device with small sectors may write a block whole, too.
        volatile_cache_512=worst(classes[VOLATILE_512], classes[VOLATILE_4K]),
    )


def without_promise(declared: Durability) -> Durability:
    """What is left of a declaration that is in doubt: what it called unsafe, and nothing better."""
    left = {
        cache: UNSAFE if declared.class_with(cache) == UNSAFE else UNKNOWN
        for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)
    }
    return replace(
        declared,
        volatile_cache=left[VOLATILE_4K],
        protected_cache=left[PROTECTED],
        volatile_cache_512=None if declared.volatile_cache_512 is None else left[VOLATILE_512],
    )


def _measured_with(
    cache: str, verdict: PowerCutVerdict, declared: Durability | None
) -> tuple[str, list[Reason]]:
    """The class that stands for one kind of cache, and what is to be said of it."""
    words, found = CACHE_WORDS[cache], verdict.cuts(cache)
    said = declared.class_with(cache) if declared else UNKNOWN
    if found.shown is None and verdict.doubts_promise and said != UNSAFE:
        # Such a device can behave as each that asks less.
        is_bad = any(verdict.cuts(less).all_cuts.grave for less in CACHES[: CACHES.index(cache)])
        stands = UNSAFE if is_bad else UNKNOWN
        words = f"{words}: not cut, and {stands}, as cuts with another device were bad"
        return stands, [because("not-cut", words, cache=cache)]
    if found.shown is None:
        return said, [because("not-cut", f"{words}: not cut, so {said} is as declared", cache=cache)]
    counted = f"{words}: {counted_words(found)}"
    reasons = [
        because("cuts-counted", counted, cache=cache, cuts=found.all_cuts.cuts, bad=found.all_cuts.bad)
    ]
    if declared is None:
        return found.shown, reasons
    # The manuals promise nothing then where a page can be torn, and most cuts tear none.
    copies = pages_unmended(r for r in declared.reasons if r not in declared.by_runs)
    can_tear = copies is not None
    telling = found.tearing if can_tear else found.drawn.cuts - found.idle
    if copies in PAGES_PASSED_OVER and CLASSES.index(found.shown) < CLASSES.index(said):
        words = f"{words}: {said} as declared, as a checkpoint may pass over a page that no sync covers, which few cuts meet"
        return said, [*reasons, because("pages-passed-over", words, cache=cache, stands=said)]
    stands, why = _class_that_stands(found.shown, said, telling, verdict.loss, can_tear=can_tear)
    if why is not None:
        reasons.append(replace(why.about(words), values=why.values.updated(cache=cache)))
    elif said not in (stands, UNKNOWN):
        differ = f"{words}: declared {said}, measured {stands}"
        reasons.append(because("not-as-declared", differ, cache=cache, declared=said, measured=stands))
    return stands, reasons


def counted_words(cuts: CacheCuts) -> str:
    """`0 of 50 bad; where metadata waits 8 of 12 bad: 8 file system lost; in recovery 0 of 20 bad`."""
    words = [cut_words(cuts.drawn)] if cuts.drawn.cuts else []
    if cuts.sought.cuts:
        late = " or a flush met writes on their way" if cuts.is_late else ""
        order = " or the order of changes shows" if cuts.has_order else ""
        words.append(f"where metadata waits{late}{order} {cut_words(cuts.sought)}")
    if cuts.enumerated.cuts:
        words.append(f"states tried one by one: {cut_words(cuts.enumerated)}")
    if cuts.recut.cuts:
        words.append(f"in recovery {cut_words(cuts.recut)}")
    if cuts.weaker.cuts:
        words.append(f"bad with a device that asks more, and with this one too: {finding_words(cuts.weaker)}")
    return "; ".join(words)


def class_of(tally: CutCounts) -> str | None:
    """The class that the cuts of one kind of cache show; None without a cut."""
    if not tally.cuts:
        return None
    if tally.of(LOSS) or tally.broken:
        return UNSAFE
    return BOUNDED_LOSS if tally.of(BOUNDED) else DURABLE


def classes_of(tallies: Mapping[str, CutCounts]) -> dict[str, str | None]:
    """The class with each kind of cache: one can behave as each that asks less, and so is no better than those."""
    found: dict[str, str | None] = {}
    least: str | None = None
    for cache in CACHES:
        own = class_of(tallies.get(cache, CutCounts()))
        if own is not None:
            least = own if least is None else worst(own, least)
        found[cache] = least if own is not None else None
    return found


def _class_that_stands(
    measured_class: str, declared_class: str, telling: int, loss: Loss, *, can_tear: bool
) -> tuple[str, Reason | None]:
    """The class that stands of what was measured and declared, and why it is not what was measured.

    `telling` are the cuts that could have found something; where pages can be torn for good, those that tear them.
    """
    if measured_class == UNSAFE or CLASSES.index(measured_class) >= CLASSES.index(declared_class):
        return measured_class, None
    if telling < CUTS_FOR_MORE:
        kind = "weighted cuts that tear a page" if can_tear else "cuts"
        values = Levels(stands=declared_class, cuts=telling, kind=kind)
        return declared_class, Reason(TOO_FEW_FOR_MORE, too_few_words(values), values)
    if measured_class == DURABLE and (loss.bound_ms is not None or loss.bound_transactions is not None):
        words = "no cut lost any, which the engine's settings allow all the same"
        return BOUNDED_LOSS, because("loss-allowed-by-settings", words)
    return measured_class, None


def too_few_words(levels: Levels) -> str:
    """The sentence of `TOO_FEW_FOR_MORE`, by its values, without the kind of cache that it is said of."""
    return (
        f"{levels['stands']} as declared, as {levels['cuts']} {levels['kind']} are too few to promise more "
        f"({CUTS_FOR_MORE} may)"
    )


def _asides(verdict: PowerCutVerdict) -> list[Reason]:
    found: list[Reason] = []
    idle = sum(verdict.cuts(cache).idle for cache in CACHES)
    if idle:
        cuts = verdict.volatile_drawn.cuts
        words = f"nothing waited for a flush at {idle} of the {cuts} cuts with a volatile cache"
        found.append(because("cuts-at-empty-cache", words, idle=idle, cuts=cuts))
    if verdict.waiting is not None and not verdict.waiting.keys() - {IN_FLIGHT}:
        words = "at no position of this recording did metadata wait that a cut can tear"
        found.append(because("no-metadata-waited", words))
    if verdict.recoveries is not None:
        found += verdict.recoveries.uncounted
    if verdict.unreplayed and not verdict.journal_lost:
        words = (
            f"after {verdict.unreplayed} of {verdict.all_cuts.cuts} cuts the repair could not replay the file system's journal and "
            "dropped it: what is missing then is the tool's doing, and on this system as much gone"
        )
        found.append(because("journal-not-replayed", words, unreplayed=verdict.unreplayed))
    if not verdict.waits and verdict.controls.cuts:
        words = (
            "no commit waits for the device, so that a loss is what is expected: the controls, bad without any lie about a "
            "flush, prove less here"
        )
        found.append(because("controls-prove-less", words))
    if verdict.journal_lost:
        words = "the journal was in memory and gone after each cut"
        found.append(because("journal-lost", words))
    if verdict.remade:
        words = (
            f"{verdict.remade} of {verdict.all_cuts.cuts} cuts were looked at twice, as the first look ended on an error that the second, "
            "at a fresh copy, did not meet; `power-cut points` names them"
        )
        found.append(because("good-at-second-look", words, remade=verdict.remade, cuts=verdict.all_cuts.cuts))
    if needed := verdict.all_cuts.of(NEEDS_FSCK):
        words = f"{needed} of {verdict.all_cuts.cuts} cuts needed fsck"
        found.append(because("fsck-needed", words, needed=needed, cuts=verdict.all_cuts.cuts))
    return found


# Below a study: the stories that were made of its kept logs later, by the path of the run; in a run's folder, its own.
STORIES_FOLDER = "blame"

STORIES_FILE = "blame.jsonl"
NOT_BAD_AGAIN = "not-bad-again"


class WrittenPlace(Enum):
    """Whose the bytes are: a file of the engine, or of its log, another file, the file system's own blocks, or nobody's that was found."""

    ENGINE = "engine"
    ENGINE_LOG = "engine's log"
    OTHER_FILE = "other file"
    JOURNAL = "journal"
    METADATA = "metadata"
    UNKNOWN = "unknown"


_FILE_SYSTEMS_OWN = (WrittenPlace.JOURNAL, WrittenPlace.METADATA)
_OF_FILES = (WrittenPlace.ENGINE, WrittenPlace.ENGINE_LOG, WrittenPlace.OTHER_FILE)


class Repeatability(Enum):
    """Whether the same image gives the same verdict: what was asked twice did, did not, or the cut was not bad again at all."""

    STEADY = "steady"
    CHANGES = "changes"
    NOT_BAD_AGAIN = "not bad again"


@dataclass(frozen=True)
class WritingProcess:
    """Who asked a device for a write, as the kernel's tracepoint had it."""

    pid: int
    """its process; 0 where it has no number: it had ended, or is outside of the container"""
    name: str
    """what it is called, as when it first wrote: `postgres: checkpointer`, `jbd2/loop0-8`"""
    is_kernel: bool | None
    """whether it is a thread of the kernel, which writes what others left to it; null where it was gone before that was looked up"""


@dataclass(frozen=True)
class BlamedWrite:
    """A write of the log that the smallest loss has, or that a cut in order came before."""

    entry: int
    """its number in the log"""
    device: str
    """`disk` or `journal`"""
    offset: int
    """where it begins on the device, in bytes"""
    length: int
    """its bytes"""
    lost: tuple[tuple[int, int], ...]
    """what of it is lost: from where in its data, and how many bytes; of a write that came too late all of it"""
    ms_before_cut: float | None
    """when it was issued; negative behind the cut, null where the log has no times"""
    flushes_since: int
    """flushes of its device between it and the cut: of a device that lies they were acknowledged"""
    place: WrittenPlace
    """whose the lost bytes are"""
    names: tuple[str, ...] = ()
    """the same by name: file and offset, relation and page"""
    flushes_met: int = 0
    """flushes of its device that were sent while it was on its way, which cover nothing of it"""
    writers: tuple[WritingProcess, ...] | None = None
    """which processes asked for it, in the order of its bytes; null where that was not recorded"""
    is_through: bool = False
    """whether it went past the cache (FUA) and was complete before the cut; false in older stories"""

    @property
    def is_torn(self) -> bool:
        """Whether a part of it was kept."""
        return sum(length for _, length in self.lost) < self.length


class Unsynced(Enum):
    """What of a file no sync had brought to the medium: its content, its size or map while the content was there, or its name."""

    BYTES = "bytes"
    SIZE = "size"
    NAME = "name"


@dataclass(frozen=True)
class BlameEvidence:
    """What replays of one bad cut found."""

    point: int
    """the cut's number"""
    outcome: PointOutcome
    """what was found there"""
    profile: Profile
    """of the cut"""
    control: bool
    """whether its device lied about flushes"""
    in_recovery: bool
    """whether the cut was one of a recovery"""
    lost_writes: int
    """writes that the cut lost, or tore"""
    lost_parts: int
    """parts of them, each of which is kept or not by itself"""
    replays: int
    """images that were made and asked"""
    steadiness: Repeatability
    """whether an image that was tried twice answered alike"""
    smallest: tuple[BlamedWrite, ...] = ()
    """the writes whose loss alone is enough; empty where the cut is bad without any loss"""
    is_smallest: bool = True
    """whether nothing of these can be spared; false where the replays ended before that was known"""
    found: PointOutcome | None = None
    """what is found with the smallest loss: it is bad, and may be bad in another way. Not bad where the same image was good when it was looked
    at again; null where the cut was not bad again"""
    bad_without_loss: bool = False
    """whether the cut has the same finding where all that had been written is kept"""
    without_loss: PointOutcome | None = None
    """of a cut with another finding where all that had been written is kept: which, if it is bad"""
    mended_by: BlamedWrite | None = None
    """of such a cut: the write behind it with which all that had been promised is there; null where none was found"""
    writes_until_mended: int | None = None
    """how many writes and discards behind the cut that is"""
    unsynced: Unsynced | None = None
    """of such a cut that a write of the file system's own mends: what of the engine's files was not there before: `bytes`, `size`, `name`; null
    where nobody looked, as in older stories"""
    repaired: bool = False
    """whether the file system had to be repaired, or was lost, with the smallest loss, and not without it"""
    replay_failed: bool = False
    """whether the repair, with the smallest loss, went on without the journal, which it could not replay; false in older stories"""
    lost_ms: float | None = None
    """how long before the cut the first missing transaction was acknowledged, with the smallest loss"""
    is_bounded: bool | None = None
    """of a loss: whether it is within what the engine's settings may lose; null where they bound none, and of any other finding"""
    was_there: bool | None = None
    """of a loss that is older than the lost writes: whether its first transaction was there before the first of these was made; null
    of any other"""
    problem: str = ""
    """what was wrong with the smallest loss, in the first words"""
    first_problem: str = ""
    """what was wrong at the cut itself"""


class Party(Enum):
    """Whose fault a bad cut is; `nobody known` where the evidence names none."""

    DEVICE = "device"
    FILE_SYSTEM = "file system"
    ENGINE = "engine"
    NOBODY_KNOWN = "nobody known"


@dataclass(frozen=True)
class Fault:
    """Who broke which promise, or relied on none."""

    party: Party
    reason: Reason


@dataclass(frozen=True)
class Story:
    """One bad cut, told."""

    evidence: BlameEvidence
    """what replays found"""
    party: Party
    """whose fault it is"""
    reason: Reason
    """why"""
    lines: tuple[str, ...]
    """the same in five lines"""


def fault_of(evidence: BlameEvidence, declared: Durability | None) -> Fault:
    """By the evidence, and by what flushes and settings declared for the cell.

    What a declaration takes away is the reason where somebody relied on it; without one the evidence alone speaks.
    """
    if evidence.steadiness is Repeatability.NOT_BAD_AGAIN:
        return Fault(Party.NOBODY_KNOWN, because(NOT_BAD_AGAIN, "the cut was not bad when it was replayed"))
    if _was_bad_once(evidence):
        words = "the cut was bad when it was replayed, and not when the same image was looked at again"
        return Fault(Party.NOBODY_KNOWN, because(NOT_BAD_AGAIN, words))
    flushes = max((write.flushes_since for write in evidence.smallest), default=0)
    is_through = any(write.is_through for write in evidence.smallest)
    # Of a cut in order the device kept what it had acknowledged.
    if evidence.control and (flushes or is_through) and not _is_in_order(evidence):
        words = f"it acknowledged {format_count(flushes, 'flush', 'flushes')} behind the write, and lost it all the same"
        if not flushes:
            words = "it acknowledged the write as one past its cache (FUA), and lost it all the same"
        return Fault(Party.DEVICE, because("device-lied", words, flushes=flushes))
    of_filesystem, of_engine = _declared(evidence, declared)
    is_usual = declared is not None and any(each.code == NO_JOURNAL for each in declared.reasons)
    # Without a journal a repair belongs to every cut, and says nothing of most.
    repaired = evidence.repaired and not (is_usual and not _lacks_journal(evidence))
    if of_engine is not None and not repaired:
        return Fault(Party.ENGINE, of_engine)
    if of_filesystem is not None:
        return Fault(Party.FILE_SYSTEM, of_filesystem)
    if repaired:
        return Fault(Party.FILE_SYSTEM, _of_broken_filesystem(evidence))
    own = [write for write in evidence.smallest if write.place in _FILE_SYSTEMS_OWN and write.flushes_met]
    if own:
        words = f"it sent {format_count(own[0].flushes_met, 'flush', 'flushes')} while a write of its own was on its way, and waited for none"
        return Fault(Party.FILE_SYSTEM, because("flush-before-complete", words))
    if _may_be_unflushed(evidence, declared):
        words = (
            "no flush came behind the write, and whether the file system sends one for a sync was not counted"
        )
        return Fault(Party.NOBODY_KNOWN, because(NOT_COUNTED, words))
    return Fault(Party.ENGINE, _of_engine(evidence, declared))


def _may_be_unflushed(evidence: BlameEvidence, declared: Durability | None) -> bool:
    """Whether a file system may have been asked for a flush that it did not send, as nobody counted them."""
    is_counted = declared is None or all(each.code != NOT_COUNTED for each in declared.reasons)
    is_met = any(write.flushes_met or write.flushes_since for write in evidence.smallest)
    return not is_counted and not is_met and not _is_in_order(evidence)


def _was_bad_once(evidence: BlameEvidence) -> bool:
    """Whether the image of a cut without a loss was good where it was looked at again."""
    return evidence.found is not None and not evidence.found.is_bad


def _is_in_order(evidence: BlameEvidence) -> bool:
    """Whether nothing that had been written is missing, which no flush would have changed."""
    return evidence.profile is Profile.ORDERED or evidence.bad_without_loss


def _declared(evidence: BlameEvidence, declared: Durability | None) -> tuple[Reason | None, Reason | None]:
    """The first reason of the file system's and of the engine's that explains such a finding, of a cell not called durable with such a cache."""
    if declared is None:
        return None, None
    if (declared.protected_cache if _is_in_order(evidence) else declared.volatile_cache) == DURABLE:
        return None, None
    telling = [each for each in declared.reasons if _explains(each, evidence, declared)]
    of_filesystem = next((each for each in telling if each.code in OF_FILE_SYSTEM), None)
    of_engine = next((each for each in telling if each.code not in OF_FILE_SYSTEM), None)
    return of_filesystem, of_engine


def _explains(reason: Reason, evidence: BlameEvidence, declared: Durability) -> bool:
    """Whether what a declaration takes away is what is missing or damaged here."""
    if reason.code in OF_NOTHING:
        return False
    if reason.code in OF_FLUSHES:
        return not _is_in_order(evidence)
    if reason.code == NO_JOURNAL:
        return _lacks_journal(evidence)
    # What an author promises is no reason, unless it is less than all.
    if reason.values.text(PROMISED) == DURABLE:
        return False
    if takes_the_last(reason, declared):
        # The bound is one of the engine's settings, and says nothing of what a file system may lose.
        is_within = reason.code in OF_FILE_SYSTEM or evidence.is_bounded is not False
        return evidence.found is PointOutcome.LOST and is_within
    if reason.code in PAGES_UNMENDED:
        # A page is torn between two writes as well as within one; what is missing then may be rows, in silence.
        in_pages = any(write.place is WrittenPlace.ENGINE for write in evidence.smallest)
        in_order = evidence.bad_without_loss and evidence.found is not PointOutcome.LOST
        waited: tuple[WrittenPlace, ...] = (WrittenPlace.JOURNAL, WrittenPlace.ENGINE_LOG)
        if reason.code in PAGES_PASSED_OVER:
            # A commit of the file system brings whole pages too, which a checkpoint had passed over.
            waited = (*waited, WrittenPlace.METADATA)
        return in_pages or (in_order and not any(_waited_for(place, evidence) for place in waited))
    return True


def _lacks_journal(evidence: BlameEvidence) -> bool:
    """Whether a journal would have kept it.

    The file system is lost, or its repair damaged files where a block of its own is lost. A plain loss is no repair's.
    """
    if evidence.found is PointOutcome.FILE_SYSTEM_LOST:
        return True
    is_own = any(write.place is WrittenPlace.METADATA for write in evidence.smallest)
    return evidence.repaired and is_own and evidence.found is not PointOutcome.LOST


def _waited_for(place: WrittenPlace, evidence: BlameEvidence) -> bool:
    """Whether a cut that lost nothing is mended by the next write there.

    By the journal's, where a file's map, size or name had not been committed. The engine's log mends no page that was torn.
    """
    late = evidence.mended_by
    return evidence.bad_without_loss and late is not None and late.place is place


def _of_broken_filesystem(evidence: BlameEvidence) -> Reason:
    if evidence.replay_failed:
        return because(
            "journal-not-replayed", "its repair could not replay its journal, and went on without it"
        )
    if evidence.bad_without_loss:
        return because("not-whole-in-order", "it was not whole although all that it had written was kept")
    if any(write.is_torn for write in evidence.smallest):
        return because("metadata-torn", "it does not survive that a block of its own is torn")
    return because("metadata-missing", "it does not survive that a write of its own is missing")


def _metadata_not_synced(unsynced: Unsynced | None) -> Reason:
    """Which of both the change was the blocks of a journal do not tell; the files of the image do, where they were looked at."""
    words = {
        Unsynced.NAME: "a name had been synced (an fsync of the directory)",
        Unsynced.SIZE: "a file's size or map had been synced (an fsync of the file)",
    }
    either = "a change of metadata had been synced: a name (an fsync of the directory) or a file's size (an fsync of the file)"
    changed = either if unsynced is None else words.get(unsynced, either)
    return because("metadata-not-synced", f"it acknowledged before {changed}")


_UNSYNCED_WORDS = {
    None: "bytes, a size or a name",
    Unsynced.BYTES: "the bytes were not on the medium",
    Unsynced.SIZE: "the bytes were on the medium, and the journal did not have them yet as a part of the file",
    Unsynced.NAME: "a name was not in its directory yet, or still was",
}


def _of_engine(evidence: BlameEvidence, declared: Durability | None) -> Reason:
    """Of an engine that is called durable, on a file system that flushes and came back whole."""
    if evidence.in_recovery:
        words = "its recovery replaced what had been durable, and did not make the replacement durable first"
        return because("recovery-not-synced", words)
    if evidence.found is PointOutcome.LOST and evidence.bad_without_loss:
        mends_by_own = evidence.mended_by is not None and evidence.mended_by.place in _FILE_SYSTEMS_OWN
        if mends_by_own and evidence.unsynced is not Unsynced.BYTES:
            return _metadata_not_synced(evidence.unsynced)
        return because("promised-before-written", "it acknowledged before it had written")
    may_pass_over = declared is not None and any(each.code in PAGES_PASSED_OVER for each in declared.reasons)
    if _waited_for(WrittenPlace.ENGINE_LOG, evidence):
        words = "no write is torn or lost, and its data are damaged until the next write of its own log"
        if may_pass_over:
            words = f"{words}: without double writing a checkpoint may pass over a page that no sync covers"
        return because("damaged-until-log", words)
    if _waited_for(WrittenPlace.JOURNAL, evidence):
        words = f"it relied on a change that no fsync had waited for: {_UNSYNCED_WORDS[evidence.unsynced]}"
        return because("relied-on-unsynced", words)
    if may_pass_over and _waited_for(WrittenPlace.METADATA, evidence):
        words = (
            "no write is torn or lost, and its data are damaged until the file system commits: without double writing a checkpoint passes over "
            "a page, or a page is torn between two commits"
        )
        return because("damaged-until-commit", words)
    if evidence.bad_without_loss:
        words = "it relied on writes being whole or in an order that nothing asked for"
        return because("relied-on-order", words)
    if evidence.found is PointOutcome.LOST:
        if evidence.was_there:
            words = "its recovery drops transactions that were on the medium before the lost write was made"
            return because("recovery-drops-flushed", words)
        if all(write.place in _FILE_SYSTEMS_OWN for write in evidence.smallest):
            return _metadata_not_synced(None)
        return because("promised-before-flushed", "it acknowledged what no flush had put on the medium")
    if any(write.is_torn for write in evidence.smallest):
        words = "it took a write for whole of which the device kept a part, as a device may"
        return because("relied-on-whole-write", words)
    return because("relied-on-order", "it relied on an order of writes that no flush had asked for")


def story_of(evidence: BlameEvidence, declared: Durability | None) -> Story:
    """The evidence, the fault, and both in five lines."""
    fault = fault_of(evidence, declared)
    kind = f"{evidence.profile.value}, a control" if evidence.control else evidence.profile.value
    lines = (
        f"point {evidence.point} ({kind}): {evidence.outcome.value}{f': {evidence.first_problem}' if evidence.first_problem else ''}",
        _smallest_words(evidence),
        _place_words(evidence),
        _time_words(evidence),
        f"fault: {fault.party.value}: {fault.reason}",
    )
    # A file system's and an engine's words may hold anything.
    return Story(evidence, fault.party, fault.reason, tuple(map(one_line, lines)))


def _smallest_words(evidence: BlameEvidence) -> str:
    asked = format_count(evidence.replays, "replay", "replays")
    if evidence.steadiness is Repeatability.NOT_BAD_AGAIN:
        return f"not bad when it was replayed ({asked}): its verdict changes on the same image"
    if _was_bad_once(evidence):
        return f"bad when it was replayed, and good at a second try ({asked}): its verdict changes on the same image"
    unsteady = "; the same image gave another verdict at a second try" * (
        evidence.steadiness is Repeatability.CHANGES
    )
    if evidence.bad_without_loss:
        return f"bad although everything that had been written is kept ({asked}){unsteady}"
    torn = sum(write.is_torn for write in evidence.smallest)
    what = format_count(len(evidence.smallest), "write", "writes")
    some = "" if not torn else ", torn" if torn == len(evidence.smallest) else f", {torn} of them torn"
    more = "" if evidence.is_smallest else "; perhaps fewer, as no more replays were allowed"
    if evidence.without_loss is not None:
        more += f"; without any loss it is {evidence.without_loss.value}"
    lost = format_count(evidence.lost_writes, "lost or torn write", "lost or torn writes")
    verb = "is" if len(evidence.smallest) == 1 else "are"
    other = "" if evidence.found in (None, evidence.outcome) else f" for {evidence.found.value}"
    # A part of what the cut took may be seen elsewhere, or by fewer transactions.
    seen = f": {evidence.problem}" if evidence.problem not in ("", evidence.first_problem) else ""
    return f"of {lost} {what}{some} {verb} enough{other}{seen} ({asked}){more}{unsteady}"


def _place_words(evidence: BlameEvidence) -> str:
    blamed = evidence.smallest or tuple(filter(None, (evidence.mended_by,)))
    if not blamed:
        return "no write of the log mends it" if evidence.bad_without_loss else "no write is to blame"
    first = blamed[0]
    parts = ", ".join(f"bytes {start} to {start + length}" for start, length in first.lost[:3])
    part = f"{parts} of " if first.is_torn else ""
    where = "; ".join(first.names) or f"{first.place.value} at byte {first.offset} of the {first.device}"
    others = f"; and {len(blamed) - 1} more" if len(blamed) > 1 else ""
    too_late = "written too late: " if evidence.bad_without_loss else ""
    return f"{too_late}entry {first.entry}, {part}{format_size(first.length)}: {where}{others}"


def _time_words(evidence: BlameEvidence) -> str:
    promised = (
        ""
        if evidence.lost_ms is None
        else f"; the first missing transaction was acknowledged {format_milliseconds(evidence.lost_ms)} before the cut"
    )
    if evidence.mended_by is not None:
        ms = evidence.mended_by.ms_before_cut
        when = "" if ms is None else f", {format_milliseconds(-ms)} later"
        writes = format_count(evidence.writes_until_mended or 0, "write", "writes")
        by = _by_words(evidence.mended_by)
        return f"it came {writes} behind the cut{when}{by and f', written{by}'}{promised}"
    if not evidence.smallest:
        return f"nothing that was written is missing{promised}"
    first = evidence.smallest[0]
    when = (
        "at an unknown time"
        if first.ms_before_cut is None
        else f"{format_milliseconds(first.ms_before_cut)} before the cut"
    )
    flushes = format_count(first.flushes_since, "flush", "flushes") if first.flushes_since else "no flush"
    met = (
        f", {format_count(first.flushes_met, 'flush', 'flushes')} met it on its way"
        if first.flushes_met
        else ""
    )
    return f"issued {when}{_by_words(first)}, {flushes} of that device since{met}{promised}"


def _by_words(write: BlamedWrite) -> str:
    """Who wrote it; a thread of the kernel writes back what a program left in a file. Nothing where it was not recorded."""
    kernel = "the kernel's write-back" if write.place in _OF_FILES else "the kernel"
    words = (
        f"{kernel} ({each.name})"
        if each.is_kernel
        else f"{each.name} ({f'process {each.pid}' if each.pid else 'a process without a number here'})"
        for each in write.writers or ()
    )
    return "".join(f"{' and' * bool(number)} by {each}" for number, each in enumerate(words))


BY_FILE_SYSTEM = "untorn by file system"
PAGES_TEAR = "pages tear"
PASSED_OVER = "a checkpoint may pass over a page that no sync covers"

# What tears a page and leaves a block of metadata whole, and what tears nothing. Sectors of 512 bytes tear metadata too.
_TEARS_PAGES = (Profile.SUBSET_4K, Profile.UNTORN_8K, Profile.UNTORN_16K)

_TEARS_NOTHING = (Profile.LOST, Profile.WHOLE, Profile.ORDERED)


@dataclass(frozen=True)
class PageGround:
    """Why a class is what it is; `stands` is the class, which is unknown where the ground does not bear what the cuts show."""

    stands: str
    words: str

    @property
    def verdict(self) -> str:
        """`durable · untorn by file system`."""
        return f"{self.stands} · {self.words}"


def page_ground(
    measured_class: str,
    profiles: Mapping[str, CutCounts],
    pages: PageFacts | None,
    unit_bytes: int | None,
    *,
    tearing: int,
    copies: str,
    recovered: Sequence[RecoveredPages] = (),
) -> PageGround | None:
    """The ground of a class that cuts show of an engine without copies of its pages; None where nothing is known of it.

    `profiles` are the drawn cuts by profile; `unit_bytes` is what the cut device was said to write whole; `tearing` are the
    cuts that could have torn a page. Fewer than `CUTS_FOR_MORE` of them are no ground. `copies` are those that are left out, by the
    code of the reason. `recovered` are the recoveries that were cut again: a ground has to hold for their pages too.
    """
    is_broken = any(each.broken for each in profiles.values())
    if copies in PAGES_PASSED_OVER and measured_class in CLASSES and not is_broken:
        return PageGround(UNSAFE, PASSED_OVER)
    if measured_class == UNSAFE:
        return PageGround(UNSAFE, PAGES_TEAR) if _only_torn(profiles) and not are_untorn(pages) else None
    if measured_class not in (DURABLE, BOUNDED_LOSS):
        return None
    if unit_bytes is not None:
        ground = _by_device(measured_class, pages, unit_bytes, recovered)
    elif are_untorn(pages, recovered):
        ground = PageGround(measured_class, BY_FILE_SYSTEM)
    else:
        return None
    if ground.stands != UNKNOWN and tearing < CUTS_FOR_MORE:
        return PageGround(UNKNOWN, f"{tearing} of {CUTS_FOR_MORE} cuts that could tear a page")
    return ground


def is_broken_otherwise(profiles: Mapping[str, CutCounts], pages: PageFacts | None) -> bool:
    """Whether cuts broke something that no torn page explains: they tear nothing, each page was written whole, or it is the file system itself."""
    torn = _together(profiles, _TEARS_PAGES)
    is_otherwise = torn.unmounted > 0 or (torn.broken > 0 and are_untorn(pages))
    return is_otherwise or _together(profiles, _TEARS_NOTHING).broken > 0


def broke_itself(profiles: Mapping[str, CutCounts]) -> bool:
    """Whether all that cuts broke is the file system itself, which copies of the engine's pages would not mend."""
    every = CutCounts.together(profiles.values())
    return 0 < every.broken == every.unmounted


def are_untorn(pages: PageFacts | None, recovered: Sequence[RecoveredPages] = ()) -> bool:
    """Whether each page was written whole over an older one, and in these recoveries too."""
    counts = None if pages is None else pages.counts
    is_whole = counts is not None and counts.atomic > 0 and _is_whole(counts)
    return is_whole and all(_is_whole(each.counts) for each in recovered)


def _only_torn(profiles: Mapping[str, CutCounts]) -> bool:
    """Whether cuts that tear pages broke something, and those that tear nothing, of which there were some, were all good.

    What broke the file system itself is its own block, and no page of the engine's.
    """
    torn, other = (_together(profiles, kinds) for kinds in (_TEARS_PAGES, _TEARS_NOTHING))
    return torn.broken > torn.unmounted and other.cuts > 0 and other.bad == 0


def _together(profiles: Mapping[str, CutCounts], kinds: tuple[Profile, ...]) -> CutCounts:
    return CutCounts.together(profiles[kind.value] for kind in kinds if kind.value in profiles)


def _is_whole(counts: PageCounts | None) -> bool:
    """Whether no page was written that may be torn; a recovery may have had none to write over an older one."""
    return counts is not None and not (counts.plain or counts.refusals or counts.no_pages)


def _by_device(
    measured_class: str, pages: PageFacts | None, unit_bytes: int, recovered: Sequence[RecoveredPages]
) -> PageGround:
    """A device's promise is one for writes of a power of two, aligned to themselves and no longer than the unit."""
    if pages is None:
        return PageGround(UNKNOWN, "nobody looked where the pages lie")
    found = pages.after
    if not pages.direct_files or not found.pages:
        return PageGround(UNKNOWN, "pages through the page cache, which joins them to longer writes")
    if unit_bytes < pages.page_bytes:
        return PageGround(
            UNKNOWN, f"a page of {pages.page_bytes // KIB} kB is more than {unit_bytes // KIB} kB"
        )
    if found.unmapped == found.pages:
        return PageGround(UNKNOWN, "the file system does not say where its pages lie on the device")
    if found.misplaced:
        return PageGround(UNKNOWN, f"{found.misplaced:,} of {found.pages:,} pages not aligned")
    if pages.uncovered_writes is None:
        return PageGround(UNKNOWN, "nobody counted the writes of pages beyond the unit")
    # Pages side by side, joined to one aligned write, are none of it either: of a longer one AWUPF promises nothing, for no page in it.
    if pages.uncovered_writes:
        return PageGround(
            UNKNOWN, f"{pages.uncovered_writes:,} of {pages.writes or 0:,} writes of pages beyond the unit"
        )
    if not all(each.direct_files for each in recovered):
        return PageGround(UNKNOWN, "nobody saw where the pages of a recovery lie")
    worst = max((each.after for each in recovered), key=lambda layout: layout.misplaced, default=found)
    if worst.misplaced:
        return PageGround(
            UNKNOWN, f"{worst.misplaced:,} of {worst.pages:,} pages not aligned after a recovery"
        )
    # Older records counted none in recovery, and say what they said.
    if uncovered := sum(each.uncovered_writes or 0 for each in recovered):
        writes = sum(each.writes or 0 for each in recovered)
        return PageGround(
            UNKNOWN, f"{uncovered:,} of {writes:,} writes of pages beyond the unit in recoveries"
        )
    return PageGround(measured_class, f"untorn by device ({unit_bytes // KIB} kB)")
