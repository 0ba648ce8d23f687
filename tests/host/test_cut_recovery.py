"""A recovery that is cut again, for real: the toy's fault that no single cut shows, and its copy without one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.tools.recorder_lab import recorder_driver
from tests.support.tools.written_log import FLUSH, MARK, Written, written_log

from bedplate.cuts.choice import Recut
from bedplate.cuts.records import RECOVERY_LOG_FILE, CutPoint, Placement, PointOutcome, PointRecord, Profile
from bedplate.engines.external.prepare import PROGRAMS_KEY
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.ledger import NoLedger
from bedplate.host.scratch_device import create_blank, passing_loop
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.units import GIB, MIB
from bedplate.visit.cuts import Subject
from bedplate.workloads.power_cut.bench import DATA_DIRECTORY, ReplayJob, Workers, image_of, judge_alone
from bedplate.workloads.power_cut.log import unpack_log

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

TOY = Path(__file__).resolve().parents[2] / "examples" / "engines" / "toy"
IMAGE_BYTES = 64 * MIB
# By itself ext4 begins to write a file that is renamed over another one, and whether that ends in time is luck.
EXT4 = FilesystemLevels("ext4", mount_options=("noauto_da_alloc",))
COMMITTED = 3


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bedplate-test-recovery-", dir="/dev/shm") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def toy_store() -> ModuleType:
    specification = importlib.util.spec_from_file_location("toy_store", TOY / "store.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def torn_image(memory: Path) -> Path:
    """ext4 with a toy store of three transactions and the beginning of a fourth, which a cut tore."""
    image, mount_point, account = memory / "torn", memory / "mount", server_account()
    mount_point.mkdir()
    os.close(create_blank(image, IMAGE_BYTES))
    filesystem, toy = filesystem_for(EXT4.type), toy_store()
    with passing_loop(image) as device:
        site = Site(EXT4, device, mount_point, Commands())
        filesystem.mkfs(site)
        filesystem.mount(site)
        try:
            data = mount_point / DATA_DIRECTORY
            data.mkdir(mode=0o700)
            store = toy.Store(str(data))
            for number in range(1, COMMITTED + 1):
                store.commit(0, number, toy.content_of(0, number))
            os.pwrite(store._file, b"torn" * 100, store._at)
            os.close(store._file)
            for path in (data, *data.iterdir()):
                shutil.chown(path, account.uid, account.gid)
        finally:
            filesystem.unmount(site)
    return image


def log_of(image: Path, path: Path) -> tuple[Path, int]:
    """A log whose end is that image, and how many entries it has."""
    content = image.read_bytes()
    size = 64 * 1024
    entries = [
        Written(sector=start // 512, data=content[start : start + size])
        for start in range(0, len(content), size)
        if any(content[start : start + size])
    ]
    marks = [Written(flags=MARK, text=b"ack 0 %d" % number) for number in range(1, COMMITTED + 1)]
    every = [*entries, Written(flags=FLUSH), *marks]
    return written_log(path, every), len(every)


def job_of(fault: str, *, position: int, cuts: int) -> ReplayJob:
    profiles = (Profile.ORDERED, Profile.SUBSET_512)
    return ReplayJob(
        filesystem=EXT4,
        subject=Subject("own-engine", 0, Levels(fault=fault), Levels({PROGRAMS_KEY: str(TOY)})),
        points=tuple(
            CutPoint(number, position, profile, Placement.UNIFORM, number)
            for number, profile in enumerate(profiles)
        ),
        image_bytes=IMAGE_BYTES,
        window_bytes=8 * MIB,
        measured_from=0,
        recuts=(Recut(1, 2, cuts, 5),),
    )


@pytest.mark.parametrize(("fault", "cuts"), [("recovery-without-fsync", 10), ("none", 4)])
def test_what_no_cut_shows_a_cut_in_recovery_does(memory: Path, fault: str, cuts: int) -> None:
    log, position = log_of(torn_image(memory), memory / "log")
    job, kept = job_of(fault, position=position, cuts=cuts), memory / "kept"
    kept.mkdir()
    told: list[str] = []
    more = ("--recorder", str(recorder_driver()), "--kept", str(kept))
    with Workers(log, job, 1, memory=memory, ledger=NoLedger(), worker_options=more) as running:
        records = {record.point.number: record for record in running.records(told.append)}
    assert [] == told
    # Both cuts, each in the recovery from the second of them, and the whole of it.
    assert list(range(2 + cuts + 1)) == sorted(records)
    assert {PointOutcome.OK} == {records[number].outcome for number in (0, 1, 2 + cuts)}
    assert {None, 1} == {record.point.recovery_of for record in records.values()}
    bad = [record for record in records.values() if record.outcome.is_bad]
    packed = kept / RECOVERY_LOG_FILE.format(first=1)
    assert bool(bad) is packed.exists() is (fault != "none")
    if bad:
        assert {(PointOutcome.LOST, COMMITTED)} == {(each.outcome, each.lost_transactions) for each in bad}
        require_replayed(memory, job, bad[0], kept)


# A recovery of some 20 writes with two that are bad, and one that is bad nowhere, whose second try is.
@pytest.mark.parametrize(
    ("fault", "exhaustive", "bad_seconds", "bad_thirds"),
    [
        ("recovery-truncates-first", 40, True, False),
        ("interrupted-recovery-not-synced", 100, False, True),
        ("none", 60, False, False),
    ],
)
def test_what_one_write_of_a_recovery_shows_is_not_left_to_chance(
    memory: Path, fault: str, exhaustive: int, *, bad_seconds: bool, bad_thirds: bool
) -> None:
    log, position = log_of(torn_image(memory), memory / "log")
    job, kept = job_of(fault, position=position, cuts=0), memory / "kept"
    job = replace(job, recuts=(replace(job.recuts[0], exhaustive=exhaustive),))
    kept.mkdir()
    more = ("--recorder", str(recorder_driver()), "--kept", str(kept))
    with Workers(log, job, 1, memory=memory, ledger=NoLedger(), worker_options=more) as running:
        records = list(running.records(lambda _: None))
    (whole,) = [each for each in records if each.recovery_writes is not None and each.point.second is None]
    every = [each for each in records if each.point.placement is Placement.EVERY]
    seconds = [each for each in every if each.point.second is None]
    in_order = {each.point.position for each in seconds if each.point.profile is Profile.ORDERED}
    assert whole.recovery_writes == len(in_order) + 1
    assert len(every) <= exhaustive
    assert len(records) == len({each.point.number for each in records}) <= job.most_records
    bad = [each for each in every if each.outcome.is_bad]
    assert bad_seconds is any(each.point.second is None for each in bad)
    assert bad_thirds is any(each.point.second is not None for each in bad)
    if bad:
        require_replayed(memory, job, bad[-1], kept)


def require_replayed(memory: Path, job: ReplayJob, bad: PointRecord, kept: Path) -> None:
    """From the logs, and the image of the cut in recovery is kept."""
    keep, recoveries = memory / "image", [memory / name for name in bad.point.recovery_log_files]
    keep.mkdir()
    for path in recoveries:
        unpack_log(kept / path.name, path, GIB)
    again = judge_alone(
        memory / "log", job, bad.point, memory=memory, ledger=NoLedger(), recoveries=recoveries
    )
    built = image_of(memory / "log", job, bad.point, memory=memory, keep=keep, recoveries=recoveries)
    assert (bad.outcome, bad.lost_transactions) == (again.outcome, again.lost_transactions)
    assert keep / "disk" == built.disk
    assert built.disk.exists()
