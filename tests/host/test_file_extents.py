"""Where files are on their device, held against the device itself; and a fault that is ordered there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.tools.recorder_lab import RecorderLab, recorder_driver, recorder_lab

from bedplate.cuts.faults import ByteRange, FaultOperation, FaultOrder
from bedplate.host import pages
from bedplate.host.pages import extents_of
from bedplate.host.recorder import Recorder, RecorderSizes
from bedplate.units import MIB
from bedplate.workloads.faulty_disk.visit import Filler

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

SIZES = RecorderSizes(disk_bytes=512 * MIB, log_limit_bytes=256 * MIB)


@pytest.fixture(scope="module")
def driver() -> Path:
    return recorder_driver()


@pytest.fixture
def place(driver: Path) -> Iterator[RecorderLab]:
    with recorder_lab(driver) as found:
        yield found


@contextmanager
def mounted(
    place: RecorderLab, mkfs: tuple[str, ...] = ("mkfs.ext4", "-q"), sizes: RecorderSizes = SIZES
) -> Iterator[tuple[Recorder, Path]]:
    target = place.base / "mount"
    target.mkdir()
    with place.start(sizes) as recorder:
        device = recorder.attach(recorder.disk)
        place.commands.run([*mkfs, device.path])
        place.commands.run(["mount", device.path, str(target)])
        try:
            yield recorder, target
        finally:
            place.commands.run(["umount", str(target)])
            recorder.detach(device)


@pytest.mark.parametrize("mkfs", [("mkfs.ext4", "-q"), ("mkfs.xfs", "-q")], ids=["ext4", "xfs"])
def test_the_blocks_of_a_file_hold_it_and_a_fault_there_meets_no_other(
    place: RecorderLab, mkfs: tuple[str, ...]
) -> None:
    with mounted(place, mkfs) as (recorder, target):
        mine, other = target / "mine", target / "other"
        # A hole in it, and what was never written back.
        with mine.open("wb") as file:
            file.write(first := os.urandom(3 * 4096))
            file.seek(MIB)
            file.write(second := os.urandom(4096))
            file.flush()
            assert () == blocks_of(mine)
            os.fsync(file.fileno())
        other.write_bytes(os.urandom(8 * 4096))
        found = blocks_of(mine)
        disk = recorder.disk.read_bytes()
        assert first + second == b"".join(disk[each.start : each.start + each.length] for each in found)
        recorder.order_fault(FaultOrder(FaultOperation.WRITE, hits=1, ranges=found).line())
        synced(other)
        assert 0 == recorder.status().fault_hits
        with mine.open("r+b") as file:
            file.write(b"x" * 4096)
            file.flush()
            with pytest.raises(OSError, match="Input/output"):
                os.fsync(file.fileno())
        assert 1 == recorder.status().fault_hits


def blocks_of(path: Path) -> tuple[ByteRange, ...]:
    """As they are, nothing being written back for it."""
    mapped = extents_of(path, written_back=False)
    return tuple(ByteRange(each.at, each.length) for each in mapped if each.at is not None)


def test_a_map_of_single_blocks_says_what_the_map_of_extents_says(
    place: RecorderLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mounted(place) as (_, target):
        file = target / "file"
        with file.open("wb") as opened:
            opened.write(os.urandom(3 * 4096))
            opened.seek(MIB)
            opened.write(os.urandom(5 * 4096))
        by_extents = extents_of(file)
        # A request that no file system knows: as where FIEMAP is not there.
        monkeypatch.setattr(pages, "_FS_IOC_FIEMAP", 0x7F00)
        assert by_extents == extents_of(file)


def synced(path: Path) -> None:
    file = os.open(path, os.O_RDWR)
    os.pwrite(file, b"y" * 4096, 0)
    os.fsync(file)
    os.close(file)


# Those that allocate nothing ahead are written: all of them has room in the log.
SMALL = RecorderSizes(disk_bytes=128 * MIB, log_limit_bytes=256 * MIB)


@pytest.mark.parametrize(
    ("mkfs", "sizes", "writes"),
    [("mkfs.ext4", SIZES, False), ("mkfs.ext2", SMALL, True), ("mkfs.ext3", SMALL, True)],
)
def test_a_file_system_is_filled_to_its_last_block_and_empty_again_afterwards(
    place: RecorderLab, mkfs: str, sizes: RecorderSizes, writes: bool
) -> None:
    with mounted(place, (mkfs, "-q"), sizes) as (recorder, target):
        file = os.open(target / "ballast", os.O_WRONLY | os.O_CREAT)
        filler = Filler(file, writable_bytes=lambda: 192 * MIB)
        assert filler.fill(lambda: False)
        assert writes is filler.writes
        with pytest.raises(OSError, match="No space"):
            (target / "more").write_bytes(bytes(256 * 1024))
        # Room that somebody gives back while it is full is taken too.
        (target / "more").unlink()
        assert filler.fill(lambda: False)
        with pytest.raises(OSError, match="No space"):
            (target / "more").write_bytes(bytes(256 * 1024))
        os.close(file)
        (target / "ballast").unlink()
        (target / "more").write_bytes(bytes(256 * 1024))
        assert recorder.status().failure is None
