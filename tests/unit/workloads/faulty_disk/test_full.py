"""What fills a file system: allocated where the kernel does, written where it does not, and never longer than the clients are there."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import pytest

from bedplate.units import MIB
from bedplate.workloads.faulty_disk import visit
from bedplate.workloads.faulty_disk.visit import BallastTooLong, Filler

BLOCK = 4096
ROOM = 3 * MIB + 5 * BLOCK
Patch: TypeAlias = "Callable[[Room], Room]"


class Room:
    """A file system with `free` bytes: what its calls answer, and what a file took of it."""

    def __init__(self, free: int, *, allocates: bool | None, for_root: int = 0) -> None:
        self.free, self.allocates, self.for_root = free, allocates, for_root
        self.calls: list[str] = []
        self.written: list[bytes] = []
        self.size = self.blocks = 0

    def fstatvfs(self, _: int) -> SimpleNamespace:
        available = max(0, self.free - self.for_root)
        return SimpleNamespace(f_bfree=self.free // BLOCK, f_bavail=available // BLOCK, f_frsize=BLOCK)

    def fstat(self, _: int) -> SimpleNamespace:
        return SimpleNamespace(st_blocks=self.blocks, st_size=self.size)

    def allocate(self, _: int, start: int, length: int) -> None:
        """True: as ext4, which leaves what it found of too much; None: no such call; False: as ZFS, which has the size alone."""
        self.calls.append("allocate")
        if self.allocates is None:
            raise OSError(errno.EOPNOTSUPP, "no")
        if self.allocates is False:
            self.size = start + length
            return
        have = 512 * self.blocks
        lacking = max(0, start + length - have)
        got = min(lacking, self.free)
        self.free -= got
        self.blocks += got // 512
        if got < lacking:
            raise OSError(errno.ENOSPC, "no")
        self.size = start + length

    def pwrite(self, _: int, data: bytes, at: int) -> int:
        self.calls.append("write")
        self.written.append(data)
        assert self.size == at
        got = min(len(data), self.free) if len(data) <= BLOCK else len(data)
        if not got or got > self.free:
            raise OSError(errno.ENOSPC, "no")
        self.free -= got
        self.size += got
        self.blocks += got // 512
        return got

    def ftruncate(self, _: int, length: int) -> None:
        self.size = length


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> Patch:
    def patch(room: Room) -> Room:
        calls = {name: getattr(room, name) for name in ("fstatvfs", "fstat", "pwrite", "ftruncate")}
        monkeypatch.setattr(visit, "os", SimpleNamespace(**{**vars(os), **calls}))
        monkeypatch.setattr(visit, "allocate", room.allocate)
        return room

    return patch


def never() -> bool:
    return False


@pytest.mark.parametrize("allocates", [True, None, False], ids=["ext4", "ext2", "zfs"])
def test_all_the_room_is_taken_and_what_is_given_back_too(patched: Patch, allocates: bool | None) -> None:
    room = patched(Room(ROOM, allocates=allocates))
    filler = Filler(3, writable_bytes=lambda: ROOM)
    assert filler.fill(never)
    assert (0, ROOM) == (room.free, room.size)
    room.free = 2 * BLOCK
    assert filler.fill(never)
    assert (0, ROOM + 2 * BLOCK) == (room.free, room.size)
    assert filler.writes is (not allocates)
    # It is asked once whether it allocates.
    assert bool(allocates) or 1 == room.calls.count("allocate")


def test_what_is_written_cannot_be_compressed(patched: Patch) -> None:
    room = patched(Room(ROOM, allocates=False))
    Filler(3, writable_bytes=lambda: ROOM).fill(never)
    # ZFS and Btrfs compress pieces of 128 KiB at most.
    piece = room.written[0][: 128 * 1024]
    assert len(zlib.compress(piece)) >= len(piece)


@pytest.mark.parametrize("allocates", [None, False], ids=["ext2", "zfs"])
def test_ballast_that_has_no_room_in_the_log_is_not_written(patched: Patch, allocates: bool | None) -> None:
    room = patched(Room(ROOM, allocates=allocates))
    filler = Filler(3, writable_bytes=lambda: ROOM - 1)
    with pytest.raises(
        BallastTooLong, match=r"3\.02 MiB would have to be written, .* make `image_size` smaller"
    ):
        filler.fill(never)
    assert ["allocate"] == room.calls


@pytest.mark.parametrize("allocates", [True, None, False], ids=["ext4", "ext2", "zfs"])
def test_it_ends_with_the_clients(patched: Patch, allocates: bool | None) -> None:
    room = patched(Room(1024 * MIB, allocates=allocates))
    # As of one who gives room back all the while.
    looks: list[int] = []

    def is_over() -> bool:
        looks.append(1)
        room.free = 1024 * MIB
        return len(looks) > 20

    assert not Filler(3, writable_bytes=lambda: 1024 * MIB).fill(is_over)
    assert 21 == len(looks)


def test_clients_find_no_room_while_that_of_root_is_taken(patched: Patch) -> None:
    """They end then, and with them what fills: the file system was full to them all the same."""
    room = patched(Room(20 * MIB, allocates=None, for_root=8 * MIB))
    filler = Filler(3, writable_bytes=lambda: 20 * MIB)

    def until(left: int) -> bool:
        assert not filler.fill(lambda: room.free <= left)
        return filler.leaves_nothing

    assert [False, True] == [until(12 * MIB), until(8 * MIB)]


def test_an_error_that_is_no_want_of_room_is_raised(patched: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    room = patched(Room(ROOM, allocates=True))

    def allocate(*_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(visit, "allocate", allocate)
    with pytest.raises(OSError, match="Input/output"):
        Filler(3, writable_bytes=lambda: ROOM).fill(never)
    assert ROOM == room.free


def test_the_call_itself_allocates_and_nothing_emulates_it(tmp_path: Path) -> None:
    file = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    try:
        visit.allocate(file, 0, 3 * BLOCK)
        assert (3 * BLOCK, 3 * BLOCK // 512) == (os.fstat(file).st_size, os.fstat(file).st_blocks)
    finally:
        os.close(file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        visit.allocate(file, 0, BLOCK)
