"""What the recorder's disk, or its journal, is ordered to answer otherwise than it should (drivers/power_cut_recorder.c has the words)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

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
