"""What is written down of each fault that was tried."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bedplate.model.free_space import AgedCopy  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.power_cut import PointOutcome  # noqa: TC001 -- the codec asks for the types of a record's fields

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
    the file system took no more writes until it was mounted anew. `hung, whole`: the same, and the clients did not end when they should, so
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
    """what the clients saw"""
    writable: bool
    """whether the file system took a write once the fault was over, or had no room for one"""
    came_back: bool | None
    """whether the server answered and wrote a checkpoint once the fault was over; null of a library, and where the log lost or changed
    something in silence: a checkpoint makes it needless"""
    verdict: FaultVerdict
    """what came of it"""
    detected: tuple[Detected, ...]
    """who said that something was wrong; empty: nobody"""
    acknowledged: int
    """transactions that were acknowledged"""
    lost_transactions: int
    """those of them that are missing; damage that cannot be counted is none of them"""
    left: PointOutcome
    """what was found once the file system was mounted anew, as of a cut"""
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
    """what was found once the file system was mounted anew: its words, the repair's, the engine's, the oracle's"""
    no_result: str | None = None
    """why it is no result; null where it is one"""
    aged: AgedCopy | None = None
    """the aged file system that its disk began as; null where the plan asks for none, and in older records"""

    @property
    def is_result(self) -> bool:
        """Whether it says anything of file system and engine."""
        return self.verdict.is_result


RECORDS = (FaultRecord,)
