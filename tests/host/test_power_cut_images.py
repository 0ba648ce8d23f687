"""Images of cuts as a kernel mounts them: what fsync promised is there, and where a device lied it is not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic_ns

import pytest
from tests.support.tools.recorder_lab import RecorderLab, recorder_driver, recorder_lab

from bedplate.cuts.choice import building_order, choose_points
from bedplate.cuts.log import JOURNAL, Acknowledgements, Log, read_log, window
from bedplate.cuts.records import VOLATILE_PROFILES, CutPoint, Placement, Profile
from bedplate.host.recorder import RecorderSizes
from bedplate.host.scratch_device import detach, losetup
from bedplate.units import MIB
from bedplate.workloads.power_cut.bench import Built, ImageBuilder

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

DISK_BYTES, JOURNAL_BYTES, WINDOW_BYTES = 64 * MIB, 16 * MIB, MIB
RECORD_BYTES = 6000
RECORDS = 300


def record_of(number: int) -> bytes:
    """One record that says which it is from its first byte to its last."""
    return (f"{number:07d}\n" * RECORD_BYTES)[:RECORD_BYTES].encode()


@dataclass(frozen=True)
class Recorded:
    """A log of RECORDS records, each of which was synced and then marked, and where they began."""

    log: Log
    sizes: Sequence[int]
    measured_from: int

    def points(self, count: int, profiles: Sequence[Profile], controls: int = 0) -> list[CutPoint]:
        return building_order(
            choose_points(
                self.log,
                points=count,
                profiles=profiles,
                seed=7,
                measured_from=self.measured_from,
                window_bytes=WINDOW_BYTES,
                controls=controls,
            )
        )


@pytest.fixture(scope="module")
def driver() -> Path:
    return recorder_driver()


@pytest.fixture
def place(driver: Path) -> Iterator[RecorderLab]:
    with recorder_lab(driver) as found:
        yield found


def recorded(
    place: RecorderLab, *mount_options: str, external: bool = False, sync_every: int | None = None
) -> Recorded:
    target = place.base / "mount"
    target.mkdir()
    sizes = RecorderSizes(
        disk_bytes=DISK_BYTES,
        log_limit_bytes=256 * MIB,
        journal_bytes=JOURNAL_BYTES if external else None,
    )
    with place.start(sizes) as recorder, ExitStack() as attached:
        disk = recorder.attach(recorder.disk)
        attached.callback(recorder.detach, disk)
        journal_options: list[str] = []
        if recorder.journal is not None:
            journal = recorder.attach(recorder.journal)
            attached.callback(recorder.detach, journal)
            place.commands.run(["mke2fs", "-q", "-O", "journal_dev", "-b", "4096", journal.path])
            journal_options = ["-J", f"device={journal.path}"]
        place.commands.run(["mkfs.ext4", "-q", "-b", "4096", "-E", "nodiscard", *journal_options, disk.path])
        place.commands.run(["mount", "-o", ",".join(("noatime", *mount_options)), disk.path, str(target)])
        os.sync()
        measured_from = recorder.status().entries
        file = os.open(target / "records", os.O_WRONLY | os.O_CREAT)
        for number in range(RECORDS):
            os.write(file, record_of(number))
            os.fsync(file)
            recorder.write_mark(f"A 0 {number} {monotonic_ns() // 1000}")
            if sync_every and not number % sync_every:
                os.sync()
        recorder.seal()
        os.close(file)
        place.commands.run(["umount", str(target)])
    target.rmdir()
    return Recorded(
        read_log(recorder.log), (DISK_BYTES, JOURNAL_BYTES) if external else (DISK_BYTES,), measured_from
    )


def records_on(place: RecorderLab, built: Built) -> tuple[int, str]:
    """How many whole records are there from the first on, and what the kernel said where it does not mount.

    The loop devices are attached and detached by the house's own functions: `mount -o loop` may take one that a former image has left.
    """
    target = place.base / "cut"
    target.mkdir(exist_ok=True)
    with ExitStack() as undo:
        nodes = []
        for image in built.images:
            nodes.append(f"/dev/{losetup(image, place.commands)}")
            undo.callback(detach, image, place.commands)
        disk, *journals = nodes
        options = [f"-ojournal_path={journal}" for journal in journals]
        mounted = subprocess.run(
            ["mount", "-t", "ext4", *options, disk, target], check=False, capture_output=True, text=True
        )
        if mounted.returncode:
            return 0, mounted.stderr
        undo.callback(place.commands.run, ["umount", str(target)])
        try:
            content = (target / "records").read_bytes()
        except FileNotFoundError:
            return 0, ""
        except OSError as error:
            return 0, str(error)
        whole = 0
        while content[whole * RECORD_BYTES : (whole + 1) * RECORD_BYTES] == record_of(whole):
            whole += 1
        return whole, ""


def bad_points(
    place: RecorderLab, found: Recorded, points: Sequence[CutPoint], *, lost: Collection[int] = ()
) -> dict[CutPoint, str]:
    """Those at which a promised record is missing, or the file system, and what is known of each."""
    marks = Acknowledgements(found.log)
    bad = {}
    with ImageBuilder(
        found.log,
        place.base,
        found.sizes,
        window_bytes=WINDOW_BYTES,
        measured_from=found.measured_from,
        lost_devices=lost,
    ) as builder:
        for point in points:
            there, refused = records_on(place, builder.build(point, place.base))
            promised = marks.before(point.position)
            if refused or promised.missing({0: there - 1}).transactions:
                bad[point] = f"{there} of {promised.transactions} records; {refused}"
    return bad


def tears_superblock(log: Log, point: CutPoint) -> bool:
    """Whether the cut keeps one of the two sectors of ext4's superblock, byte 1024 to 2047 of the disk, and not the other."""
    sectors = (range(1024, 1536), range(1536, 2048))
    kept = [
        any(
            log.offsets[piece.entry] + piece.start
            <= sector.start
            < log.offsets[piece.entry] + piece.start + piece.length
            for piece in window(log, point, WINDOW_BYTES).kept
        )
        for sector in sectors
    ]
    return kept[0] != kept[1]


