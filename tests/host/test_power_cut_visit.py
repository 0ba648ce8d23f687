"""Power cuts for real: a short recording on ext4 and all that becomes of it, and what a killed visit leaves."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.campaign.preparation import prepare_drivers
from bedplate.cuts.records import (
    CONTROLS,
    LOG_FILE,
    POINTS_FILE,
    RECORDING_FILE,
    SMALL_LOG_BYTES,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
)
from bedplate.engines.mariadb.prepare import PREPARATION as MARIADB
from bedplate.errors import EXIT_INTERRUPTED, BedplateError
from bedplate.filesystem.blocks import JOURNALLED
from bedplate.host.block_tree import backing_file
from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans
from bedplate.host.native_driver import LIBFUSE3, library_requirement
from bedplate.host.process import wait_until
from bedplate.host.recorder import recorder_reasons
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, Dataset, FilesystemLevels, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild, Outcome, RunRecord, VisitRecord, VisitRequest
from bedplate.units import MIB
from bedplate.workloads.power_cut.bench import JOB_FILE, ReplayJob

if TYPE_CHECKING:
    from collections.abc import Callable

    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

SOURCES = Path(__file__).resolve().parents[2]
POINTS = 12


@pytest.fixture(scope="module")
def drivers() -> dict[str, str]:
    requirement = library_requirement(LIBFUSE3, reason="the power-cut recorder", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    return dict(prepare_drivers(["power_cut"], ["postgresql", "lmdb"]))


def request(
    bench: Bench,
    drivers: dict[str, str],
    *,
    engine: str = "postgresql",
    filesystem: FilesystemLevels | None = None,
    points: int = POINTS,
    settings: dict[str, Any] | None = None,
    build: EngineBuild | None = None,
) -> VisitRequest:
    asked: VisitRequest = bench.request(filesystem)
    is_built = engine == "postgresql"
    cell = Cell(
        asked.cell.device,
        asked.cell.kernel,
        asked.cell.filesystem,
        asked.cell.build if is_built else BuildLevels.unbuilt(engine),
        ClusterLevels(settings=Levels(settings or {})),
    )
    # What is sought hangs on what the recording happens to hold.
    levels = Levels(
        points=points,
        profiles="subset-4k,subset-512,lost,ordered",
        cache_bytes=8 * MIB,
        seed=3,
        sought=0,
        placed=0,
    )
    return replace(
        asked,
        cell=cell,
        build=asked.build if is_built else build,
        dataset=Dataset("power_cut", Levels(engine=engine, image_bytes=512 * MIB, clients=2, duration_s=1)),
        runs=(RunSpec("power-cut", "power_cut", levels),),
        native_drivers=drivers,
    )


class Cut:
    """What one visit recorded of its power cuts."""

    def __init__(
        self, bench: Bench, asked: VisitRequest, on_line: Callable[[str], None] = lambda _: None
    ) -> None:
        self.visit: VisitRecord = bench.live(asked, on_line)
        (self.directory,) = (bench.directory / "runs").iterdir()
        self.run = codec.read(RunRecord, self.directory / "record.json")
        assert (Outcome.COMPLETED, ()) == (self.run.outcome, self.run.reasons)
        self.facts = codec.read(RecordingFacts, self.directory / RECORDING_FILE)
        lines = (self.directory / POINTS_FILE).read_text().splitlines()
        self.points = [codec.loads(PointRecord, line) for line in lines]
        self.job = codec.read(ReplayJob, self.directory / JOB_FILE)
        assert sorted(record.point.number for record in self.points) == list(range(len(self.points)))
        assert {record.point for record in self.points} == set(self.job.points)

    def of(self, *, control: bool = False, ordered: bool = False) -> list[PointRecord]:
        return [
            record
            for record in self.points
            if record.point.control is control and (record.point.profile is Profile.ORDERED) is ordered
        ]


def test_ext4_with_barriers_loses_nothing(bench: Bench, drivers: dict[str, str]) -> None:
    cut = Cut(bench, request(bench, drivers))
    assert len(cut.points) == POINTS + CONTROLS
    assert [PointOutcome.OK] * POINTS == [record.outcome for record in (*cut.of(), *cut.of(ordered=True))], [
        record.problems for record in cut.points
    ]
    assert all(record.outcome.is_bad for record in cut.of(control=True))
    assert all(record.mount_s is not None and record.engine_start_s is not None for record in cut.of())
    assert cut.facts.acknowledged > 0
    assert cut.facts.flushes >= cut.facts.acknowledged / 2
    assert cut.facts.bound_ms is None
    # Others wrote to it too, in its last part, and whoever on this machine called sync(2) was counted.
    assert cut.facts.pressure_from is not None
    assert cut.facts.measured_from < cut.facts.pressure_from < cut.facts.measured_from + cut.facts.entries
    assert cut.facts.foreign_syncs is not None
    assert "pressure" not in cut.facts.facts
    # A good run's log is small, and kept to be looked at.
    assert (cut.directory / LOG_FILE).stat().st_size <= SMALL_LOG_BYTES
    assert [] == bench.left_behind()


def test_ext4_without_barriers_loses_and_any_point_can_be_built_again(
    bench: Bench, drivers: dict[str, str]
) -> None:
    cut = Cut(bench, request(bench, drivers, filesystem=FilesystemLevels("ext4", barrier=False)))
    volatile = cut.of()
    bad = [record for record in volatile if record.outcome.is_bad]
    assert len(bad) >= len(volatile) - 1
    assert all(record.outcome is PointOutcome.OK for record in cut.of(ordered=True))
    assert cut.facts.flushes <= 4
    with lzma.open(cut.directory / LOG_FILE) as log:
        assert log.read(8) == (0x6A736677736872).to_bytes(8, "little")

    chosen = bad[0]
    study = bench.base / "study"
    stored = study / "visits" / "ext4" / "dataset" / "1.1"
    stored.parent.mkdir(parents=True)
    shutil.copytree(bench.directory, stored)
    # All that the command asks of a study but its visits.
    (study / "study.json").write_text('{"format_version": 1}')
    images = []
    for name in ("first", "second"):
        keep = bench.base / name
        said = replayed(bench, study, chosen.point.number, keep)
        assert f"outcome: {chosen.outcome.value}" in said
        assert any(chosen.problems[0][:40] in line for line in said.splitlines()), (said, chosen)
        images.append((keep / "disk").read_bytes())
    assert images[0] == images[1]
    assert len(images[0]) == 512 * MIB
    assert [] == bench.left_behind()


def replayed(bench: Bench, study: Path, number: int, keep: Path) -> str:
    code = (
        "import sys; from pathlib import Path; from bedplate.cli.cuts import replay; "
        "sys.exit(replay(Path(sys.argv[1]), 'power-cut', int(sys.argv[2]), keep=Path(sys.argv[3])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(study), str(number), str(keep)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCES / "src"), "BEDPLATE_STATE": str(bench.state)},
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_lmdb_without_metasync_loses_one_commit_at_most(bench: Bench, drivers: dict[str, str]) -> None:
    cut = Cut(bench, request(bench, drivers, engine="lmdb", settings={"sync": "nometasync"}))
    assert {PointOutcome.OK, PointOutcome.LOST} >= {record.outcome for record in cut.of()}
    assert all(record.lost_transactions <= 1 for record in (*cut.of(), *cut.of(ordered=True)))
    assert any(record.lost_transactions == 1 for record in cut.of())
    assert cut.facts.bound_transactions == 1
    assert all(record.outcome.is_bad for record in cut.of(control=True))


def test_mariadb_keeps_what_it_acknowledged(bench: Bench, drivers: dict[str, str]) -> None:
    try:
        build = MARIADB.ensure(BuildLevels.unbuilt("mariadb"), lambda _: None, tarball=None)
    except BedplateError as error:
        pytest.skip(f"the packages cannot be had here: {error}")
    # A start of the server each, and no more than that: four, and the controls.
    cut = Cut(bench, request(bench, drivers, engine="mariadb", build=build, points=4))
    assert [PointOutcome.OK] * 4 == [record.outcome for record in (*cut.of(), *cut.of(ordered=True))]
    assert all(record.outcome.is_bad for record in cut.of(control=True))
    assert cut.facts.acknowledged > 0
    assert cut.facts.flushes >= cut.facts.acknowledged / 2
    assert "1" == cut.facts.facts["innodb_flush_log_at_trx_commit"]
    assert [] == bench.left_behind()


@pytest.mark.parametrize("moment", ["recording", "points"])
def test_a_visit_that_is_killed_leaves_nothing(bench: Bench, drivers: dict[str, str], moment: str) -> None:
    visit = started_until(moment, bench, drivers)
    visit.send_signal(signal.SIGKILL)
    visit.wait()
    report = release_orphans(bench.state, Commands())
    assert () == report.problems
    assert [] == bench.left_behind()
    assert_no_loops(visit.pid)


@pytest.mark.parametrize("moment", ["recording", "points"])
def test_a_visit_that_is_told_to_end_gives_everything_back(
    bench: Bench, drivers: dict[str, str], moment: str
) -> None:
    visit = started_until(moment, bench, drivers)
    visit.send_signal(signal.SIGTERM)
    assert EXIT_INTERRUPTED == visit.wait(AT_MOST_S), (bench.base / "errors").read_text()
    assert [] == bench.left_behind()
    assert_no_loops(visit.pid)


def started_until(moment: str, bench: Bench, drivers: dict[str, str]) -> subprocess.Popen[str]:
    """A visit in which the clients are at work (`recording`), or every worker (`points`)."""
    visit: subprocess.Popen[str] = bench.start(request(bench, drivers, points=200))
    assert visit.stdout is not None
    seen = 0
    for line in visit.stdout:
        event = json.loads(line)
        if event["event"] == "item" and event["phase"] == moment:
            seen += 1
            if seen == (2 if moment == "recording" else 8):
                break
    # Between two points a worker has none.
    assert wait_until(lambda: bool(loops_of(visit.pid)), deadline_s=AT_MOST_S)
    return visit


def assert_no_loops(pid: int) -> None:
    # The kernel takes a killed namespace apart by itself, and tells nobody when it has.
    assert wait_until(lambda: not loops_of(pid), deadline_s=AT_MOST_S), loops_of(pid)


def loops_of(pid: int) -> list[str]:
    """Loop devices over files in the visit's folder in memory, where every image of a power cut lies."""
    return [
        f"{entry.name} {file}"
        for entry in Path("/sys/block").glob("loop*")
        if (file := backing_file(entry.name)) is not None and f"/bedplate-{pid}-" in file
    ]


