"""Power cuts of other disks than the usual one: with FUA, with sectors of 4 kB, and late; and what recovers on them, cut again."""

from __future__ import annotations

import lzma
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.campaign.preparation import prepare_drivers
from bedplate.cuts.log import FUA, read_log
from bedplate.cuts.records import (
    LATE_US,
    LOG_FILE,
    POINTS_FILE,
    RECORDING_FILE,
    Placement,
    PointOutcome,
    PointRecord,
    RecordingFacts,
)
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.native_driver import LIBFUSE3, library_requirement
from bedplate.host.recorder import recorder_reasons
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, ClusterLevels, Dataset, FilesystemLevels, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome, RunRecord, VisitRequest
from bedplate.units import MIB
from bedplate.workloads.power_cut.bench import JOB_FILE, ReplayJob, own_writeback

if TYPE_CHECKING:
    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

RECUTS = 8
SECTOR_BYTES = 4096


@pytest.fixture(scope="module")
def drivers() -> dict[str, str]:
    requirement = library_requirement(LIBFUSE3, reason="the power-cut recorder", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    return dict(prepare_drivers(["power_cut"], ["lmdb"]))


def request(bench: Bench, drivers: dict[str, str], filesystem: FilesystemLevels) -> VisitRequest:
    asked: VisitRequest = bench.request(filesystem)
    levels = Levels(
        points=12, profiles="subset-4k,lost,ordered", cache_bytes=8 * MIB, seed=3, sought=0, recut=RECUTS
    )
    dataset = Levels(
        engine="lmdb",
        image_bytes=512 * MIB,
        clients=2,
        duration_s=2,
        completions="late",
        sector_bytes=SECTOR_BYTES,
        fua=True,
        recut=RECUTS,
    )
    return replace(
        asked,
        cell=replace(asked.cell, build=BuildLevels.unbuilt("lmdb"), cluster=ClusterLevels()),
        build=None,
        dataset=Dataset("power_cut", dataset),
        runs=(RunSpec("power-cut", "power_cut", levels),),
        native_drivers=drivers,
    )


@pytest.mark.parametrize(
    "filesystem",
    [
        FilesystemLevels("ext4"),
        FilesystemLevels("xfs"),
        FilesystemLevels("btrfs"),
    ],
    ids=lambda each: each.type,
)
def test_what_waits_for_the_medium_loses_nothing_on_any_disk(
    bench: Bench, drivers: dict[str, str], filesystem: FilesystemLevels, tmp_path: Path
) -> None:
    if shutil.which(f"mkfs.{filesystem.type}") is None:
        pytest.skip(f"mkfs.{filesystem.type} is not here")
    bench.live(request(bench, drivers, filesystem))
    (directory,) = (bench.directory / "runs").iterdir()
    run = codec.read(RunRecord, directory / "record.json")
    assert (Outcome.COMPLETED, ()) == (run.outcome, run.reasons)
    facts = codec.read(RecordingFacts, directory / RECORDING_FILE)
    job = codec.read(ReplayJob, directory / JOB_FILE)
    assert (LATE_US, SECTOR_BYTES) == (job.late_us, job.sector_bytes)
    records = [codec.loads(PointRecord, line) for line in (directory / POINTS_FILE).read_text().splitlines()]
    for_real = [each for each in records if not each.point.control]
    good = {PointOutcome.OK, PointOutcome.NEEDS_FSCK}
    assert [] == [(each.point, each.problems) for each in for_real if each.outcome not in good]
    assert all(each.outcome.is_bad for each in records if each.point.control)
    assert RECUTS == sum(each.point.placement is Placement.SPAN for each in records)
    # Journals' records and superblocks are asked for so.
    assert facts.through_writes
    with read_log(_unpacked(directory / LOG_FILE, tmp_path)) as log:
        through = sum(bool(flags & FUA) for flags in log.flags)
        small = [
            index for index in range(len(log)) if log.is_write(index) and log.lengths[index] % SECTOR_BYTES
        ]
        has_late = log.histories[0].has_late
    assert (facts.through_writes, [], True) == (through, small, has_late)
    assert [] == bench.left_behind()


def _unpacked(packed: Path, folder: Path) -> Path:
    target = folder / "log"
    with lzma.open(packed) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file)
    return target


def test_this_kernels_xfs_writes_back_within_a_short_recording(tmp_path: Path) -> None:
    period = Path("/proc/sys/fs/xfs/xfssyncd_centisecs")
    if not period.exists():
        pytest.skip("the kernel has no XFS, or has not loaded it yet")
    usual = period.read_text()
    with (
        Ledger.open(tmp_path / "state", "writeback") as ledger,
        own_writeback("xfs", 1.0, ledger=ledger) as own,
    ):
        assert own is not None
        assert own.first_s < own.period_s
        assert period.read_text() != usual
    assert period.read_text() == usual
