"""A file system is aged: files come, grow, are replaced and go until its free space no longer changes.

Files are allocated and not written (fallocate): what is in them matters to nobody, where they lie does. What is drawn depends on
the seed alone; where the file system puts it is its own affair.
"""

from __future__ import annotations

import errno
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.filesystem.free_extents import free_space_of, write_back
from bedplate.model.filesystem import AGE_PROFILES
from bedplate.units import KIB

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.filesystem import AgeProfile

# Where they all are, below the mount point; the engine's directory stands beside it.
AGE_FOLDER = "aged"
# A type spreads folders over its groups, and with them the files.
_FOLDERS = 64
_BLOCK_BYTES = 4 * KIB
# A round may change the mean piece of free space by so much, twice in a row, and it counts as settled.
_SETTLED_CHANGE = 0.05
_ROUNDS_MOST = 10
# Of what comes: the rest is new files.
_GROWS, _REPLACED = 0.2, 0.1
# So far above the share that is to be left no more is deleted: the rest is metadata.
_NEAR = 0.01
# statvfs costs as much as a file.
_FILES_BETWEEN_LOOKS = 64


@dataclass(frozen=True)
class AgedState:
    """What ageing came to: `rounds` of filling and deleting, whether the free space had `settled`, and how many files stay."""

    rounds: int
    settled: bool
    files: int


def age(kind: str, mount_point: Path, profile: str, seed: int) -> AgedState:
    """Age the file system of that type, which is mounted and empty; OSError where it takes no files before it is full."""
    return _Ageing(kind, mount_point, AGE_PROFILES[profile], random.Random(seed)).run()  # noqa: S311 -- drawn again from its seed


class _Ageing:
    def __init__(self, kind: str, mount_point: Path, profile: AgeProfile, drawn: random.Random) -> None:
        self._kind, self._mount_point, self._profile, self._drawn = kind, mount_point, profile, drawn
        self._sizes: dict[int, int] = {}
        self._names: list[int] = []
        self._next = 0
        space = os.statvfs(mount_point)
        self._size_bytes = space.f_blocks * space.f_frsize
        root = mount_point / AGE_FOLDER
        root.mkdir(mode=0o700)
        self._folders = tuple(root / f"{number:02d}" for number in range(_FOLDERS))
        for folder in self._folders:
            folder.mkdir(mode=0o700)

    def run(self) -> AgedState:
        """Rounds until it has settled, or no more are made."""
        before, calm, done = None, 0, 0
        while calm < 2 and done < _ROUNDS_MOST:
            done += 1
            self._fill()
            self._empty()
            mean = free_space_of(self._kind, self._mount_point, "").mean_bytes
            if mean is None:
                raise OSError(
                    errno.EOPNOTSUPP, "nothing tells the pieces of its free space", str(self._mount_point)
                )
            calm = calm + 1 if before is not None and abs(mean - before) <= _SETTLED_CHANGE * before else 0
            before = mean
        return AgedState(done, calm == 2, len(self._names))

    def _used_share(self) -> float:
        space = os.statvfs(self._mount_point)
        return 1 - space.f_bavail / space.f_blocks

    def _fill(self) -> None:
        while self._used_share() < self._profile.full_share:
            for _ in range(_FILES_BETWEEN_LOOKS):
                try:
                    self._come()
                except OSError as error:
                    if error.errno != errno.ENOSPC or len(self._names) < _FILES_BETWEEN_LOOKS:
                        raise
                    return

    def _come(self) -> None:
        """One file comes, grows, or is saved anew as editors do it."""
        choice = self._drawn.random()
        size = self._size()
        if choice < _GROWS and self._names:
            name = self._names[self._drawn.randrange(len(self._names))]
            _allocate(self._path(name), self._sizes[name], size)
            self._sizes[name] += size
        elif choice < _GROWS + _REPLACED and self._names:
            name = self._names[self._drawn.randrange(len(self._names))]
            fresh = self._path(name).with_suffix(".new")
            _allocate(fresh, 0, self._sizes[name])
            fresh.replace(self._path(name))
        else:
            _allocate(self._path(self._next), 0, size)
            self._sizes[self._next] = size
            self._names.append(self._next)
            self._next += 1

    def _empty(self) -> None:
        while self._names and (over := self._used_share() - self._profile.left_share) > _NEAR:
            self._delete(over * self._size_bytes)
            # Btrfs gives the room back with its next commit only.
            write_back(self._mount_point)

    def _delete(self, size_bytes: float) -> None:
        """Files at random, of so many bytes together."""
        while self._names and size_bytes > 0:
            at = self._drawn.randrange(len(self._names))
            self._names[at], name = self._names[-1], self._names[at]
            self._names.pop()
            size_bytes -= self._sizes.pop(name)
            self._path(name).unlink()

    def _size(self) -> int:
        """Small files are many: each doubling of the size is as likely."""
        smallest, largest = self._profile.smallest_bytes, self._profile.largest_bytes
        size: float = smallest * (largest / smallest) ** self._drawn.random()
        return max(1, round(size / _BLOCK_BYTES)) * _BLOCK_BYTES

    def _path(self, name: int) -> Path:
        return self._folders[name % _FOLDERS] / str(name)


def _allocate(path: Path, start: int, length: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, start, length)
    except OSError:
        if not start:
            path.unlink()
        raise
    finally:
        os.close(file)
