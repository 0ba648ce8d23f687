"""Power cuts: what a run of them consists of, by the names that plans, visits, records and figures share.

A short run is recorded on a device that logs every write, flush and discard. The log is then cut at many
positions, each position is replayed into an image of what the medium would have held, and what stands on it is asked
for the transactions that were acknowledged before the cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bedplate.model.levels import Scalar
from bedplate.units import GIB, MIB

WORKLOAD = "power_cut"

# Files in the run's folder: one JSON object per line and point; the facts of the recording; the log itself, packed
# (xz), which is kept where a point failed that is no control, and of a good run as `keep_logs` says.
POINTS_FILE = "points.jsonl"
RECORDING_FILE = "recording.json"
LOG_FILE = "log.xz"

# Level `engine` of a dataset of this workload: `postgresql` or `lmdb`, as in `model/engines.py`.
ENGINE = "engine"
# Level `ram_journal` of a dataset: what becomes of an external journal in RAM at the cut. It is lost, unless it is kept to
# stand for one on a device of its own.
RAM_JOURNAL = "ram_journal"
JOURNAL_LOST = "lost"
JOURNAL_KEPT = "kept"


# What a plan gets that says nothing. The disk is sparse, and so large that no file system lacks room for its metadata: on 512
# MiB, Btrfs commits an engine's page by halves. The duration has what file systems do of themselves every few seconds.
IMAGE_BYTES = 4 * GIB
DURATION_S = 20.0
# The types that do so on a smaller disk (docs/POWER_CUTS.md).
SHORT_OF_METADATA = ("btrfs",)
POINTS_DEFAULT = 160

# Level `keep_logs` of a run: whether the log of a run without a bad cut is kept. `small`: if it packs to this much or less.
KEEP_SMALL = "small"
KEEP_ALL = "all"
KEEP_BAD = "bad"
SMALL_LOG_BYTES = 32 * MIB


class Profile(Enum):
    """What a device makes of the writes after its last flush.

    `subset-4k` and `subset-512` keep each block of that size, or not, by chance: a cache that writes back in any order
    and tears what it was writing. `whole` keeps each write whole, or not. `lost` keeps none. `ordered` keeps all, in
    order: a cache that power cannot take, or a machine that was killed.
    """

    SUBSET_4K = "subset-4k"
    SUBSET_512 = "subset-512"
    WHOLE = "whole"
    LOST = "lost"
    ORDERED = "ordered"


# Cuts at which metadata waits, besides those that are drawn.
SOUGHT_POINTS = 24
VOLATILE_PROFILES = (Profile.SUBSET_4K, Profile.SUBSET_512, Profile.WHOLE, Profile.LOST)
DEFAULT_PROFILES = (Profile.SUBSET_4K, Profile.SUBSET_512, Profile.LOST, Profile.ORDERED)


class Placement(Enum):
    """How a position was chosen: any entry alike, or the likelier the more writes wait for a flush there.

    `sought` lie where metadata of the file system waits that a cut can tear within 4 KiB. They show that a loss can happen;
    how many of them are bad says nothing of how often.
    """

    UNIFORM = "uniform"
    WEIGHTED = "weighted"
    SOUGHT = "sought"


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
class CutPoint:
    """Where and how the power is cut; with the log it decides the image bit for bit.

    `position` counts the log's entries that were issued before the cut. `seed` draws what is kept of the volatile ones. A
    `control` ignores the flushes in the log, as if the device had lied: it must be bad, or the oracle sees nothing.
    """

    number: int
    position: int
    profile: Profile
    placement: Placement
    seed: int
    control: bool = False


@dataclass(frozen=True)
class PointRecord:
    """What came of one cut.

    `flush_position` is the last flush before it that counts, None without one in the window. `volatile_writes`,
    `volatile_bytes` and `kept_writes` speak of the writes after it. `acknowledged` are transactions acknowledged before
    the cut, `lost_transactions` those of them that are missing, `lost_ms` how long before the cut the first of these was
    acknowledged. `consistent` is None where nothing could be asked. Times in seconds are None where that did not
    happen. `replay_failed` says that the type's repair could not replay the journal, in its own words, and went on without.
    `problems` are the findings, those of the file system and its repair before the engine's, each the gravest first.
    """

    point: CutPoint
    outcome: PointOutcome
    flush_position: int | None
    volatile_writes: int
    volatile_bytes: int
    kept_writes: int
    acknowledged: int
    lost_transactions: int = 0
    lost_ms: float | None = None
    consistent: bool | None = None
    mount_s: float | None = None
    fsck_s: float | None = None
    engine_start_s: float | None = None
    oracle_s: float | None = None
    replay_failed: bool = False
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordingFacts:
    """What was recorded. Entries, flushes and bytes are those after `measured_from`, the entry at which clients began.

    `journal_flushes` is None without an external journal. `window_bytes` bounds what a device's cache holds. `bound_ms` and
    `bound_transactions` are what the engine's settings call a bounded loss, None where they promise none at all.
    `loses_journal`: an external journal stands in memory and is gone after each cut. `foreign_syncs` are calls of sync(2) by
    anybody, each of which committed this file system; None where they were not counted, as in older recordings.
    `pressure_from` is the entry from which on other files of the file system were written too.
    `sought` is how many cuts were made where metadata waits, None in records of before there were such; `waiting` counts
    the spans of the log where some does, by kind.
    """

    entries: int
    measured_from: int
    writes: int
    flushes: int
    discards: int
    write_bytes: int
    acknowledged: int
    clients: int
    seconds: float
    window_bytes: int
    image_bytes: int
    journal_flushes: int | None = None
    loses_journal: bool = False
    bound_ms: float | None = None
    bound_transactions: int | None = None
    foreign_syncs: int | None = None
    pressure_from: int | None = None
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    sought: int | None = None
    waiting: Mapping[str, int] = field(default_factory=dict)
