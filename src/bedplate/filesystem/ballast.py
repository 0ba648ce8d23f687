"""Files that fill a mounted file system to an asked share: most of them before the database comes, the rest behind it.

They are allocated and not written, and nobody reads them. The share is df's: used / (used + available to others than root).
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.errors import VerifyFailed
from bedplate.filesystem.comparison import FILL_FACT
from bedplate.filesystem.free_extents import write_back
from bedplate.model.visit import ReadBack
from bedplate.units import MIB, format_size, percent

if TYPE_CHECKING:
    from pathlib import Path

BALLAST_FOLDER = "ballast"
# So near is near enough, both ways; files come and go until then.
_NEAR = 0.002
_ALLOWED = 0.01
_STEPS_MOST = 40
_SMALLEST_BYTES = MIB


@dataclass(frozen=True)
class Filling:
    """What a file system has room for and what of it is in use, in bytes, as df counts."""

    used_bytes: int
    room_bytes: int

    @property
    def share(self) -> float:
        """In use / room."""
        return self.used_bytes / self.room_bytes


def filling_of(mount_point: Path) -> Filling:
    """By statvfs, when everything was written back."""
    write_back(mount_point)
    space = os.statvfs(mount_point)
    used = (space.f_blocks - space.f_bfree) * space.f_frsize
    return Filling(used, used + space.f_bavail * space.f_frsize)


@dataclass
class Ballast:
    """Below one mount point; `share` is how full the file system is to be with the database."""

    mount_point: Path
    share: float
    _sizes: list[int] = field(default_factory=list)

    def before_load(self, expected_bytes: int) -> None:
        """Fill it, but for as much as the database takes; VerifyFailed where it is fuller than that by itself."""
        (self.mount_point / BALLAST_FOLDER).mkdir(mode=0o700)
        room = filling_of(self.mount_point).room_bytes
        target = self.share - expected_bytes / room
        if target <= 0:
            raise VerifyFailed(
                f"filesystem.fill: {percent(self.share)} of {format_size(room)} is less than the {format_size(expected_bytes)} that the visit "
                "needs by itself; use a smaller device, or more data"
            )
        self._approach(target)

    def after_load(self) -> ReadBack:
        """Come and go until it is as full as was asked; VerifyFailed, with what it is, where it does not get there."""
        self._approach(self.share)
        found = filling_of(self.mount_point).share
        # In whole percents, as two visits of one configuration differ in the pages of a log.
        read = ReadBack(
            FILL_FACT,
            percent(self.share),
            percent(found),
            "statvfs",
            abs(found - self.share) <= _ALLOWED,
        )
        if not read.matches:
            way = "less data or a larger device" if found > self.share else "another type or another fill"
            raise VerifyFailed(
                f"{FILL_FACT}: asked {read.asked}, it came to {percent(found, digits=1)} (statvfs); use {way}"
            )
        return read

    def _approach(self, target: float) -> None:
        for _ in range(_STEPS_MOST):
            now = filling_of(self.mount_point)
            lacking = round(target * now.room_bytes) - now.used_bytes
            if abs(lacking) <= _NEAR * now.room_bytes:
                return
            if lacking > 0:
                # By halves: what one file takes of metadata besides is then made good by the next.
                if not self._add(max(_SMALLEST_BYTES, lacking // 2)):
                    return
            elif self._sizes:
                self._take_away()
            else:
                return

    def _add(self, size_bytes: int) -> bool:
        """False where the file system has no room for it."""
        file = os.open(self._path(len(self._sizes)), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, size_bytes)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            os.ftruncate(file, 0)
            return False
        finally:
            os.close(file)
        self._sizes.append(size_bytes)
        return True

    def _take_away(self) -> None:
        self._sizes.pop()
        path = self._path(len(self._sizes))
        # XFS gives back what a deleted file had some time later, and what was cut off it at once.
        os.truncate(path, 0)
        path.unlink()

    def _path(self, number: int) -> Path:
        return self.mount_point / BALLAST_FOLDER / f"{number:03d}"
