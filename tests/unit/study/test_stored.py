from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.planted_reasons import planted

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.figure import DEFINITIONS_VERSION, RunFigures, Status
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.metrics import figure
from bedplate.model.plan import ScheduledVisit
from bedplate.model.visit import (
    FORMAT_VERSION,
    Durability,
    Outcome,
    ReadBack,
    Validity,
    VisitKey,
    VisitRecord,
)
from bedplate.study.records import StudyFacts, StudySchedule
from bedplate.study.stored import read_study

FILESYSTEM = FilesystemLevels("ext4", block_size_bytes=1024, barrier=False)
CELL = Cell(DeviceLevels(), KernelLevels(), FILESYSTEM, BuildLevels(), ClusterLevels())
DATASET = Dataset("pgbench", Levels(scale=1))
RUNS = (RunSpec("ro", "pgbench"), RunSpec("rw", "pgbench"))
MACHINE = Machine("h", "d", "6.1", "x86_64", "cpu", 2, 2**32, 4096, ("ext4",), 2, True, None, "b", True)
FIGURES = RunFigures(
    format_version=FORMAT_VERSION,
    run="ro",
    run_id=RUNS[0].id,
    workload="pgbench",
    outcome=Outcome.COMPLETED,
    reasons=(),
    validity=Validity.SUSPECT,
    validity_reasons=planted("steal"),
    measure_start_wall_s=1.0,
    warmup_s=None,
    duration_s=60.0,
    figures=(figure("tps", 100.0), figure("load_s", None, phase="load", reason=planted("not timed")[0])),
)


def write_study(path: Path, *, order: tuple[int, ...] = (2, 1)) -> Path:
    """Two repetitions in the given order; the first attempt at the first fails before its second run."""
    path.mkdir()
    visits = tuple(ScheduledVisit(i, CELL.id, DATASET.id, repetition) for i, repetition in enumerate(order))
    runs = {DATASET.id: RUNS}
    codec.write(
        path / "schedule.json",
        StudySchedule(1, 1, 2, {CELL.id: CELL}, {DATASET.id: DATASET}, runs, (), visits),
    )
    codec.write(path / "study.json", StudyFacts(FORMAT_VERSION, "t", "2026", "0.1", "p", "m", "6.1", ()))
    codec.write(path / "machine.json", MACHINE)
    (path / "plan.toml").write_text("title = 't'\n")
    for repetition, attempt, outcome in (
        (1, 1, Outcome.FAILED),
        (1, 2, Outcome.COMPLETED),
        (2, 1, Outcome.COMPLETED),
    ):
        names = ("ro",) if outcome is Outcome.FAILED else ("ro", "rw")
        write_visit(path, VisitKey(CELL.id, DATASET.id, repetition, attempt), outcome, names)
    return path


def write_visit(study: Path, key: VisitKey, outcome: Outcome, names: tuple[str, ...]) -> Path:
    directory = study / "visits" / ("canary" if key.canary else key.cell) / key.dataset
    directory /= f"{key.repetition}.{key.attempt}"
    for number, name in enumerate(names, start=1):
        run_id = next(spec.id for spec in RUNS if spec.name == name)
        run = directory / "runs" / f"{number:02d}-{run_id}"
        run.mkdir(parents=True)
        codec.write(run / "run.json", replace(FIGURES, run=name, run_id=run_id))
    record = VisitRecord(
        format_version=FORMAT_VERSION,
        key=key,
        cell=CELL,
        dataset=DATASET,
        outcome=outcome,
        reasons=planted("the server died") if outcome is Outcome.FAILED else (),
        failed_step=None,
        started_wall_s=5.0,
        seconds=1.0,
        boot_id="b",
        executor="local",
        comparisons=(ReadBack("filesystem.block_size_bytes", 1024, 2048, "superblock", True),),
        durability=Durability("unsafe", "durable", "declared"),
    )
    codec.write(directory / "visit.json", record)
    return directory


def test_visits_come_in_the_order_of_the_schedule_and_then_of_their_attempts(tmp_path: Path) -> None:
    study = read_study(write_study(tmp_path / "s"))
    expected = [(2, 1), (1, 1), (1, 2)]
    assert expected == [(v.record.key.repetition, v.record.key.attempt) for v in study.visits]
    assert ["ro", "rw"] == [run.run for run in study.visits[0].runs]
    assert [f"01-{RUNS[0].id}", f"02-{RUNS[1].id}"] == [path.name for path in study.visits[0].run_directories]


