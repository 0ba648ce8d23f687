"""Aged and filled file systems: real ones, and whole visits on them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.scratch_disk import looped

from bedplate.errors import VerifyFailed
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.aged_image import (
    AGE_FOLDER,
    AgedImage,
    Ballast,
    age,
    filling_of,
    free_space_of,
    restore_aged,
)
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.scratch_device import AttachedDevice
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome
from bedplate.units import KIB, MIB, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.visit import VisitRecord

    Bench = Any

pytestmark = pytest.mark.host

KINDS = ("ext4", "xfs", "btrfs")
SIZE = 512 * MIB


class Disk:
    """A loop device of zeros with a place to mount it, and a cache of its own."""

    def __init__(self, base: Path, node: str) -> None:
        self.base, self.node, self.commands = base, node, Commands()
        self.target = base / "mount"
        self.target.mkdir()

    def site(self, kind: str, **features: str) -> Site:
        device = AttachedDevice(
            self.node, Path(self.node).name, Path(self.node).name, SIZE, self.base / "disk.img"
        )
        return Site(FilesystemLevels(kind, features=Levels(features)), device, self.target, self.commands)

    def fresh(self, kind: str) -> Site:
        """Made and mounted."""
        site = self.site(kind)
        filesystem_for(kind).mkfs(site)
        filesystem_for(kind).mount(site)
        return site

    def restored(self, kind: str, profile: str) -> AgedImage:
        with Ledger.open(self.base / "state", "test") as ledger:
            found = restore_aged(self.site(kind, aged=profile), ledger=ledger)
            assert () == ledger.holdings()
        return found


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    with looped(tmp_path, size_bytes=SIZE) as node:
        made = Disk(tmp_path, node)
        try:
            yield made
        finally:
            filesystem_for("ext4").unmount(made.site("ext4"))


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_counted_as_they_are_made(disk: Disk, kind: str) -> None:
    disk.fresh(kind)
    before = free_space_of(kind, disk.target, "made")
    assert before.extents is not None
    assert before.free_bytes is not None
    for number in range(200):
        path = disk.target / f"{number:03d}"
        subprocess.run(["fallocate", "--length", "256K", str(path)], check=True)
    full = free_space_of(kind, disk.target, "made")
    for number in range(0, 200, 2):
        (disk.target / f"{number:03d}").unlink()
    after = free_space_of(kind, disk.target, "made")
    assert full.extents is not None
    assert after.extents is not None
    assert full.free_bytes is not None
    assert after.free_bytes is not None
    # 100 holes of 256 KiB between files of 256 KiB.
    assert 90 <= after.extents - full.extents <= 101
    assert after.free_bytes - full.free_bytes == pytest.approx(100 * 256 * KIB, rel=0.05)
    assert after.classes[3] - full.classes[3] >= 90 * 256 * KIB
    assert before.used_bytes < after.used_bytes < full.used_bytes


def test_ext4_s_pieces_are_those_that_e2freefrag_counts(disk: Disk) -> None:
    site = disk.fresh("ext4")
    age("ext4", disk.target, "mixed", 3)
    ours = free_space_of("ext4", disk.target, "made")
    filesystem_for("ext4").unmount(site)
    said = disk.commands.run(["e2freefrag", disk.node]).stdout
    (line,) = (line for line in said.splitlines() if line.startswith("Num. free extent:"))
    assert int(line.split()[-1]) == ours.extents


@pytest.mark.parametrize("kind", KINDS)
def test_ageing_leaves_small_pieces_and_room(disk: Disk, kind: str) -> None:
    disk.fresh(kind)
    before = free_space_of(kind, disk.target, "made")
    state = age(kind, disk.target, "small files", 1)
    after = free_space_of(kind, disk.target, "made")
    assert before.mean_bytes is not None
    assert after.mean_bytes is not None
    assert after.half_bytes is not None
    assert after.mean_bytes < before.mean_bytes / 100
    assert after.half_bytes <= 128 * KIB
    # Deleted at random down to half, but for what metadata takes of it.
    assert 0.3 < after.fill < 0.6
    assert 3 <= state.rounds <= 10
    left = [path for path in (disk.target / AGE_FOLDER).rglob("*") if path.is_file()]
    assert len(left) == state.files


@pytest.mark.parametrize("kind", KINDS)
def test_an_aged_image_is_made_once_and_restored_whole(disk: Disk, kind: str) -> None:
    first = disk.restored(kind, "mixed")
    content = (disk.base / "disk.img").read_bytes()
    (disk.base / "disk.img").write_bytes(bytes(SIZE))
    subprocess.run(["losetup", "--set-capacity", disk.node], check=True)
    again = disk.restored(kind, "mixed")
    assert first == again
    assert content == (disk.base / "disk.img").read_bytes()
    site = disk.site(kind, aged="mixed")
    filesystem = filesystem_for(kind)
    assert filesystem.check(site).clean
    filesystem.mount(site)
    pieces = free_space_of(kind, disk.target, "made")
    assert pieces.extents is not None
    assert pieces.extents > 100
    filesystem.unmount(site)
    # What is kept is metadata alone.
    (image,) = (disk.base / "cache/aged").glob("*/image")
    assert image.stat().st_blocks * 512 < SIZE / 4
    assert first.identity != first.key
    assert not list((disk.base / "cache/aged").rglob("bedplate-probe-*"))


def test_an_aged_xfs_is_mounted_on_a_disk_with_sectors_of_4_kib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    with looped(tmp_path, "--sector-size", "4096", size_bytes=SIZE) as node:
        disk = Disk(tmp_path, node)
        disk.restored("xfs", "mixed")
        site = disk.site("xfs", aged="mixed")
        assert 4096 == site.device.sector_bytes
        filesystem_for("xfs").mount(site)
        filesystem_for("xfs").unmount(site)


def test_another_profile_size_or_option_is_another_image(disk: Disk) -> None:
    known = {disk.restored("ext4", "mixed").key, disk.restored("ext4", "small files").key}
    assert 2 == len(known)


def test_an_image_that_was_taken_from_the_cache_is_made_anew(disk: Disk) -> None:
    first = disk.restored("ext4", "mixed")
    (image,) = (disk.base / "cache/aged").glob("*/image")
    image.unlink()
    again = disk.restored("ext4", "mixed")
    assert (first.key, True) == (again.key, first.identity != again.identity)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_file_system_is_as_full_as_asked_with_the_data(disk: Disk, kind: str, share: float) -> None:
    disk.fresh(kind)
    ballast = Ballast(disk.target, share)
    ballast.before_load(100 * MIB)
    assert filling_of(disk.target).share < share - 0.1
    (disk.target / "data").write_bytes(bytes(60 * MIB))
    read = ballast.after_load()
    assert (percent(share), True) == (read.asked, read.matches)
    assert filling_of(disk.target).share == pytest.approx(share, abs=0.01)


def test_more_data_than_the_asked_fill_is_refused(disk: Disk) -> None:
    disk.fresh("xfs")
    ballast = Ballast(disk.target, 0.5)
    with pytest.raises(VerifyFailed, match=r"fill: 50 % of .* is less than the 400 MiB"):
        ballast.before_load(400 * MIB)
    fuller = Ballast(disk.target / "data", 0.5)
    fuller.mount_point.mkdir()
    fuller.before_load(100 * MIB)
    (disk.target / "file").write_bytes(bytes(260 * MIB))
    with pytest.raises(VerifyFailed, match=r"asked 50 %, it came to [56]\d\.\d %"):
        fuller.after_load()


@pytest.mark.parametrize(
    ("kind", "features"),
    [
        ("ext4", {"aged": "mixed"}),
        ("xfs", {"aged": "small files", "fill": "75 %"}),
        ("btrfs", {"fill": "80 %", "aged": "no"}),
    ],
)
def test_a_visit_says_what_it_stood_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str, features: dict[str, str]
) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(bench.base / "cache"))
    levels = FilesystemLevels(kind, features=Levels(features))
    request = bench.request(
        levels, image_bytes=1536 * MIB, settings={"max_wal_size": "64MB"}, needed_bytes=300 * MIB
    )
    record: VisitRecord = bench.live(request)
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert ["made", "loaded", "ended"] == [space.moment for space in record.free_space]
    read = {item.name: item for item in record.comparisons}
    assert read["device.image_has_holes"].effective is False
    assert ("filesystem.aged.key" in read) == ("no" != features.get("aged", "no"))
    if "fill" in features:
        share = int(features["fill"].split()[0]) / 100
        assert record.free_space[1].fill == pytest.approx(share, abs=0.01)
        assert read["filesystem.fill"].matches
    aged = record.free_space[0]
    assert aged.extents is not None
    assert (aged.extents > 200) == ("filesystem.aged.key" in read)
    assert "mkfs" not in {timing.step for timing in record.timings} or "filesystem.aged.key" not in read
    assert [] == bench.left_behind()
    assert json.loads((bench.directory / "visit.json").read_text())["free_space"][0]["classes"]
