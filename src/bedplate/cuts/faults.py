"""A disk that fails: what its recorder is ordered to answer otherwise than it should, and what a try of each fault came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import Path
from typing import ClassVar

from bedplate.cuts.points import read_record_lines
from bedplate.cuts.records import PointOutcome
from bedplate.model.free_space import AgedCopy

# What the recorder takes (FAULT_RANGES_MOST). An order is one write(2), which the kernel hands over in one piece up to 128 KiB: that are as
# many ranges of a disk of 64 TiB.
RANGES_MOST = 4096


class FaultOperation(Enum):
    """The requests that fail."""

    WRITE = "write"
    FLUSH = "flush"
    READ = "read"


class FaultEffect(Enum):
    """What becomes of them: an error; a write that is answered as done and is not, or is done 1 MiB off; a read that fails until its place is written."""

    EIO = "eio"
    ENOSPC = "enospc"
    LOST = "lost"
    MISDIRECTED = "misdirected"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, order=True)
class ByteRange:
    """A piece of a disk, in bytes."""

    start: int
    length: int


@dataclass(frozen=True)
class FaultOrder:
    """`hits` requests fail, 0 all from now on, once `skip` of those that would have been hit have passed.

    `ranges` are the places of the device; none: anywhere. The device is the disk, or that of an external journal.
    """

    operation: FaultOperation
    effect: FaultEffect = FaultEffect.EIO
    hits: int = 0
    skip: int = 0
    ranges: tuple[ByteRange, ...] = ()
    on_journal: bool = False

    def line(self) -> str:
        """As the recorder reads it."""
        words = (self.operation.value, self.effect.value, str(self.hits), str(self.skip))
        return " ".join((*(["journal"] if self.on_journal else []), *words, *_words(self.ranges)))


def moved_line(ranges: Iterable[ByteRange]) -> str:
    """The same order at other places."""
    return " ".join(("ranges", *_words(ranges)))


CLEAR_LINE = "clear"


def _words(ranges: Iterable[ByteRange]) -> list[str]:
    found = [f"{each.start}+{each.length}" for each in ranges]
    # A part of them would be another fault than the one that is named.
    if len(found) > RANGES_MOST:
        raise ValueError(f"{len(found)} ranges; an order takes {RANGES_MOST}")
    return found


class Place(Enum):
    """Where on the disk: blocks of the engine's log, of its data files, or any; all others are the file system's own.

    `metadata` is what it keeps in fixed places, but for its journal, and of NILFS2 what the newest piece of its log has; `inode` those of
    the engine's files.
    """

    LOG = "log"
    DATA = "data"
    ANYWHERE = "anywhere"
    JOURNAL = "journal"
    METADATA = "metadata"
    SUPERBLOCK = "superblock"
    INODE = "inode"


@dataclass(frozen=True)
class DiskFault:
    """Requests of the disk that fail while clients write: `hits` of them, 0 all from the moment on."""

    name: str
    operation: FaultOperation
    effect: FaultEffect
    hits: int
    place: Place
    stays: bool = False
    """whether it lasts until nothing is mounted any more"""

    @property
    def is_quiet(self) -> bool:
        """Whether the disk says nothing of it."""
        return self.effect in (FaultEffect.LOST, FaultEffect.MISDIRECTED)

    @property
    def words(self) -> str:
        """For a person."""
        what = {
            FaultEffect.EIO: f"{self.operation.value} fails with EIO",
            FaultEffect.ENOSPC: "write fails with ENOSPC",
            FaultEffect.LOST: "write is lost",
            FaultEffect.MISDIRECTED: "write goes elsewhere",
        }[self.effect]
        where = "" if self.operation is FaultOperation.FLUSH else f", {_PLACE_WORDS[self.place]}"
        return f"{'one' if self.hits else 'every'} {what}{where}"


@dataclass(frozen=True)
class Rot:
    """`length` bytes at rest that change between the engine's stop and its start; 0: a single bit.

    Of an `is_unreadable` one the disk's block is lost: each read of it fails, until it is written.
    """

    name: str
    length: int
    place: Place
    is_unreadable: bool = False
    is_quiet: ClassVar[bool] = True

    @property
    def words(self) -> str:
        """For a person."""
        what = (
            "a block cannot be read any more"
            if self.is_unreadable
            else f"{_ROT_WORDS[self.length]} changes at rest"
        )
        return f"{what}, {_PLACE_WORDS[self.place]}"


@dataclass(frozen=True)
class FullFilesystem:
    """Somebody else fills the file system, and gives the room back."""

    name: str
    is_quiet: ClassVar[bool] = False
    words: str = "file system full for a second"


@dataclass(frozen=True)
class NoFault:
    """Nothing fails."""

    name: str
    is_quiet: ClassVar[bool] = False
    words: str = "no fault"


Fault = DiskFault | Rot | FullFilesystem | NoFault

_PLACE_WORDS = {
    Place.LOG: "in the log",
    Place.DATA: "in the data",
    Place.ANYWHERE: "anywhere",
    Place.JOURNAL: "in the file system's journal",
    Place.METADATA: "in its metadata",
    Place.SUPERBLOCK: "in the superblock",
    Place.INODE: "in an inode of the engine's",
}

_ROT_LENGTHS = {"bit": 0, "sector": 512, "block": 4096}
_ROT_WORDS = {0: "one bit", 512: "a sector", 4096: "a block"}
_TIMES = {"once": 1, "on": 0}

# The controls: with the first all must be whole, with the second something must be missed, or the oracle sees nothing. The second
# lasts to the end: what was written behind it would damage the file system, which refuses before the oracle is asked.
CONTROL_WHOLE = NoFault("control-none")

CONTROL_LOST = DiskFault(
    "control-lost", FaultOperation.WRITE, FaultEffect.LOST, hits=0, place=Place.ANYWHERE, stays=True
)

# Where writes go while clients write, and where bytes lie at rest.
_WRITTEN = (Place.LOG, Place.DATA, Place.JOURNAL, Place.METADATA, Place.ANYWHERE)

_AT_REST = (Place.LOG, Place.DATA, Place.SUPERBLOCK, Place.JOURNAL, Place.METADATA, Place.INODE)


def _disk_faults() -> list[Fault]:
    found: list[Fault] = []
    write, read = FaultOperation.WRITE, FaultOperation.READ
    for (times, hits), place in product(_TIMES.items(), _WRITTEN):
        found.append(DiskFault(f"write-{times}-{place.value}", write, FaultEffect.EIO, hits, place))
    for times, hits in _TIMES.items():
        name = f"flush-{times}"
        found.append(DiskFault(name, FaultOperation.FLUSH, FaultEffect.EIO, hits, Place.ANYWHERE))
        found.append(DiskFault(f"read-{times}-data", read, FaultEffect.EIO, hits, Place.DATA))
    found.append(DiskFault("no-space", write, FaultEffect.ENOSPC, 0, Place.ANYWHERE))
    for effect, place in product((FaultEffect.LOST, FaultEffect.MISDIRECTED), _WRITTEN):
        found.append(DiskFault(f"{effect.value}-once-{place.value}", write, effect, 1, place))
    return found


def _all_faults() -> dict[str, Fault]:
    rot = (
        Rot(f"rot-{unit}-{place.value}", length, place)
        for (unit, length), place in product(_ROT_LENGTHS.items(), _AT_REST)
    )
    unreadable = (
        Rot(f"unreadable-{place.value}", _ROT_LENGTHS["block"], place, is_unreadable=True)
        for place in _AT_REST
    )
    found = (*_disk_faults(), *rot, *unreadable, FullFilesystem("full"))
    return {fault.name: fault for fault in found}


FAULTS: Mapping[str, Fault] = _all_faults()
CONTROLS: Mapping[str, Fault] = {control.name: control for control in (CONTROL_WHOLE, CONTROL_LOST)}

# What a plan gets that says nothing.
DEFAULT_FAULTS = (
    "write-once-log",
    "write-once-data",
    "write-once-anywhere",
    "write-on-anywhere",
    "flush-once",
)


def fault_named(name: str) -> Fault:
    """A fault or a control; KeyError for none."""
    return CONTROLS.get(name) or FAULTS[name]


TRIES_FILE = "faults.jsonl"


class Seen(Enum):
    """What the engine's clients saw while the disk failed."""

    WENT_ON = "went on"
    STOPPED = "stopped"
    HUNG = "hung"


