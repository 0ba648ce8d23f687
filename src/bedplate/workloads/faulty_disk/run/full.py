"""Takes all the room of a file system, as somebody else's file would: allocated where the kernel allocates, else written.

ext2, ext3, NILFS2 and JFS have no fallocate(2). glibc's emulation of it writes a byte into each block and reads what is there, so it is not
asked. ZFS answers that call for a file that has no block behind it. Written blocks are random, as ZFS and Btrfs would compress others away,
and nothing syncs them: these types take the room, or refuse it, at the write.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
from typing import TYPE_CHECKING

from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PIECE_BYTES = 4096
_WRITTEN_BYTES = MIB
_SECTOR = 512
# Room that was given back.
_ROOM_COMES_BACK_S, _ASK_EVERY_S = 10.0, 0.5
_IS_NOT_ALLOCATED = (errno.EOPNOTSUPP, errno.ENOSYS)


class BallastTooLong(Exception):
    """What would have to be written has no room in the recorder's log: then nothing is filled, and there is no result."""


class Filler:
    """One file, open to write, that grows from 0; `writable_bytes` is what may be written, where it has to be."""

    def __init__(self, file: int, *, writable_bytes: Callable[[], int]) -> None:
        self._file, self._writable_bytes = file, writable_bytes
        self._end, self._random, self._was_refused = 0, b"", False

    @property
    def writes(self) -> bool:
        """Whether it is written, as the file system allocates nothing ahead."""
        return bool(self._random)

    @property
    def leaves_nothing(self) -> bool:
        """Whether others find no room: a small piece was refused, or less than one is left to those who are not root.

        What is kept for root (5 % of ext2 to ext4) is taken last, and engines do not run as root.
        """
        room = os.fstatvfs(self._file)
        return self._was_refused or room.f_bavail * room.f_frsize < _WRITTEN_BYTES

    def fill(self, is_over: Callable[[], bool]) -> bool:
        """Take what is free now; whether nothing was left before `is_over`. BallastTooLong before anything was written."""
        if not self.writes:
            filled = self._in_pieces(self._free_bytes(), self._allocate, is_over)
            if filled is not None:
                return filled
            self._begin_to_write()
        return bool(self._in_pieces(_WRITTEN_BYTES, self._write, is_over))

    def _in_pieces(
        self, length: int, take: Callable[[int], int | None], is_over: Callable[[], bool]
    ) -> bool | None:
        """Ever smaller ones, until the smallest finds no room; None where pieces cannot be taken in this way."""
        length = max(_PIECE_BYTES, length)
        while length >= _PIECE_BYTES:
            if is_over():
                return False
            try:
                taken = take(length)
            except InterruptedError:
                continue
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                # Much may be left where a large piece finds no room.
                self._was_refused |= length <= _WRITTEN_BYTES
                length //= 2
                continue
            if taken is None:
                return None
            self._end += taken
        return True

    def _allocate(self, length: int) -> int | None:
        """By the call itself. None where there is none, or where the file does not have the blocks."""
        try:
            allocate(self._file, self._end, length)
        except OSError as error:
            if error.errno in _IS_NOT_ALLOCATED:
                return None
            raise
        # A call that found too little may have left blocks, so all are counted; half, as nothing says that a count is exact.
        if 2 * _SECTOR * os.fstat(self._file).st_blocks >= self._end + length:
            return length
        os.ftruncate(self._file, self._end)
        return None

    def _begin_to_write(self) -> None:
        """Before the first byte: a log that is full ends the recording, and not the file system."""
        free, room = self._free_bytes(), self._writable_bytes()
        if free > room:
            raise BallastTooLong(
                f"the file system allocates nothing ahead (fallocate), so {format_size(free)} would have to be written, and the "
                f"recorder's log has room for {format_size(max(0, room))}; make `image_size` smaller, or the tmpfs of the log larger"
            )
        self._random = os.urandom(_WRITTEN_BYTES)

    def _write(self, length: int) -> int:
        return os.pwrite(self._file, self._random[:length], self._end)

    def _free_bytes(self) -> int:
        room = os.fstatvfs(self._file)
        return room.f_bfree * room.f_frsize


def allocate(file: int, start: int, length: int) -> None:
    """fallocate(2) and no emulation of it; OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(file, 0, ctypes.c_int64(start), ctypes.c_int64(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def takes_a_write(place: Path) -> bool:
    """Whether the file system makes a file and syncs it, or has no room for one.

    By that file alone: syncfs(2) would give the error that the disk had. Room that was given back may come a moment later. One that says
    that it has room, and gives none, takes no write.
    """
    probe, never, until = place / "probe", threading.Event(), time.monotonic() + _ROOM_COMES_BACK_S
    while True:
        try:
            with probe.open("wb") as file:
                file.write(b"probe")
                file.flush()
                os.fsync(file.fileno())
            probe.unlink()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                return False
            if time.monotonic() > until:
                return not _has_room(place)
            never.wait(_ASK_EVERY_S)
        else:
            return True


def _has_room(place: Path) -> bool:
    try:
        room = os.statvfs(place)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize >= MIB
