"""Where on a disk a fault hits: ranges as they are joined, and what cannot be found."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from bedplate import registry
from bedplate.cuts.blame import WrittenPlace
from bedplate.cuts.faults import FAULTS, ByteRange, Place, Rot
from bedplate.filesystem.blocks import Chunk, InodeTables, Layout, OwnBlocks, RestingBlocks
from bedplate.filesystem.registry import FILESYSTEMS
from bedplate.host.pages import FileExtent
from bedplate.visit.cuts import FaultEngine
from bedplate.workloads.faulty_disk import visit
from bedplate.workloads.faulty_disk.visit import (
    DiskMap,
    PlaceUnknown,
    finder_at_rest,
    joined,
    ranges_at_rest,
    rot_away,
    wants_layout,
)

ENGINE = FaultEngine(cast("Any", None), log_files=("wal/*",), data_files=("base/*/*",))
MIB = 2**20


def test_ranges_that_touch_are_one() -> None:
    found = joined([ByteRange(8, 4), ByteRange(0, 4), ByteRange(4, 2), ByteRange(9, 1), ByteRange(12, 1)])
    assert (ByteRange(0, 6), ByteRange(8, 5)) == found
    assert () == joined([])


def test_anywhere_has_no_ranges_and_a_superblock_needs_no_file(tmp_path: Path) -> None:
    assert () == DiskMap(ENGINE, tmp_path, "btrfs").ranges(Place.ANYWHERE)
    assert (ByteRange(65536, 4096),) == DiskMap(ENGINE, tmp_path, "btrfs").ranges(Place.SUPERBLOCK)


@pytest.mark.parametrize(
    ("filesystem", "start"), [("xfs", 0), ("f2fs", 1024), ("nilfs2", 1024), ("jfs", 32 * 1024)]
)
def test_of_a_superblock_the_sector_that_a_mount_reads_is_meant(
    tmp_path: Path, filesystem: str, start: int
) -> None:
    assert (ByteRange(start, 512),) == DiskMap(ENGINE, tmp_path, filesystem).ranges(Place.SUPERBLOCK)


@pytest.mark.parametrize(
    ("place", "log_files", "filesystem", "words"),
    [
        (Place.LOG, (), "ext4", "no log of its own"),
        (Place.DATA, ("wal/*",), "btrfs", "does not say where"),
        (Place.DATA, ("wal/*",), "ext4", "no file of base"),
        (Place.SUPERBLOCK, ("wal/*",), "zfs", "superblock"),
        (Place.JOURNAL, ("wal/*",), "btrfs", "btrfs has no journal"),
        (Place.JOURNAL, ("wal/*",), "xfs", "has its journal on this disk is not known"),
        (Place.METADATA, ("wal/*",), "jfs", "has its metadata on this disk is not known"),
        (Place.METADATA, ("wal/*",), "bcachefs", "has its metadata on this disk is not known"),
        (Place.INODE, ("wal/*",), "f2fs", "has an inode is not known"),
    ],
)
def test_a_place_that_cannot_be_found_says_why(
    tmp_path: Path, place: Place, log_files: tuple[str, ...], filesystem: str, words: str
) -> None:
    engine = FaultEngine(cast("Any", None), log_files, ENGINE.data_files)
    with pytest.raises(PlaceUnknown, match=words):
        DiskMap(engine, tmp_path, filesystem).ranges(place)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.EOPNOTSUPP, "does not say where a file of jfs lies"),
        (errno.ENOTTY, "does not say where a file of jfs lies"),
        (errno.ENOENT, "has a block of the disk yet"),
    ],
)
def test_a_file_system_without_maps_of_files_is_named_and_its_files_are_not_said_to_lack_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    (tmp_path / "base" / "5").mkdir(parents=True)
    (tmp_path / "base" / "5" / "1").write_bytes(b"x" * 8192)

    def refused(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(visit, "extents_of", refused)
    with pytest.raises(PlaceUnknown, match=words):
        DiskMap(ENGINE, tmp_path, "jfs").ranges(Place.DATA)


def test_files_of_zfs_are_known_by_number_until_it_is_at_rest(tmp_path: Path) -> None:
    here = DiskMap(ENGINE, tmp_path, "zfs")
    for place in (Place.DATA, Place.LOG):
        with pytest.raises(PlaceUnknown, match="there is no file of"):
            here.numbers(place)
    with pytest.raises(PlaceUnknown, match="the engine has no file yet"):
        here.numbers(Place.INODE)
    for name in ("base/5/1", "base/5/2", "wal/1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    heap = {(tmp_path / name).stat().st_ino for name in ("base/5/1", "base/5/2")}
    assert tuple(sorted(heap)) == here.numbers(Place.DATA)
    assert ((tmp_path / "wal" / "1").stat().st_ino,) == here.numbers(Place.LOG)
    assert () == here.numbers(Place.SUPERBLOCK)
    assert 3 == len(here.numbers(Place.INODE))
    without = DiskMap(FaultEngine(cast("Any", None), (), ENGINE.data_files), tmp_path, "zfs")
    with pytest.raises(PlaceUnknown, match="no log of its own"):
        without.numbers(Place.LOG)
    # A read or a write that is to fail needs its place while clients write.
    with pytest.raises(PlaceUnknown, match="as long as it is mounted"):
        here.ranges(Place.DATA)


def test_at_rest_zfs_is_looked_at_for_what_files_have_and_nilfs2_for_its_metadata() -> None:
    found = {name: {place for place in Place if finder_at_rest(name, place)} for name in FILESYSTEMS}
    assert {
        "zfs": {Place.LOG, Place.DATA, Place.SUPERBLOCK, Place.INODE},
        "nilfs2": {Place.METADATA},
    } == {name: places for name, places in found.items() if places}


def test_superblocks_are_no_metadata_and_what_is_copied_on_write_has_no_place_for_a_write(
    tmp_path: Path,
) -> None:
    superblock = OwnBlocks(1024, 2048, WrittenPlace.METADATA, "superblock")
    table = OwnBlocks(8192, 16384, WrittenPlace.METADATA, "node address table")
    nilfs2 = DiskMap(ENGINE, tmp_path, "nilfs2", Layout((superblock,)))
    with pytest.raises(PlaceUnknown, match="writes each block to a new place"):
        nilfs2.ranges(Place.METADATA, is_written=True)
    with pytest.raises(PlaceUnknown, match="has its metadata on this disk is not known"):
        nilfs2.ranges(Place.METADATA)
    f2fs = DiskMap(ENGINE, tmp_path, "f2fs", Layout((superblock, table)))
    for is_written in (False, True):
        found = f2fs.ranges(Place.METADATA, is_written=is_written)
        assert (ByteRange(8192, 8192),) == found
    # The log of a JFS is inside, or is its own device.
    log = OwnBlocks(65536, 131072, WrittenPlace.JOURNAL, "the log")
    jfs = DiskMap(ENGINE, tmp_path, "jfs", Layout((superblock, log)))
    assert (ByteRange(65536, 65536),) == jfs.ranges(Place.JOURNAL, is_written=True)


class Resting:
    """A disk at rest that has its blocks where a test says."""

    def __init__(self, *starts: int, left_out: tuple[str, ...] = ()) -> None:
        self._found = RestingBlocks(tuple(ByteRange(at, 4096) for at in starts), left_out)
        self.asked: list[tuple[int, ...] | None] = []

    def files(self, numbers: Sequence[int], /) -> RestingBlocks:
        self.asked.append(tuple(numbers))
        return self._found

    def inodes(self, numbers: Sequence[int], /) -> RestingBlocks:
        self.asked.append((*numbers, -1))
        return self._found

    def superblock(self) -> RestingBlocks:
        self.asked.append(None)
        return self._found


def test_blocks_at_rest_are_those_of_the_place_and_none_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Resting(8192, 0, 4096, left_out=("blocks embedded in their pointers: 1",))
    monkeypatch.setattr(type(FILESYSTEMS["zfs"]), "at_rest", staticmethod(lambda *_: disk))
    for place in (Place.DATA, Place.SUPERBLOCK, Place.INODE):
        finder = finder_at_rest("zfs", place)
        assert finder is not None
        assert (ByteRange(0, 12288),) == ranges_at_rest(finder([], cast("Any", None), (3, 5)))
    assert [(3, 5), None, (3, 5, -1)] == disk.asked
    with pytest.raises(PlaceUnknown, match="can be named: blocks embedded in their pointers: 4"):
        ranges_at_rest(RestingBlocks(left_out=("blocks embedded in their pointers: 4",)))
    with pytest.raises(PlaceUnknown, match="its files hold nothing"):
        ranges_at_rest(RestingBlocks())


def test_links_are_no_files_of_an_engine(tmp_path: Path) -> None:
    (tmp_path / "base" / "5").mkdir(parents=True)
    (tmp_path / "base" / "5" / "1").write_bytes(b"x")
    (tmp_path / "base" / "5" / "2").symlink_to("/etc/passwd")
    assert (tmp_path / "base" / "5" / "1",) == DiskMap(ENGINE, tmp_path, "ext4").files(Place.DATA)


@pytest.mark.parametrize("name", [name for name in FAULTS if name.startswith("rot-")])
def test_what_rots_is_as_long_as_its_name_says_and_within_its_place(tmp_path: Path, name: str) -> None:
    disk = tmp_path / "disk"
    before = random.Random(1).randbytes(MIB)
    rot = FAULTS[name]
    assert isinstance(rot, Rot)
    ranges = [ByteRange(8192, 8192), ByteRange(65536, 512)]
    for seed in range(20):
        disk.write_bytes(before)
        where = rot_away(disk, rot, ranges, seed)
        after = disk.read_bytes()
        changed = [at for at in range(MIB) if before[at] != after[at]]
        assert all(any(r.start <= at < r.start + r.length for r in ranges) for at in changed)
        assert all(where.start <= at < where.start + where.length for at in changed)
        if rot.length:
            assert 400 < len(changed) <= rot.length
        else:
            (at,) = changed
            assert 1 == (before[at] ^ after[at]).bit_count()


def test_what_can_be_read_no_more_is_a_block_of_its_place_and_stays_as_it_is(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    before = random.Random(1).randbytes(MIB)
    disk.write_bytes(before)
    lost = FAULTS["unreadable-inode"]
    assert isinstance(lost, Rot)
    assert "a block cannot be read any more, in an inode of the engine's" == lost.words
    for seed in range(20):
        ranges = [ByteRange(8192 + 256, 256), ByteRange(65536, 8192)]
        where = rot_away(disk, lost, ranges, seed)
        assert where in {ByteRange(at, 4096) for at in (8192, 65536, 65536 + 4096)}
    assert before == disk.read_bytes()


def test_a_hit_in_a_file_of_another_place_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wal, heap, linked = tmp_path / "wal" / "1", tmp_path / "base" / "5" / "1", tmp_path / "base" / "5" / "2"
    for path in (wal, heap):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    linked.symlink_to(wal)
    blocks = {wal: 8192, heap: 16384}
    monkeypatch.setattr(
        "bedplate.workloads.faulty_disk.visit.extents_of",
        lambda path, written_back: (FileExtent(0, 4096, blocks[path]),),
    )
    here = DiskMap(ENGINE, tmp_path, "ext4")
    beside = ByteRange(12288, 4096)
    across = ByteRange(8192, 12288)
    assert (heap,) == here.strangers(across, Place.LOG)
    assert (wal,) == here.strangers(across, Place.DATA)
    assert () == here.strangers(beside, Place.LOG)
    assert () == here.strangers(across, Place.ANYWHERE)


def test_the_doublewrite_buffer_is_no_data(tmp_path: Path) -> None:
    engine: FaultEngine = registry.engine_part("mariadb", "faulty_disk")
    for name in ("bedplate/note.ibd", "mysql/plugin.ibd", "ibdata1", "ib_logfile0"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    assert (tmp_path / "bedplate" / "note.ibd",) == DiskMap(engine, tmp_path, "ext4").files(Place.DATA)
    assert (tmp_path / "ib_logfile0",) == DiskMap(engine, tmp_path, "ext4").files(Place.LOG)


def test_writes_of_a_file_system_that_copies_go_where_nobody_knows_and_reads_by_its_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heap = tmp_path / "base" / "5" / "1"
    heap.parent.mkdir(parents=True)
    heap.write_bytes(b"x")
    monkeypatch.setattr(
        "bedplate.workloads.faulty_disk.visit.extents_of",
        lambda path, written_back: (FileExtent(0, 4096, 2 * MIB + 8192),),
    )
    layout = Layout(chunks=(Chunk(2 * MIB, MIB, (5 * MIB, 9 * MIB)),))
    here = DiskMap(ENGINE, tmp_path, "btrfs", layout)
    assert (ByteRange(5 * MIB + 8192, 4096), ByteRange(9 * MIB + 8192, 4096)) == here.ranges(Place.DATA)
    with pytest.raises(PlaceUnknown, match="to a new place"):
        here.ranges(Place.DATA, is_written=True)
    assert wants_layout(Place.DATA, "btrfs")
    assert not wants_layout(Place.DATA, "xfs")


def test_what_a_file_system_keeps_is_found_by_its_layout(tmp_path: Path) -> None:
    heap = tmp_path / "base" / "5" / "1"
    heap.parent.mkdir(parents=True)
    heap.write_bytes(b"x")
    number = heap.stat().st_ino
    areas = (
        OwnBlocks(4096, 8192, WrittenPlace.METADATA, "group descriptors"),
        OwnBlocks(8192, 12288, WrittenPlace.METADATA, "inode table"),
        OwnBlocks(65536, 131072, WrittenPlace.JOURNAL, "the journal"),
    )
    tables = InodeTables((8192,), per_group=number + 10, size=256)
    here = DiskMap(ENGINE, tmp_path, "ext4", Layout(areas, inodes=tables))
    assert (ByteRange(4096, 8192),) == here.ranges(Place.METADATA)
    assert (ByteRange(65536, 65536),) == here.ranges(Place.JOURNAL)
    assert (ByteRange(8192 + (number - 1) * 256, 256),) == here.ranges(Place.INODE)
    assert all(wants_layout(place, "ext4") for place in (Place.METADATA, Place.JOURNAL, Place.INODE))


def test_rot_of_what_a_file_system_keeps_hits_what_it_holds(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    held = random.Random(1).randbytes(4096)
    for name in ("rot-bit-metadata", "rot-block-journal"):
        rot = FAULTS[name]
        assert isinstance(rot, Rot)
        for seed in range(20):
            disk.write_bytes(bytes(40960) + held + bytes(MIB - 40960 - 4096))
            where = rot_away(disk, rot, [ByteRange(8192, MIB - 8192)], seed)
            assert 40960 <= where.start < 40960 + 4096


def test_an_inode_smaller_than_a_sector_rots_alone(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    before = random.Random(1).randbytes(8192)
    rot = FAULTS["rot-sector-inode"]
    assert isinstance(rot, Rot)
    disk.write_bytes(before)
    where = rot_away(disk, rot, [ByteRange(4096 + 256, 256)], 3)
    after = disk.read_bytes()
    assert ByteRange(4096 + 256, 256) == where
    assert before[: 4096 + 256] == after[: 4096 + 256]
    assert before[4096 + 512 :] == after[4096 + 512 :]
    assert before != after


def test_folders_a_thousand_deep_are_looked_through(tmp_path: Path) -> None:
    engine: FaultEngine = registry.engine_part("own-engine", "faulty_disk")
    (tmp_path / "near").write_bytes(b"x")
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(1500):
            os.mkdir("d", dir_fd=folder)
            deeper = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = deeper
        os.close(os.open("far", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
        found = DiskMap(engine, tmp_path, "ext4").files(Place.DATA)
    finally:
        os.close(folder)
        # What is too deep for shutil before Python 3.13 is too deep for pytest, which removes it three sessions later.
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)
    assert {"near", "far"} == {path.name for path in found}