def test_ext4_keeps_its_promises_and_a_lying_device_does_not(place: RecorderLab) -> None:
    found = recorded(place)
    points = found.points(40, [*VOLATILE_PROFILES, Profile.ORDERED], controls=6)
    open_windows = [
        point
        for point in points
        if not point.control and window(found.log, point, WINDOW_BYTES).volatile_writes
    ]
    assert 20 <= len(open_windows)
    bad = bad_points(place, found, points)
    # Any program's sync has the superblock written in place, and then a sector of 512 bytes may be all that came of it.
    unexpected = {
        point: why
        for point, why in bad.items()
        if not point.control and not tears_superblock(found.log, point)
    }
    assert not unexpected
    assert {point for point in points if point.control} <= bad.keys()


def test_ext4_is_refused_where_one_sector_of_its_superblock_is_new(place: RecorderLab) -> None:
    found = recorded(place, sync_every=20)
    of_superblock = [
        index
        for index in range(found.measured_from, len(found.log))
        if found.log.is_write(index) and found.log.offsets[index] == 0
    ]
    torn = [
        point
        for index in of_superblock
        for seed in range(8)
        if tears_superblock(
            found.log,
            point := CutPoint(seed, index + 1, Profile.SUBSET_512, Placement.UNIFORM, seed),
        )
    ]
    bad = bad_points(place, found, torn)
    assert torn
    assert bad
    assert all("corrupted" in why or "superblock" in why for why in bad.values())
    whole = [replace(point, profile=Profile.SUBSET_4K) for point in torn]
    assert not bad_points(place, found, whole)


def test_without_barriers_only_a_protected_cache_keeps_them(place: RecorderLab) -> None:
    found = recorded(place, "barrier=0")
    points = found.points(20, [Profile.LOST, Profile.ORDERED])
    marks = Acknowledgements(found.log)
    # A cut before the first promise loses none.
    must_lose = [
        point
        for point in points
        if point.profile is Profile.LOST and marks.before(point.position).transactions
    ]
    assert must_lose == list(bad_points(place, found, points))
    assert 5 <= len(must_lose)


def test_an_external_journal_is_cut_with_its_disk(place: RecorderLab) -> None:
    found = recorded(place, external=True)
    points = found.points(12, VOLATILE_PROFILES, controls=2)
    assert 0 < len(found.log.histories[JOURNAL].flushes)
    assert {point for point in points if point.control} == bad_points(place, found, points).keys()
    ordered = found.points(2, [Profile.ORDERED])
    assert ordered == list(bad_points(place, found, ordered, lost={JOURNAL}))