class Detected(Enum):
    """Who said that something was wrong, then or afterwards: the file system, the engine; without one of them nobody."""

    FILE_SYSTEM = "file system"
    ENGINE = "engine"


class FaultVerdict(Enum):
    """What comes of a fault, from best to worst.

    `went on, whole` and `stopped, whole`: every acknowledged transaction is there, and nothing else. `read-only, whole`: the same, and
    the file system took no more writes until it was mounted again. `hung, whole`: the same, and the clients did not end when they should, so
    they were killed. `repaired, whole`: the same after a repair by fsck. `bounded
    loss`: whole, but for the last transactions, no more than the engine's settings call lost. `lost, detected`:
    something acknowledged is gone or damaged, and the engine or the file system refuses it, or the engine's log names an error of the disk of
    what is left. `lost, silent`: the engine works on what is left, and only the oracle sees it, whatever was said when the disk failed.

    Two are no result. `no trace`: the disk lost or changed something in silence, and nobody missed it: it was written again, never
    read, or replaced by a copy. `not hit`: nothing met the fault, or something else than it is of, or nothing had been acknowledged.
    """

    WENT_ON = "went on, whole"
    STOPPED = "stopped, whole"
    READ_ONLY = "read-only, whole"
    HUNG = "hung, whole"
    REPAIRED = "repaired, whole"
    BOUNDED = "bounded loss"
    LOST_DETECTED = "lost, detected"
    LOST_SILENT = "lost, silent"
    NO_TRACE = "no trace"
    NOT_HIT = "not hit"

    @property
    def is_result(self) -> bool:
        """Whether it says anything of file system and engine."""
        return self not in (FaultVerdict.NO_TRACE, FaultVerdict.NOT_HIT)

    @property
    def is_lost(self) -> bool:
        """Whether something acknowledged is gone or damaged."""
        return self in (FaultVerdict.LOST_DETECTED, FaultVerdict.LOST_SILENT)


