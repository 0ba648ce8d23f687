"""Power cuts: what a run of them consists of, by the names that plans, visits, records and figures share.

A short run is recorded on a device that logs every write, flush and discard. The log is then cut at many
positions, each position is replayed into an image of what the medium would have held, and what stands on it is asked
for the transactions that were acknowledged before the cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Self

from bedplate.model.device_cache import PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.free_space import AgedCopy, FreeSpace
from bedplate.model.levels import Levels, Scalar
from bedplate.units import GIB, KIB, MIB

ENOSPC = "ENOSPC"

# Facts of a recording, of a server that counts them while clients write.
WAL_BYTES, WAL_PAGE_IMAGES = "wal_bytes", "wal_page_images"


@dataclass(frozen=True)
class PageCounts:
    """What the preloaded library counted of writes with direct I/O, from the server's start to the end of its clients."""

    atomic: int
    """pages that the kernel took as untorn writes"""
    plain: int
    """pages written over old ones without asking for that"""
    extensions: int
    """pages behind a file's end, where nothing old can be torn"""
    split_calls: int
    """calls with several pages, which were written one by one"""
    no_pages: int
    """calls with direct I/O that were no whole pages, shorter ones too, and written as they were"""
    buffered: int
    """calls of a page or more through the page cache: WAL, and all else that is not opened with O_DIRECT"""
    refused: Mapping[str, int] = field(default_factory=dict)
    """pages that the kernel would not write untorn, by its error; each was written plainly and may be torn"""

    @classmethod
    def together(cls, page_counts: Iterable[PageCounts]) -> Self:
        """Several servers' as one."""
        counts = tuple(page_counts)
        refused: Counter[str] = Counter()
        for each in counts:
            refused.update(each.refused)
        named = (each.name for each in fields(cls) if each.name != "refused")
        return cls(
            **{name: sum(getattr(each, name) for each in counts) for name in named}, refused=dict(refused)
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing was counted at all: a server writes WAL, if nothing else."""
        return not (
            self.atomic or self.plain or self.extensions or self.no_pages or self.buffered or self.refusals
        )

    @property
    def refusals(self) -> int:
        """All of them."""
        return sum(self.refused.values())

    @property
    def refusal(self) -> str | None:
        """What is to be said of the pages that were refused, and the way out; None where there is none."""
        asked = self.atomic + self.refusals
        if self.refused.get(ENOSPC):
            return (
                f"XFS found no free space in one piece for {self.refused[ENOSPC]:,} of {asked:,} pages (ENOSPC), which were written "
                'plainly and may be torn; a cowextsize of one page ("8k" of PostgreSQL) lets XFS take smaller pieces'
            )
        if not self.refusals:
            return None
        named = ", ".join(f"{number:,} {name}" for name, number in self.refused.items())
        return (
            f"the kernel refused an untorn write for {self.refusals:,} of {asked:,} pages ({named}), which were written plainly and "
            "may be torn"
        )


@dataclass(frozen=True)
class PageLayout:
    """Where the pages of the files lie that the server wrote with direct I/O, as the file system maps them (FIEMAP)."""

    files: int
    """files with a page or more"""
    pages: int
    """whole pages in them"""
    extents: int
    """pieces that the files are in"""
    unaligned: int
    """pages that do not begin at a multiple of their size on the device"""
    divided: int
    """pages in two or more places"""
    unmapped: int
    """pages without a place: holes, or not yet written back"""

    @property
    def misplaced(self) -> int:
        """Pages that no device's promise for aligned writes covers, at the most."""
        return self.unaligned + self.divided + self.unmapped


@dataclass(frozen=True)
class PageFacts:
    """What a recording knows of its server's pages."""

    page_bytes: int
    """size of a page"""
    unit_min_bytes: int | None
    """the smallest untorn write that the file system takes (statx), 0 for none; null where the kernel does not say"""
    unit_max_bytes: int | None
    """the largest"""
    unit_max_optimised_bytes: int | None
    """the largest that needs no copy on write, 0 where each does"""
    probe: str
    """what a single untorn write of a page into the data directory came to: `taken`, or the error's name"""
    direct_files: int
    """files below the data directory that the server's processes had open with O_DIRECT, without those of its log; in older records
    with them, also in what follows"""
    before: PageLayout
    """of these files before the clients began"""
    after: PageLayout
    """and when they had ended"""
    counts: PageCounts | None = None
    """what the preloaded library counted; null without it"""
    writes: int | None = None
    """writes of the clients' time with a part of these files, as they lay in the end, without those of zeros; null where the device has no
    unit, and in older records"""
    uncovered_writes: int | None = None
    """those of them that the unit does not cover, or that are shorter than a page"""


@dataclass(frozen=True)
class RecoveredPages:
    """What the recording of a recovery knows of its server's pages, from its start to its end."""

    direct_files: int
    """files below the data directory that the server's processes had open with O_DIRECT, without those of its log; in older records
    with them, also in what follows"""
    after: PageLayout
    """of these files, when all was written back"""
    counts: PageCounts | None = None
    """what the preloaded library counted; null without it"""
    writes: int | None = None
    """writes of the recovery with a part of these files, as they lay in the end, without those of zeros; null where the device has no unit,
    and in older records"""
    uncovered_writes: int | None = None
    """those of them that the unit does not cover, or that are shorter than a page"""


WORKLOAD = "power_cut"

# Files in the run's folder: one JSON object per line and point; the facts of the recording; the log itself, packed
# (xz), which is kept where a point failed that is no control, and of a good run as `keep_logs` says.
POINTS_FILE = "points.jsonl"

RECORDING_FILE = "recording.json"
LOG_FILE = "log.xz"

# Level `ram_journal` of a dataset: what becomes of an external journal in RAM at the cut. It is lost, unless it is kept to
# stand for one on a device of its own.
RAM_JOURNAL = "ram_journal"

JOURNAL_LOST = "lost"
JOURNAL_KEPT = "kept"

# Level `press_dirty_pages` of a dataset, only where it is true: the kernel writes back what the engine has dirty, all the while.
PRESSED = "press_dirty_pages"

# Level `completions` of a dataset, only where they are late: whether the recorded device answers a write when it comes, or up to
# `LATE_US` later, so that several are under way at once and come to their end in any order.
COMPLETIONS = "completions"

AT_ONCE = "at once"
LATE = "late"
LATE_US = 2000

# Level `fua` of a dataset, only where it is true: the recorded device can write past its cache, and needs no flush for that.
HAS_FUA = "fua"

# Level `sector_bytes` of a dataset, only where they are not these: sectors of the recorded disk, and of an external journal's.
SECTOR_BYTES = "sector_bytes"

USUAL_SECTOR_BYTES = 512
LARGE_SECTOR_BYTES = 4096

# What a plan gets that says nothing. The disk is sparse, and so large that no file system lacks room for its metadata: on 512
# MiB, Btrfs commits an engine's page by halves. The duration has what file systems do of themselves every few seconds.
IMAGE_BYTES = 4 * GIB

DURATION_S = 20.0

# The types that do so on a smaller disk (docs/FINDINGS.md).
SHORT_OF_METADATA = ("btrfs",)

POINTS_DEFAULT = 160

# Level `recut` of a run, and of its dataset, only where there are any: cuts in recovery. Each recovery is recorded once and cut about so often.
RECUT = "recut"

RECUTS_EACH = 8

# In the run's folder, for each recovery with a bad cut: its log, packed; the number is that of the cut that it followed, and of one behind a
# second cut how many entries of the first recovery came before that.
RECOVERY_LOG_FILE = "recovery-{first}.xz"
SECOND_RECOVERY_LOG_FILE = "recovery-{first}-{second}.xz"

# Level `exhaustive` of a run, and of its dataset, only where there are any: cuts behind every write of recoveries that are short, at most so many.
EXHAUSTIVE = "exhaustive"

# A recovery of more writes is not short.
SHORT_RECOVERY_WRITES = 300

# Each further so many of them are for one more recovery.
EXHAUSTIVE_EACH = 300


def recoveries_for(exhaustive: int) -> int:
    """How many recoveries share so many cuts behind each write."""
    return max(exhaustive // EXHAUSTIVE_EACH, int(exhaustive > 0))


# Level `keep_logs` of a run: whether the log of a run without a bad cut is kept. `small`: if it packs to this much or less.
KEEP_SMALL = "small"

KEEP_ALL = "all"
KEEP_BAD = "bad"
SMALL_LOG_BYTES = 32 * MIB


def late_us(dataset: Levels) -> int:
    """How late the recorded device answers at the most; 0: at once."""
    return LATE_US if dataset.get(COMPLETIONS) == LATE else 0


def sector_bytes(dataset: Levels) -> int:
    """Sectors of the recorded devices."""
    return dataset.integer(SECTOR_BYTES) or USUAL_SECTOR_BYTES


class Profile(Enum):
    """What a device makes of the writes after its last flush.

    `subset-4k` and `subset-512` keep each block of that size, or not, by chance: a cache that writes back in any order
    and tears what it was writing. `whole` keeps each write whole, or not. `lost` keeps none. `ordered` keeps all, in
    order: a cache that power cannot take, or a machine that was killed.

    `untorn-8k` and `untorn-16k` keep a write whole, or not, that is a power of two, aligned to itself and no longer than that, and
    tear every other at 4 KiB: the device of a plan with a `device_unit`. `subset-8k` and `subset-16k` tear at multiples of that
    alone; of these a log that was kept is asked.
    """

    SUBSET_4K = "subset-4k"
    SUBSET_512 = "subset-512"
    WHOLE = "whole"
    LOST = "lost"
    ORDERED = "ordered"
    SUBSET_8K = "subset-8k"
    SUBSET_16K = "subset-16k"
    UNTORN_8K = "untorn-8k"
    UNTORN_16K = "untorn-16k"


# Those that a plan asks for: a class of durability stands for each.
PLAN_PROFILES = (Profile.SUBSET_4K, Profile.SUBSET_512, Profile.WHOLE, Profile.LOST, Profile.ORDERED)

# Level `device_unit` of a run, only where there is one, in bytes: what the cut device is said to write whole. Its profiles that
# tear are then the one of that unit.
DEVICE_UNIT = "device_unit"

UNIT_PROFILES = {8 * KIB: Profile.UNTORN_8K, 16 * KIB: Profile.UNTORN_16K}

# Cuts at which metadata waits, besides those that are drawn; where completions are late, or behind a flush that met writes on
# their way, which is then one kind among those of metadata.
SOUGHT_POINTS = 24

# Level `placed` of a run, only where they are not so many: cuts behind commits of the file system, where the order of what the engine does matters.
PLACED = "placed"

PLACED_POINTS = 36
IN_FLIGHT = "write in flight at a flush"

# Points more, whose device ignores every flush: if they are not bad, the oracle sees nothing.
CONTROLS = 6

# Level `states` of a run, only where there are any: cuts more, each of a state that the device may leave of a window between two
# flushes. Of windows of so many writes or fewer every subset of them is one.
STATES = "states"

SMALL_WINDOW_WRITES = 12
VOLATILE_PROFILES = (Profile.SUBSET_4K, Profile.SUBSET_512, Profile.WHOLE, Profile.LOST)
DEFAULT_PROFILES = (Profile.SUBSET_4K, Profile.SUBSET_512, Profile.LOST, Profile.ORDERED)


class Placement(Enum):
    """How a position was chosen: any entry alike, or the likelier the more writes wait for a flush there.

    `sought` lie where metadata of the file system waits that a cut can tear within 4 KiB, or behind a flush that does not cover
    every write issued before it. `order` lie behind a commit of the file system that may have one change of an engine's and not the next, or
    where a block of a file is written over. `enumerated` are states that the windows between two flushes can leave, tried one by one. All these
    show that a loss can happen; how many of them are bad says nothing of how often.
    In a recovery: `span`, between any two flushes alike, wherever something waits; `every`, behind each write in turn, and each write that did
    not come first behind a flush as the only one since that; `whole`, behind everything, which must be good.
    """

    UNIFORM = "uniform"
    WEIGHTED = "weighted"
    SOUGHT = "sought"
    ORDER = "order"
    ENUMERATED = "enumerated"
    SPAN = "span"
    EVERY = "every"
    WHOLE = "whole"


# Placements by chance: only of these is a share of bad cuts one.
DRAWN = (Placement.UNIFORM, Placement.WEIGHTED)


class PointOutcome(Enum):
    """What was found at one cut, from best to worst.

    `ok`: every acknowledged transaction is there, whole, and the file system mounted by itself. `needs fsck`: the same
    after a repair that a mount alone does not make. `lost`: consistent, but acknowledged transactions are missing; how many
    and since when stands beside it. `corrupt, detected`: the engine refuses to start, or says that its data are
    damaged. `corrupt, silent`: the engine works and says nothing, and only the oracle or a check that no one runs by
    himself finds it. `file system lost`: it mounts neither by itself nor after its repair.
    """

    OK = "ok"
    NEEDS_FSCK = "needs fsck"
    LOST = "lost"
    DETECTED = "corrupt, detected"
    SILENT = "corrupt, silent"
    FILE_SYSTEM_LOST = "file system lost"

    @property
    def is_bad(self) -> bool:
        """Whether something acknowledged is gone or damaged; a repair that works is work, and no loss."""
        return self not in (PointOutcome.OK, PointOutcome.NEEDS_FSCK)


@dataclass(frozen=True)
class ChosenState:
    """Which parts of what waits at a cut are kept, where no seed draws it: whole writes, or blocks where the profile tears."""

    parts: tuple[int, ...]
    """their numbers, from 0 in the order of the log"""
    kept: bool
    """whether these are kept and no other, or all others and none of these"""


@dataclass(frozen=True)
class CutPoint:
    """Where and how the power is cut; with the log it decides the image bit for bit."""

    number: int
    """which cut of its run"""
    position: int
    """how many entries of the log are before it"""
    profile: Profile
    """what the device makes of the writes after its last flush: `subset-4k`, `subset-512`, `whole`, `lost`, `ordered`, `subset-8k`,
    `subset-16k`, `untorn-8k`, `untorn-16k`"""
    placement: Placement
    """how the position was chosen: `uniform`, `weighted`, `sought` (where metadata waits, or behind a flush that met writes
    on their way), `order` (behind a commit, or where a file's block is written over), `enumerated` (a state of the window that ends there). Of a recovery: `span` (between two flushes), `every` (behind each
    write, and each write alone since the last flush), `whole` (behind everything: a control, which must be good)"""
    seed: int
    """draws what is kept of the volatile writes"""
    control: bool = False
    """whether the device lies about its flushes: such a cut must be bad, or the oracle sees nothing"""
    state: ChosenState | None = None
    """what is kept, of a state that was not drawn; null where the seed draws it"""
    recovery_of: int | None = None
    """the number of the cut whose recovery was recorded and is cut here; null in a cut of the recording itself"""
    second: int | None = None
    """of a third cut: how many entries of that recovery came, in order, before the second cut, behind which the recovery began that is cut
    here; null of all others"""

    @property
    def recovery_words(self) -> str:
        """Which recovery is cut: `recovery from cut 3`, `recovery from a second cut, at entry 17 of that from cut 3`; empty of the recording itself."""
        if self.recovery_of is None:
            return ""
        if self.second is None:
            return f"recovery from cut {self.recovery_of}"
        return f"recovery from a second cut, at entry {self.second} of that from cut {self.recovery_of}"

    @property
    def recovery_log_files(self) -> tuple[str, ...]:
        """The files, in the run's folder, of the logs of recoveries up to the one that is cut; none of a cut of the recording itself."""
        if self.recovery_of is None:
            return ()
        first = RECOVERY_LOG_FILE.format(first=self.recovery_of)
        if self.second is None:
            return (first,)
        return (first, SECOND_RECOVERY_LOG_FILE.format(first=self.recovery_of, second=self.second))


@dataclass(frozen=True)
class WeakerCut:
    """The same position of the log, cut with a device that asks less: what came of it."""

    profile: Profile
    """`ordered`, `lost` or `subset-4k`"""
    outcome: PointOutcome
    lost_transactions: int = 0
    """those of the acknowledged that are missing"""
    lost_ms: float | None = None
    """how long before the cut the first missing transaction was acknowledged"""
    problems: tuple[str, ...] = ()
    """findings, the gravest first"""


@dataclass(frozen=True)
class PointRecord:
    """What came of one cut. Times in seconds are None where that did not happen."""

    point: CutPoint
    """where and how the power was cut"""
    outcome: PointOutcome
    flush_position: int | None
    """the last flush before the cut that counts; null without one in the window"""
    volatile_writes: int
    """writes after the last flush, which were at risk"""
    volatile_bytes: int
    """bytes of these writes"""
    kept_writes: int
    """those of these writes that are wholly or partly on the medium"""
    acknowledged: int
    """transactions acknowledged before the cut"""
    volatile_discards: int = 0
    """discards after the last flush, each of which the device may have done or not; 0 in records older than such draws"""
    lost_transactions: int = 0
    """those of the acknowledged that are missing"""
    lost_ms: float | None = None
    """how long before the cut the first missing transaction was acknowledged"""
    consistent: bool | None = None
    """whether what is there is whole; null where nothing could be asked"""
    mount_s: float | None = None
    """time of mounting, with the journal's recovery; null where that did not happen"""
    fsck_s: float | None = None
    """time of the repair; null where there was none"""
    engine_start_s: float | None = None
    """time of the engine's start, with its recovery; null where it did not start"""
    oracle_s: float | None = None
    """time of the questions; null where nothing could be asked, or a checker of others gave no answer"""
    unclean: bool | None = None
    """whether a check of the unmounted file system found errors though it had mounted and the engine been asked; null where none was
    made"""
    replay_failed: bool = False
    """whether the file system's repair could not replay its journal, by its own words, and went on without"""
    failed_once: str | None = None
    """what ended a first look at the image, where a second one, at the image built again, went well. A mount that failed, or an engine
    that did not answer in time. It is no finding, as it did not come from the image; else null"""
    problems: tuple[str, ...] = ()
    """findings, the gravest first; where the file system had to be repaired, its own words and the repair's
    before the engine's"""
    unacknowledged: int = 0
    """transactions that are there and were never acknowledged: at most the one of each client that was under way; 0 in older records"""
    false_failures: int = 0
    """those of them that the writer of somebody's own engine reported as failed"""
    kernel_said: tuple[str, ...] | None = None
    """what the file system complained of in the kernel's log while the image was mounted and asked, each once; for ZFS also what
    `zpool status` counts. Null where nobody listened, as of all cuts: they listen only behind faults. Null too where the log
    cannot be read, or messages were lost and none of the others is a complaint"""
    engine_said: tuple[str, ...] = ()
    """what the log of an engine that worked on said of errors of the disk; empty of an engine without a log, and in older records"""
    pages: RecoveredPages | None = None
    """of the whole of a recovery: how the pages of the server that recovered came to the file system. Null of every other cut, and where
    neither `untorn_writes` nor a `device_unit` asks for it"""
    weaker: WeakerCut | None = None
    """of a bad cut: the first of `ordered`, `lost`, `subset-4k` that asks less of a file system and with which this position is bad too. Null where
    it is bad only with its own profile, of good cuts and controls, and in older records, where nobody looked"""
    recovery_writes: int | None = None
    """of the whole of a recovery: the writes and discards that it consists of; null of every other cut, and in older records"""

    @property
    def volatile_changes(self) -> int:
        """All that was at risk: each write and each discard is kept or not."""
        return self.volatile_writes + self.volatile_discards


@dataclass(frozen=True)
class RecordingFacts:
    """What was recorded. Entries, flushes and bytes are those after `measured_from`."""

    entries: int
    """entries of the log"""
    measured_from: int
    """the entry at which the clients began; no cut is before it"""
    writes: int
    """writes to the disk and to an external journal"""
    flushes: int
    """flushes of the disk"""
    discards: int
    """discards"""
    write_bytes: int
    """bytes of the writes"""
    acknowledged: int
    """transactions that were acknowledged"""
    clients: int
    """sessions at once"""
    seconds: float
    """how long the clients worked"""
    window_bytes: int
    """the most that the device's cache holds"""
    image_bytes: int
    """size of the disk"""
    journal_flushes: int | None = None
    """flushes of the external journal; null without one"""
    loses_journal: bool = False
    """whether that is in memory and is gone after each cut"""
    bound_ms: float | None = None
    """how long before a cut a bounded loss may begin, as the engine's settings say"""
    bound_transactions: int | None = None
    """how many transactions it may take; null in both: no loss is called bounded"""
    foreign_syncs: int | None = None
    """calls of sync(2) by any program of the machine while it was recorded, each of which committed the recorded
    file system; null where they were not counted, as in older recordings"""
    pressure_from: int | None = None
    """the entry from which on a neighbour wrote to the file system too; null where none did"""
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    """settings of the engine, its version, the kernel; `foreign_syncs`, `writers` and `pressure` only where counting, looking or
    the neighbour did not work, and why"""
    sought: int | None = None
    """cuts where metadata waits, or behind a flush that met writes on their way; null in records older than such cuts"""
    sought_left_out: int | None = None
    """cuts that were to be sought and were not made: `waiting` is empty, or else none of the run's profiles tears a write; null in older
    records"""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """spans of the log in which metadata waits that a cut can tear, by its kind; `write in flight at a flush` are those behind a
    flush that met writes on their way"""
    placed: int | None = None
    """cuts behind commits of the file system, and where file blocks are written over; null in records older than such cuts"""
    order: Mapping[str, int] = field(default_factory=dict)
    """spans of the log for these, by the two changes of the engine's that they may come between: `unlink, then rename` are those behind a commit
    that may have the one and not the other"""
    states: int | None = None
    """cuts of states that were enumerated; null where none were asked for"""
    small_states: int | None = None
    """how many states the windows of up to 12 writes have together; null where none were asked for"""
    long_writes: int | None = None
    """writes of more than 4 KiB; null where the device has no unit that it writes whole"""
    uncovered_writes: int | None = None
    """those of them that are longer than the unit, no power of two, or not aligned to themselves: they may tear"""
    through_writes: int | None = None
    """writes that went past the cache (FUA), as the kernel was seen to ask for; null where the device has no FUA"""
    writers: int | None = None
    """writes whose process was seen and is in the log; null where none was looked for, as in older records, or could not be"""
    log_bytes: int | None = None
    """size of the log, which `log.xz` is unpacked to and to no more; null in older records"""
    whole_log: PointOutcome | None = None
    """what was found on the whole log, which nothing cut: of somebody's own engine before a cut was judged, of others where a cut in order
    was bad. Null where that was not asked"""
    without_cut: tuple[str, ...] = ()
    """what was missing or damaged there against the engine's promise, the gravest first: no cut was judged then; empty else"""
    all_flushes: int | None = None
    """flushes of the disk in the whole log, those of mkfs and the mount too: without any, the recorder was never asked for one; null in older
    records"""
    recoveries: tuple[int, ...] = ()
    """numbers of the cuts whose recovery is recorded and cut again, unless they are bad themselves"""
    pages: PageFacts | None = None
    """how the server's pages came to the file system; null where neither `untorn_writes` nor a `device_unit` asks for it"""
    free_space: tuple[FreeSpace, ...] = ()
    """free space of the recorded disk before the engine's data, with them and after the clients, where the plan asks for `aged` or `fill`"""
    aged: AgedCopy | None = None
    """the aged file system that the recorded disk began as; null where the plan asks for none, and in older records"""


CACHE_OF_PROFILE: Mapping[Profile, str] = {
    Profile.SUBSET_4K: VOLATILE_4K,
    Profile.WHOLE: VOLATILE_4K,
    Profile.LOST: VOLATILE_4K,
    Profile.SUBSET_8K: VOLATILE_4K,
    Profile.SUBSET_16K: VOLATILE_4K,
    Profile.UNTORN_8K: VOLATILE_4K,
    Profile.UNTORN_16K: VOLATILE_4K,
    Profile.SUBSET_512: VOLATILE_512,
    Profile.ORDERED: PROTECTED,
}
