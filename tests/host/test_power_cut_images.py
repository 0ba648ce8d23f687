"""Images of cuts as a kernel mounts them: what fsync promised is there, and where a device lied it is not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns

import pytest
from tests.support.tools.recorder_lab import RecorderLab, recorder_driver, recorder_lab

from bedplate.host.recorder import RecorderSizes
from bedplate.model.power_cut import VOLATILE_PROFILES, CutPoint, Profile
from bedplate.units import MIB
from bedplate.workloads.power_cut.bench import Built, ImageBuilder, building_order, choose_points
from bedplate.workloads.power_cut.log import JOURNAL, Acknowledgements, Log, read_log, window

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


def recorded(place: RecorderLab, *mount_options: str, external: bool = False) -> Recorded:
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
        recorder.seal()
        os.close(file)
        place.commands.run(["umount", str(target)])
    target.rmdir()
    return Recorded(
        read_log(recorder.log), (DISK_BYTES, JOURNAL_BYTES) if external else (DISK_BYTES,), measured_from
    )


def records_on(built: Built, target: Path) -> int | None:
    """How many whole records are there from the first on; None where it does not mount."""
    target.mkdir(exist_ok=True)
    options = "loop"
    with ExitStack() as undo:
        if built.journal is not None:
            journal = subprocess.run(
                ["losetup", "-f", "--show", built.journal], check=True, capture_output=True, text=True
            ).stdout.strip()
            undo.callback(lambda: subprocess.run(["losetup", "-d", journal], check=True))
            options += f",journal_path={journal}"
        if subprocess.run(
            ["mount", "-t", "ext4", "-o", options, built.disk, target], check=False, capture_output=True
        ).returncode:
            return None
        undo.callback(lambda: subprocess.run(["umount", target], check=True))
        try:
            content = (target / "records").read_bytes()
        except OSError:
            return 0
        whole = 0
        while content[whole * RECORD_BYTES : (whole + 1) * RECORD_BYTES] == record_of(whole):
            whole += 1
        return whole


def bad_points(
    place: RecorderLab, found: Recorded, points: Sequence[CutPoint], *, lost: Collection[int] = ()
) -> list[CutPoint]:
    """Those at which a promised record is missing, or the file system."""
    marks = Acknowledgements(found.log)
    bad = []
    with ImageBuilder(
        found.log,
        place.base,
        found.sizes,
        window_bytes=WINDOW_BYTES,
        measured_from=found.measured_from,
        lost_devices=lost,
    ) as builder:
        for point in points:
            there = records_on(builder.build(point, place.base), place.base / "cut")
            promised = marks.before(point.position)
            if there is None or promised.missing({0: there - 1}).transactions:
                bad.append(point)
    return bad


def test_ext4_keeps_its_promises_and_a_lying_device_does_not(place: RecorderLab) -> None:
    found = recorded(place)
    points = found.points(40, [*VOLATILE_PROFILES, Profile.ORDERED], controls=6)
    open_windows = [
        point
        for point in points
        if not point.control and window(found.log, point, WINDOW_BYTES).volatile_writes
    ]
    assert 20 <= len(open_windows)
    assert [point for point in points if point.control] == bad_points(place, found, points)


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
    assert must_lose == bad_points(place, found, points)
    assert 5 <= len(must_lose)


def test_an_external_journal_is_cut_with_its_disk(place: RecorderLab) -> None:
    found = recorded(place, external=True)
    points = found.points(12, VOLATILE_PROFILES, controls=2)
    assert 0 < len(found.log.histories[JOURNAL].flushes)
    assert [point for point in points if point.control] == bad_points(place, found, points)
    ordered = found.points(2, [Profile.ORDERED])
    assert ordered == bad_points(place, found, ordered, lost={JOURNAL})
