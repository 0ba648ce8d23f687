"""Room in memory for the images of cuts.

A loop device over a file of a tmpfs that is full answers with EIO, which looks to the engine above like a disk that
breaks. So room is demanded before a point is examined, and looked for again before a bad one is believed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.units import GIB, MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# What the recovery of file system and engine writes beside what the cut left: some WAL, a log, a checkpoint.
RECOVERY_BYTES = 64 * MIB
# A recording's log takes a share of the free memory: what the disks hold and the images of the workers take the others.
LOG_BYTES_MOST = 2 * GIB
_SHARE_OF_MEMORY = 4
# With less the disks cannot even be formatted, which looks like disks that break.
_LOG_BYTES_LEAST = 32 * MIB
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
        free = free_bytes(self.directory)
        if free < needed_bytes:
            raise NoRoomForImages(
                f"{self.directory} has {format_size(free)} free, and {why} {format_size(needed_bytes)}: "
                "make that tmpfs larger, or record less (duration, image_size)"
            )


def log_limit_bytes(memory: Path) -> int:
    """How large a recording's log in `memory` may be. NoRoomForImages where no recording can be made there."""
    free = free_bytes(memory)
    if free < _SHARE_OF_MEMORY * _LOG_BYTES_LEAST:
        raise NoRoomForImages(
            f"{memory} has {format_size(free)} free, and a recording needs "
            f"{format_size(_SHARE_OF_MEMORY * _LOG_BYTES_LEAST)}: make that tmpfs larger "
            "(/dev/shm of a container: --shm-size=4g)"
        )
    return min(LOG_BYTES_MOST, free // _SHARE_OF_MEMORY)


def free_bytes(directory: Path) -> int:
    """What may still be written to the file system of a folder."""
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize


def allocated_bytes(images: Iterable[Path]) -> int:
    """What sparse files take."""
    return sum(512 * path.stat().st_blocks for path in images)