@dataclass(frozen=True)
class FaultRecord:
    """What came of one fault on a disk of its own."""

    number: int
    """which try of its run"""
    fault: str
    """its name in a plan; `control-none` and `control-lost` are the controls"""
    seed: int
    """draws what the clients do, when the fault comes, and where bytes rot"""
    hits: int
    """requests that met the fault, or changes of bytes at rest; 0: no result, but of `control-none`"""
    seen: Seen
    """what the clients saw: `went on`, `stopped`, `hung`"""
    writable: bool
    """whether the file system took a write once the fault was over, or had no room for one"""
    came_back: bool | None
    """whether the server answered and wrote a checkpoint once the fault was over; null of a library, and where the log lost or changed
    something in silence: a checkpoint makes it needless"""
    verdict: FaultVerdict
    """what came of it: `went on, whole`, `stopped, whole`, `read-only, whole`, `hung, whole`, `repaired, whole`, `bounded loss`,
    `lost, detected`, `lost, silent`, `no trace`, `not hit`"""
    detected: tuple[Detected, ...]
    """who said that something was wrong: `file system`, `engine`; empty: nobody"""
    acknowledged: int
    """transactions that were acknowledged"""
    lost_transactions: int
    """those of them that are missing; damage that cannot be counted is none of them"""
    left: PointOutcome
    """what was found once the file system was mounted again, as of a cut"""
    hit_at: int | None = None
    """where on the disk the first hit began, in bytes; null of none, of a flush, and of a full file system"""
    hit_bytes: int | None = None
    """how long that request was, or what changed at rest; null as `hit_at`"""
    hit_journal: bool = False
    """whether that is a place on the device of an external journal"""
    kernel_heard: bool = True
    """whether the kernel's log could be read; without it nobody knows what the file system said. False too where messages were lost and no
    complaint is among the others"""
    said: tuple[str, ...] = ()
    """what engine and kernel said while the disk failed, and for ZFS `zpool status`"""
    found: tuple[str, ...] = ()
    """what was found once the file system was mounted again: its words, the repair's, the engine's, the oracle's"""
    no_result: str | None = None
    """why it is no result; null where it is one"""
    aged: AgedCopy | None = None
    """the aged file system that its disk began as; null where the plan asks for none, and in older records"""
    false_failures: int | None = None
    """transactions that the engine reported as failed, and that are there once the file system is mounted again (Rebello et al., ATC'20); null
    of a server, whose connection breaks and reports nothing, and in older records"""

    @property
    def is_result(self) -> bool:
        """Whether it says anything of file system and engine."""
        return self.verdict.is_result


