"""What no run can have come to is named with its file and not used, by `status` as by every other reader."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.study.test_stored import CELL, DATASET, FIGURES, RUNS, write_study

from bedplate.analysis.overview import overview
from bedplate.model import codec
from bedplate.model.cell import FilesystemLevels, RunSpec
from bedplate.model.figure import RunFigures, Scale
from bedplate.model.levels import Levels
from bedplate.model.metrics import figure
from bedplate.model.visit import Durability, VisitRecord
from bedplate.study.records import StudySchedule
from bedplate.study.store import read_progress
from bedplate.study.stored import read_study, verify_study

if TYPE_CHECKING:
    from collections.abc import Callable

TPS = FIGURES.figures[0]
RATIO = figure("shared_buffers_hit_ratio", 0.9)
CHANGES: dict[str, tuple[Callable[[RunFigures], RunFigures], str]] = {
    "twice": (
        lambda run: with_figures(run, TPS, replace(TPS, value=900.0)),
        "tps of 'measure' is in it 2 times",
    ),
    "more than all": (
        lambda run: with_figures(run, replace(RATIO, value=7.0)),
        "shared_buffers_hit_ratio is 7, and it is a part of a whole",
    ),
    "no number of a machine": (
        lambda run: with_figures(run, replace(TPS, value=1e300)),
        "tps is 1e+300, which nothing comes to",
    ),
    "without a value": (
        lambda run: with_figures(run, replace(TPS, value=None)),
        "tps is measured and has no value",
    ),
    "another run": (
        lambda run: replace(run, run="nobody"),
        "schedule.json has no run 'nobody' of this visit",
    ),
    "another run of that name": (
        lambda run: replace(run, run_id="ro-12345678"),
        f"it is the run 'ro-12345678' of 'pgbench', and schedule.json has '{RUNS[0].id}'",
    ),
    "another workload": (lambda run: replace(run, workload="tpch"), "of 'tpch', and schedule.json has"),
    "a later format": (lambda run: replace(run, format_version=3), "it is of format 3, not 1 or 2"),
}


def with_figures(run: RunFigures, *figures: object) -> RunFigures:
    return replace(run, figures=figures)  # type: ignore[arg-type]


def path_of(study: Path) -> Path:
    return study / "visits" / CELL.id / DATASET.id / "2.1" / "runs" / f"01-{RUNS[0].id}" / "run.json"


def require_named(study: Path, words: str) -> None:
    """One visit is not used, for the same reason whoever is asked."""
    found = read_study(study)
    (aside,) = found.set_aside
    assert 2 == len(found.visits)
    assert any(words in reason for reason in aside.reasons), aside.reasons
    progress = read_progress(study)
    assert (1, [aside]) == (progress.damaged, list(progress.set_aside))
    assert set(aside.reasons) <= set(verify_study(study).problems)
    assert any(words in mark for mark in overview(study).marks)


@pytest.mark.parametrize("kind", CHANGES)
def test_a_run_that_cannot_be_is_named_and_not_used(kind: str, tmp_path: Path) -> None:
    study = write_study(tmp_path / "s")
    change, words = CHANGES[kind]
    codec.write(path_of(study), change(codec.read(RunFigures, path_of(study))))
    require_named(study, words)


def test_a_share_may_be_the_whole_and_parts_have_places_of_their_own(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s")
    parts = [replace(TPS, phase="queries", item=str(number)) for number in range(3)]
    whole = replace(RATIO, value=1.0, scale=Scale.PROPORTION)
    codec.write(path_of(study), replace(FIGURES, figures=(TPS, *parts, whole)))
    assert () == read_study(study).set_aside
    assert 0 == read_progress(study).damaged


def test_a_record_of_another_cell_or_dataset_than_its_name_is_not_used(tmp_path: Path) -> None:
    other = replace(CELL, filesystem=FilesystemLevels("xfs"))
    for name, cell, dataset in (
        ("cell", other, DATASET),
        ("dataset", CELL, replace(DATASET, levels=Levels(scale=9))),
    ):
        study = write_study(tmp_path / name)
        path = path_of(study).parents[2] / "visit.json"
        codec.write(path, replace(codec.read(VisitRecord, path), cell=cell, dataset=dataset))
        require_named(study, f"is of the {name} ")


def test_a_class_that_there_is_not_is_named_and_no_traceback(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s")
    path = path_of(study).parents[2] / "visit.json"
    codec.write(
        path, replace(codec.read(VisitRecord, path), durability=Durability("superb", "durable", "declared"))
    )
    require_named(study, "'superb' is no durability class")


def test_runs_of_a_schedule_that_was_changed_are_none_of_its_own(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s")
    schedule = codec.read(StudySchedule, study / "schedule.json")
    other = RunSpec("ro", "pgbench", Levels(clients=64))
    codec.write(study / "schedule.json", replace(schedule, runs={DATASET.id: (other, RUNS[1])}))
    found = read_study(study)
    assert (0, 3) == (len(found.visits), len(found.set_aside))
    assert all(f"schedule.json has '{other.id}'" in each.reasons[0] for each in found.set_aside[:1])