def test_a_run_that_left_no_figures_has_begun_all_the_same(tmp_path: Path) -> None:
    path = write_study(tmp_path / "s")
    ro, rw = RUNS
    # The server died within the second run: its folder is there, its record is not.
    (path / "visits" / CELL.id / DATASET.id / "1.1" / "runs" / f"02-{rw.id}").mkdir()
    (path / "visits" / CELL.id / DATASET.id / "1.1" / "runs" / "notes").write_text("")
    _, first, second = read_study(path).visits
    assert ["ro"] == [run.run for run in first.runs]
    assert (f"01-{ro.id}", f"02-{rw.id}") == first.begun
    assert (True, True) == (first.has_begun(ro), first.has_begun(rw))
    assert not second.has_begun(RunSpec("rw", "pgbench", Levels(clients=2)))


@pytest.mark.parametrize("name", ["3.1.unfinished", "notes", "1.x", ".1.1", "01.1", "1.1~"])
def test_what_is_no_finished_visit_is_passed_over(tmp_path: Path, name: str) -> None:
    path = write_study(tmp_path / "s")
    foreign = path / "visits" / CELL.id / DATASET.id / name
    foreign.mkdir()
    (foreign / "visit.json").write_text('{"half')
    assert 3 == len(read_study(path).visits)


def test_a_damaged_visit_is_named_and_the_others_are_used(tmp_path: Path) -> None:
    path = write_study(tmp_path / "s")
    (path / "visits" / CELL.id / DATASET.id / "2.1" / "visit.json").write_text('{"half')
    study = read_study(path)
    assert [(1, 1), (1, 2)] == [(v.record.key.repetition, v.record.key.attempt) for v in study.visits]
    assert [((CELL.id, DATASET.id, 2), 1)] == [(each.place, each.attempt) for each in study.set_aside]
    assert "2.1/visit.json is not JSON" in study.set_aside[0].reasons[0]
    assert "1 visit is on the disk and not used" in study.marks[0]


def test_all_damaged_visits_are_named_at_once(tmp_path: Path) -> None:
    path = write_study(tmp_path / "s")
    for attempt in ("1.1", "2.1"):
        (path / "visits" / CELL.id / DATASET.id / attempt / "visit.json").write_text('{"half')
    assert ["1.1", "2.1"] == [each.directory.name for each in read_study(path).set_aside]


def test_an_earlier_attempt_does_not_stand_in_for_a_damaged_one(tmp_path: Path) -> None:
    path = write_study(tmp_path / "s")
    (path / "visits" / CELL.id / DATASET.id / "1.2" / "visit.json").unlink()
    study = read_study(path)
    assert ["2.1"] == [visit.directory.name for visit in study.visits]
    assert {"1.1", "1.2"} == {each.directory.name for each in study.set_aside}


def test_another_format_is_refused_before_its_records_are_read(tmp_path: Path) -> None:
    path = write_study(tmp_path / "s")
    facts = json.loads((path / "study.json").read_text())
    (path / "study.json").write_text(json.dumps({**facts, "format_version": 99}))
    (path / "schedule.json").write_text("{}")
    with pytest.raises(StudyError, match="of format 99"):
        read_study(path)


def test_no_study_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"is not a study: it has no study\.json"):
        read_study(tmp_path)


def test_a_figure_made_under_another_definition_is_absent_with_the_reason(tmp_path: Path) -> None:
    path = write_study(tmp_path / "s")
    file = next(path.glob("visits/*/*/1.1/runs/*/run.json"))
    rows = tuple(
        figure(name, 0.0)
        for name in ("tps", "device_writes_per_transaction", "journal_device_writes_per_transaction")
    )

    def read_again(definitions: int) -> list[tuple[float | None, Status]]:
        codec.write(file, replace(FIGURES, figures=rows, definitions=definitions))
        (run,) = next(visit for visit in read_study(path).visits if visit.directory.name == "1.1").runs
        assert all(row.reason for row in run.figures if row.status is Status.ABSENT)
        return [(row.value, row.status) for row in run.figures]

    measured, absent = (0.0, Status.MEASURED), (None, Status.ABSENT)
    assert [measured, absent, absent] == read_again(1)
    assert [measured, measured, measured] == read_again(DEFINITIONS_VERSION)
    # What the first versions wrote has no such field.
    older = json.loads(file.read_text())
    del older["definitions"]
    file.write_text(json.dumps(older))
    run = next(visit for visit in read_study(path).visits if visit.directory.name == "1.1").runs[0]
    assert Status.ABSENT is run.figures[1].status
