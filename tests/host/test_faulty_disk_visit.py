"""A disk that fails for real, below an engine and its oracle: every fault is hit, or says why not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.campaign.preparation import prepare_drivers
from bedplate.cuts.faults import Detected, FaultRecord, FaultVerdict, Seen, read_tries
from bedplate.cuts.records import PointOutcome
from bedplate.engines.external.prepare import PROGRAMS_KEY, read_folder
from bedplate.host.command import Commands
from bedplate.host.native_driver import LIBFUSE3, library_requirement
from bedplate.host.recorder import recorder_reasons
from bedplate.model import codec
from bedplate.model.cell import (
    JOURNAL_IN_RAM,
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    FilesystemLevels,
    RunSpec,
)
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome, RunRecord, ScratchDevice, Validity, VisitRequest
from bedplate.units import MIB, parse_size
from bedplate.workloads.faulty_disk.figures import VALIDITY, evidence_of

if TYPE_CHECKING:
    from pathlib import Path

    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.third_lane]


@pytest.fixture(scope="module")
def drivers() -> dict[str, str]:
    requirement = library_requirement(LIBFUSE3, reason="the power-cut recorder", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    return dict(prepare_drivers(["faulty_disk"], ["lmdb"]))


def tried(
    bench: Bench,
    drivers: dict[str, str],
    *faults: str,
    engine: str = "lmdb",
    filesystem: FilesystemLevels | None = None,
    settings: dict[str, Any] | None = None,
    tries: int = 1,
    seconds: int = 1,
    image: str = "512 MB",
    programs: Path | None = None,
) -> dict[str, list[FaultRecord]]:
    """What an engine on a file system made of them, by their names, in their order; the run may be believed."""
    outside = None
    if filesystem is not None and filesystem.journal_device is not None:
        outside = ScratchDevice(image_bytes=128 * MIB)
    asked: VisitRequest = bench.request(filesystem, journal_device=outside)
    is_built = engine == "postgresql"
    cluster = ClusterLevels(settings=Levels(settings or {}))
    if programs is not None:
        folder = read_folder(programs)
        cluster = ClusterLevels(settings=Levels(programs=folder.digest), configuration=folder.text)
        drivers = {**drivers, PROGRAMS_KEY: str(folder.path)}
    cell = Cell(
        asked.cell.device,
        asked.cell.kernel,
        asked.cell.filesystem,
        asked.cell.build if is_built else BuildLevels.unbuilt(engine),
        cluster,
    )
    dataset = Dataset(
        "faulty_disk", Levels(engine=engine, image_bytes=parse_size(image), clients=2, duration_s=seconds)
    )
    run = RunSpec("faulty-disk", "faulty_disk", Levels(faults=",".join(faults), tries=tries, seed=3))
    build = asked.build if is_built else None
    bench.live(replace(asked, cell=cell, build=build, dataset=dataset, runs=(run,), native_drivers=drivers))
    (directory,) = (bench.directory / "runs").iterdir()
    record = codec.read(RunRecord, directory / "record.json")
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    found = read_tries(directory)
    assert (Validity.VALID, ()) == VALIDITY.judge(evidence_of(found, len(faults) * tries))
    by_name: dict[str, list[FaultRecord]] = {}
    for each in (*found.controls, *found.tried):
        by_name.setdefault(each.fault, []).append(each)
    return by_name


def test_a_write_that_fails_stops_the_engine_and_loses_nothing_that_it_acknowledged(
    bench: Bench, drivers: dict[str, str]
) -> None:
    faults = (
        *("write-once-data", "write-once-log", "full", "rot-block-superblock", "lost-once-data"),
        *("unreadable-data", "unreadable-superblock"),
    )
    found = {name: tries[0] for name, tries in tried(bench, drivers, *faults).items()}
    whole, lost = found["control-none"], found["control-lost"]
    assert (FaultVerdict.WENT_ON, (), 0) == (whole.verdict, whole.detected, whole.hits)
    assert 0 < whole.acknowledged
    # The disk lost everything from a moment on, as a cut there would: the oracle sees it, and the file system has nothing to say.
    assert (FaultVerdict.LOST_SILENT, PointOutcome.LOST) == (lost.verdict, lost.left)
    assert 0 < lost.lost_transactions < lost.acknowledged
    assert 1 < lost.hits
    once = found["write-once-data"]
    assert (1, Seen.STOPPED, True) == (once.hits, once.seen, once.writable)
    assert (FaultVerdict.STOPPED, 0) == (once.verdict, once.lost_transactions)
    assert Detected.ENGINE in once.detected
    assert once.hit_at is not None
    assert 4096 <= (once.hit_bytes or 0)
    nowhere = found["write-once-log"]
    assert (FaultVerdict.NOT_HIT, "the engine has no log of its own") == (nowhere.verdict, nowhere.no_result)
    assert 1 == found["full"].hits
    assert not found["full"].verdict.is_lost
    rotten = found["rot-block-superblock"]
    assert (1, FaultVerdict.REPAIRED) == (rotten.hits, rotten.verdict)
    assert Detected.FILE_SYSTEM in rotten.detected
    # ext4 has its superblock in 1024 bytes: no more of it changed.
    assert (1024, 1024) == (rotten.hit_at, rotten.hit_bytes)
    # A block of the only file: whoever reads it is told.
    unread = found["unreadable-data"]
    assert (1, 4096) == (unread.hits, unread.hit_bytes), unread
    assert unread.detected or FaultVerdict.NO_TRACE is unread.verdict, unread
    unread = found["unreadable-superblock"]
    assert (1, 0, 4096) == (unread.hits, unread.hit_at, unread.hit_bytes), unread
    # `e2fsck -y` takes a copy where a checksum does not fit, and not where the first one cannot be read: it names `-b`.
    assert (FaultVerdict.LOST_DETECTED, (Detected.FILE_SYSTEM,)) == (unread.verdict, unread.detected), unread
    quiet = found["lost-once-data"]
    assert quiet.verdict.is_lost or (FaultVerdict.NO_TRACE, ()) == (quiet.verdict, quiet.detected)


HANGS = """#!/usr/bin/env python3
import os, signal, sys
print("begin", flush=True)
file = os.open(f"{sys.argv[1]}/number", os.O_RDWR | os.O_CREAT, 0o600)
number = 0
while True:
    number += 1
    os.pwrite(file, b"%4095d\\n" % number, 0)
    try:
        os.fdatasync(file)
    except OSError:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pause()
    print("ack 0", number, flush=True)
