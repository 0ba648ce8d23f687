"""Room in memory for the images of cuts.

A loop device over a file of a tmpfs that is full answers with EIO, which looks to the engine above like a disk that
breaks. So room is demanded before a point is examined, and looked for again before a bad one is believed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# What the recovery of file system and engine writes beside what the cut left: some WAL, a log, a checkpoint.
RECOVERY_BYTES = 64 * MIB
# What must be left of it when a point has been judged.
_LEFT_BYTES = RECOVERY_BYTES // 4


class NoRoomForImages(BedplateError):
    """The memory for images ran out, or nearly: nothing that was seen on them may be judged."""

    code = "memory-for-images-short"


@dataclass(frozen=True)
class Room:
    """The free room of `directory`, in which so many workers hold an image each."""

    directory: Path
    workers: int

    def demand(self, images: Iterable[Path]) -> None:
        """Before these images are examined: for what recovery adds to them, and for as much of every other worker."""
        own_bytes = allocated_bytes(images)
        self._require(self._others(own_bytes) + RECOVERY_BYTES, "a cut is not examined without")

    def demand_still(self, images: Iterable[Path]) -> None:
        """After a bad point, whose images are still there; others may just have given theirs back."""
        own_bytes = allocated_bytes(images)
        self._require(
            self._others(own_bytes) + _LEFT_BYTES, "a cut that was found bad is not believed without"
        )

    def _others(self, own_bytes: int) -> int:
        return (self.workers - 1) * (own_bytes + RECOVERY_BYTES)

    def _require(self, needed_bytes: int, why: str) -> None:
        room = os.statvfs(self.directory)
        free_bytes = room.f_bavail * room.f_frsize
        if free_bytes < needed_bytes:
            raise NoRoomForImages(
                f"{self.directory} has {format_size(free_bytes)} free, and {why} {format_size(needed_bytes)}: "
                "make that tmpfs larger, or record less (duration, image_size)"
            )


def allocated_bytes(images: Iterable[Path]) -> int:
    """What sparse files take."""
    return sum(512 * path.stat().st_blocks for path in images)