@dataclass(frozen=True)
class FaultTries:
    """`tried` are the faults, `controls` what shows that the oracle sees; `problems` are what is damaged."""

    tried: tuple[FaultRecord, ...] = ()
    controls: tuple[FaultRecord, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def by_fault(self) -> Mapping[str, tuple[FaultRecord, ...]]:
        """In the order in which they were tried first."""
        found: dict[str, list[FaultRecord]] = {}
        for record in self.tried:
            found.setdefault(record.fault, []).append(record)
        return {fault: tuple(records) for fault, records in found.items()}


def read_tries(run_directory: Path) -> FaultTries:
    """What cannot be read becomes a problem, and the rest is kept."""
    records, problems = read_record_lines(FaultRecord, run_directory / TRIES_FILE, missing="a try")
    return FaultTries(
        tuple(each for each in records if each.fault not in CONTROLS),
        tuple(each for each in records if each.fault in CONTROLS),
        problems,
    )


def counted(fault_records: Iterable[FaultRecord]) -> Mapping[FaultVerdict, int]:
    """How many tries had each verdict, the worst first; those that are no result last."""
    tally = Counter(record.verdict for record in fault_records)
    order = [
        *reversed([each for each in FaultVerdict if each.is_result]),
        *(each for each in FaultVerdict if not each.is_result),
    ]
    return {verdict: tally[verdict] for verdict in order if tally[verdict]}


_LOST = {
    PointOutcome.LOST: FaultVerdict.LOST_SILENT,
    PointOutcome.SILENT: FaultVerdict.LOST_SILENT,
    PointOutcome.DETECTED: FaultVerdict.LOST_DETECTED,
    PointOutcome.FILE_SYSTEM_LOST: FaultVerdict.LOST_DETECTED,
}


def verdict_of(
    last_outcome: PointOutcome,
    reaction: Seen,
    *,
    is_hit: bool,
    writable: bool,
    is_repaired: bool = False,
    is_bounded: bool = False,
    is_unseen: bool = False,
    is_said: bool = False,
    ended_early: bool = False,
) -> FaultVerdict:
    """`last_outcome` is what was found after the file system had been mounted again, which took a repair or not.

    A loss `is_bounded` by the engine's settings or not: they bound what an engine loses that stops or is killed, or that bedplate `ended_early`. What is
    missing behind a repair nobody takes for whole. A fault `is_unseen` where the disk was quiet about it and nobody said anything. A loss `is_said` where the
    engine's log has an error of the disk of what is left: who reads it knows, though the engine works on.
    """
    if not is_hit:
        return FaultVerdict.NOT_HIT
    if last_outcome in _LOST and is_repaired:
        return FaultVerdict.LOST_DETECTED
    if last_outcome is PointOutcome.LOST and is_bounded and (reaction is not Seen.WENT_ON or ended_early):
        return FaultVerdict.BOUNDED
    if last_outcome in _LOST:
        return FaultVerdict.LOST_DETECTED if is_said else _LOST[last_outcome]
    if last_outcome is PointOutcome.NEEDS_FSCK:
        return FaultVerdict.REPAIRED
    if reaction is Seen.HUNG:
        return FaultVerdict.HUNG
    if not writable:
        return FaultVerdict.READ_ONLY
    if is_unseen and reaction is Seen.WENT_ON:
        return FaultVerdict.NO_TRACE
    return FaultVerdict.STOPPED if reaction is Seen.STOPPED else FaultVerdict.WENT_ON


def detected_by(
    last_outcome: PointOutcome,
    reaction: Seen,
    *,
    writable: bool,
    kernel_spoke: bool,
    engine_spoke: bool,
    is_repaired: bool = False,
) -> tuple[Detected, ...]:
    """Who said that something was wrong. `engine_spoke` says that it gave an error that stopped no client.

    A repair speaks for the file system where a mount had asked for it, and not where a check found that nobody makes.
    """

    def speakers() -> Iterator[Detected]:
        if kernel_spoke or is_repaired or not writable or last_outcome is PointOutcome.FILE_SYSTEM_LOST:
            yield Detected.FILE_SYSTEM
        if engine_spoke or reaction is Seen.STOPPED or last_outcome is PointOutcome.DETECTED:
            yield Detected.ENGINE

    return tuple(speakers())