def in_little_memory(bench: Bench, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    """Visits get mounts of their own, in which /dev/shm is small: a quarter of it is the log's."""
    program = bench.base / "in-little-memory"
    program.write_text(
        "#!/bin/sh\nexec unshare --mount sh -c "
        f'\'mount -t tmpfs -o size={size} none /dev/shm && exec {sys.executable} "$@"\' visit "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def long_lmdb(bench: Bench, drivers: dict[str, str], *, duration_s: int) -> VisitRequest:
    asked = request(bench, drivers, engine="lmdb", settings={"sync": "full"}, points=8)
    levels = Levels({**asked.dataset.levels, "duration_s": duration_s})
    return replace(asked, dataset=replace(asked.dataset, levels=levels))


def test_a_log_with_little_room_is_dealt_out_over_the_whole_recording(
    bench: Bench, drivers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full speed fills these 100 MB in a second."""
    in_little_memory(bench, monkeypatch, "400m")
    cut = Cut(bench, long_lmdb(bench, drivers, duration_s=6))
    assert "ended_early" not in cut.facts.facts
    assert cut.facts.seconds >= 6
    assert 0 < cut.facts.write_bytes < 100 * MIB
    assert cut.facts.acknowledged > 0
    assert [PointOutcome.OK] * 8 == [record.outcome for record in (*cut.of(), *cut.of(ordered=True))]


def test_metadata_that_ext4_writes_to_its_place_is_sought(bench: Bench, drivers: dict[str, str]) -> None:
    """By itself it goes there once it is 30 s old, and a recording of less has none to tear."""
    asked = long_lmdb(bench, drivers, duration_s=6)
    (run,) = asked.runs
    run = replace(run, levels=Levels({**run.levels, "sought": 4}))
    cut = Cut(bench, replace(asked, runs=(run,)))
    assert {JOURNALLED} == set(cut.facts.waiting)
    sought = [record for record in cut.points if record.point.placement is Placement.SOUGHT]
    assert [PointOutcome.OK] * 4 == [record.outcome for record in sought]


@pytest.mark.skipif(os.cpu_count() == 1, reason="a single worker has room where several have none")
def test_images_without_room_are_an_error_and_no_verdict(
    bench: Bench, drivers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_little_memory(bench, monkeypatch, "150m")
    bench.live(long_lmdb(bench, drivers, duration_s=6))
    (directory,) = (bench.directory / "runs").iterdir()
    record = codec.read(RunRecord, directory / "record.json")
    assert record.outcome is Outcome.FAILED
    # Either the images find no room, or the recorded disk itself did not.
    words = ("a cut is not examined without", "Input/output error")
    assert any(word in reason.sentence for word in words for reason in record.reasons), record.reasons
    points = directory / POINTS_FILE
    assert not points.exists() or points.read_text() == ""
