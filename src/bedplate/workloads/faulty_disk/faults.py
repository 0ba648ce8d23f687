"""The faults that a plan can name, by their names there: what fails, how often, and where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from bedplate.model.fault_order import FaultEffect, FaultOperation

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKLOAD = "faulty_disk"


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