"""
CHECKS = """#!/usr/bin/env python3
import json, sys
with open(f"{sys.argv[1]}/number") as file:
    print(json.dumps({"clients": {"0": int(file.read() or 0)}}))
"""


def test_an_engine_that_neither_goes_on_nor_ends_has_hung(
    bench: Bench, drivers: dict[str, str], tmp_path: Path
) -> None:
    programs = {"writer": HANGS, "checker": CHECKS, "engine.toml": 'name = "stubborn"\n'}
    tmp_path.chmod(0o755)
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    found = tried(bench, drivers, "write-once-data", engine="own-engine", programs=tmp_path)
    (hung,) = found["write-once-data"]
    assert (1, Seen.HUNG, FaultVerdict.HUNG, 0) == (
        hung.hits,
        hung.seen,
        hung.verdict,
        hung.lost_transactions,
    ), hung
    assert "after SIGTERM" in hung.said[0]
    assert Detected.ENGINE not in hung.detected
    assert [] == bench.left_behind()


def test_what_the_file_system_keeps_for_itself_fails_and_rots_too(
    bench: Bench, drivers: dict[str, str]
) -> None:
    faults = (
        *("write-once-journal", "write-once-metadata", "lost-once-journal"),
        *("rot-block-journal", "rot-block-metadata", "rot-sector-inode"),
    )
    found = {
        name: tries[0] for name, tries in tried(bench, drivers, *faults, image="1 GB", seconds=2).items()
    }
    for name in ("write-once-journal", "write-once-metadata"):
        record = found[name]
        assert (1, False) == (record.hits, record.verdict.is_lost), record
        assert record.no_result is None, record
    # A journal that cannot be written ends in a file system that takes no more.
    assert Detected.FILE_SYSTEM in found["write-once-journal"].detected
    for name in ("lost-once-journal", "rot-block-journal", "rot-block-metadata", "rot-sector-inode"):
        record = found[name]
        assert 1 == record.hits, record
        assert record.hit_at is not None
        assert FaultVerdict.NOT_HIT is not record.verdict
    # An inode of the only file that has data: its checksum does not fit, and the file cannot be opened.
    inode = found["rot-sector-inode"]
    assert (256, True) == (inode.hit_bytes, inode.verdict is not FaultVerdict.WENT_ON), inode


def test_rot_below_btrfs_is_found_by_its_chunks_and_refused_by_its_checksums(
    bench: Bench, drivers: dict[str, str]
) -> None:
    found = tried(
        bench,
        drivers,
        *("rot-block-data", "write-once-metadata", "write-once-data"),
        filesystem=FilesystemLevels("btrfs"),
        image="1 GB",
        seconds=2,
    )
    (rotten,) = found["rot-block-data"]
    assert (1, 4096) == (rotten.hits, rotten.hit_bytes)
    # The kernel reads ahead, and so may meet a page that no question is about.
    read_ahead = (FaultVerdict.WENT_ON, (Detected.FILE_SYSTEM,))
    assert rotten.verdict in (FaultVerdict.LOST_DETECTED, FaultVerdict.NO_TRACE) or read_ahead == (
        rotten.verdict,
        rotten.detected,
    ), rotten
    if rotten.verdict is not FaultVerdict.NO_TRACE:
        assert any("csum failed" in text for text in rotten.found), rotten
    (own,) = found["write-once-metadata"]
    assert 1 == own.hits, own
    assert not own.verdict.is_lost
    (copied,) = found["write-once-data"]
    assert (FaultVerdict.NOT_HIT, 0) == (copied.verdict, copied.hits)
    assert "to a new place" in (copied.no_result or "")


def test_what_stood_in_an_external_journal_is_there_when_the_file_system_is_mounted_anew(
    bench: Bench, drivers: dict[str, str]
) -> None:
    outside = FilesystemLevels("ext4", journal="external", journal_device=JOURNAL_IN_RAM)
    found = tried(bench, drivers, "write-once-data", filesystem=outside)
    (once,) = found["write-once-data"]
    assert (FaultVerdict.STOPPED, 1, 0) == (once.verdict, once.hits, once.lost_transactions)
    assert not once.hit_journal


@pytest.mark.parametrize("type_", ["ext4", "xfs"])
def test_the_device_of_an_external_journal_fails_and_rots_too(
    bench: Bench, drivers: dict[str, str], type_: str
) -> None:
    outside = FilesystemLevels(type_, journal="external", journal_device=JOURNAL_IN_RAM)
    faults = ("write-once-journal", "write-on-journal", "rot-block-journal", "unreadable-journal")
    found = tried(bench, drivers, *faults, filesystem=outside, image="1 GB", seconds=2)
    for name in faults:
        (record,) = found[name]
        assert record.hits >= 1, record
        assert record.hit_journal, record
        assert record.verdict is not FaultVerdict.LOST_SILENT, record
    # A journal that cannot be written ends in a file system that takes no more.
    (never,) = found["write-on-journal"]
    assert (False, True) == (never.writable, Detected.FILE_SYSTEM in never.detected), never
    (unread,) = found["unreadable-journal"]
    assert 4096 == unread.hit_bytes, unread


def test_page_images_decide_whether_one_write_that_fails_takes_what_was_acknowledged(
    bench: Bench, drivers: dict[str, str]
) -> None:
    """PostgreSQL stops and recovers either way; without images recovery finds the new page in the page cache and skips it.

    ext4 of newer kernels forgets what is written again into new blocks whatever PostgreSQL does, and with `dioread_lock` it does not.
    """
    results = {
        images: [
            record
            for record in tried(
                bench,
                drivers,
                "write-once-data",
                engine="postgresql",
                filesystem=FilesystemLevels("ext4", mount_options=("dioread_lock",)),
                settings={"full_page_writes": images},
                tries=count,
                # The clients end behind the hit; on a busy machine a checkpoint takes its time to come there.
                seconds=6,
            )["write-once-data"]
            if record.is_result
        ]
        for images, count in (("on", 2), ("off", 3))
    }
    for record in (*results["on"], *results["off"]):
        assert (1, Seen.STOPPED) == (record.hits, record.seen), record
        assert Detected.ENGINE in record.detected
    assert {(FaultVerdict.STOPPED, 0)} == {
        (record.verdict, record.lost_transactions) for record in results["on"]
    }, results["on"]
    assert FaultVerdict.LOST_SILENT in {record.verdict for record in results["off"]}, results["off"]


def test_a_loss_behind_a_block_of_the_log_that_cannot_be_read_is_said_by_postgresql(
    bench: Bench, drivers: dict[str, str]
) -> None:
    """It takes that block for the end of its log, and has a line of it there at the level LOG."""
    tries = tried(
        bench,
        drivers,
        "unreadable-log",
        engine="postgresql",
        filesystem=FilesystemLevels("xfs"),
        tries=4,
        seconds=4,
    )["unreadable-log"]
    lost = [record for record in tries if record.verdict.is_lost]
    # Some blocks are of a segment that nobody reads.
    assert lost, tries
    for record in lost:
        assert (FaultVerdict.LOST_DETECTED, True) == (record.verdict, Detected.ENGINE in record.detected), (
            record
        )


@pytest.mark.parametrize("filesystem", ["ext2", "ext3"])
def test_a_file_system_that_allocates_nothing_ahead_is_filled_too(
    filesystem: str, bench: Bench, drivers: dict[str, str]
) -> None:
    (full,) = tried(
        bench, drivers, "full", filesystem=FilesystemLevels(filesystem), image="128 MB", seconds=4
    )["full"]
    assert 1 == full.hits, full
    assert not full.verdict.is_lost
