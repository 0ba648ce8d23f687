from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_study import Recipe, cells_of, write_study

from bedplate.analysis.overview import Trouble, overview
from bedplate.model.cell import Throttle
from bedplate.model.codec import read, write
from bedplate.model.levels import Levels
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, Validity, VisitRecord
from bedplate.study.records import StudySchedule

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=2, course_s=5)


def test_every_run_that_was_due_is_there(tmp_path: Path) -> None:
    recipe = replace(SMALL, failed=((0, 1),), missing=((1, 2),), suspect=((2, 1),), canaries=2)
    found = overview(write_study(tmp_path / "study", recipe))
    plain = [m for m in found.measurements if not m.canary]
    assert 4 * 2 * 2 == len(plain)
    assert 2 == sum(m.canary for m in found.measurements)
    lost = [m for m in plain if m.cell == _cell(0) and m.repetition == 1]
    assert [(Outcome.NOT_RUN, True)] * 2 == [(m.outcome, m.unreached) for m in lost]
    assert [("not run yet",)] * 2 == [
        sentences(m.reasons) for m in plain if m.cell == _cell(1) and m.repetition == 2
    ]
    assert 2 == sum(m.validity is Validity.SUSPECT for m in plain)


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ((), [Outcome.NOT_RUN, Outcome.NOT_RUN]),
        (("read-only",), [Outcome.FAILED, Outcome.NOT_RUN]),
        (("read-only", "read-write"), [Outcome.FAILED, Outcome.FAILED]),
    ],
)
def test_a_run_that_began_failed_and_one_that_was_never_reached_did_not_run(
    tmp_path: Path, begun: tuple[str, ...], expected: list[Outcome]
) -> None:
    study = write_study(tmp_path / "study", replace(SMALL, failed=((0, 1),)))
    (visit,) = (study / "visits" / _cell(0)).glob("*/1.1")
    (runs,) = read(StudySchedule, study / "schedule.json").runs.values()
    for number, spec in enumerate(runs, start=1):
        if spec.name in begun:
            # A visit whose process was killed says in no record how far it came; its folders do.
            (visit / "runs" / f"{number:02d}-{spec.id}").mkdir(parents=True)
    found = [m for m in overview(study).measurements if m.cell == _cell(0) and m.repetition == 1]
    found = [m for m in found if not m.canary]
    assert expected == [m.outcome for m in found]
    assert [outcome is Outcome.NOT_RUN for outcome in expected] == [m.unreached for m in found]
    # The reader is told the visit's failure either way.
    assert [Trouble.FAILED] * 2 == [m.trouble for m in found]
    assert {("mkfs.ext4 exited with status 1: no space",)} == {sentences(m.reasons) for m in found}


def test_a_visit_that_has_not_come_yet_is_no_failure(tmp_path: Path) -> None:
    found = overview(write_study(tmp_path / "study", replace(SMALL, missing=((1, 2),))))
    waiting = [m for m in found.measurements if sentences(m.reasons) == ("not run yet",)]
    assert [(Outcome.NOT_RUN, False, Trouble.NOT_RUN)] * 2 == [
        (m.outcome, m.unreached, m.trouble) for m in waiting
    ]


def test_canaries_stay_out_of_every_summary(tmp_path: Path) -> None:
    found = overview(write_study(tmp_path / "study", SMALL))
    assert {"read-only", "read-write"} == {key.run for key in found.summaries}
    assert 2 == found.summary(_cell(0), found.runs[0], "tps").n


def test_an_absent_figure_keeps_its_reason(tmp_path: Path) -> None:
    found = overview(write_study(tmp_path / "study", SMALL))
    key = next(key for key in found.summaries if key.metric == "page_cache_hit_ratio")
    assert 0 == found.summaries[key].n
    assert "the server read nothing from the file system" == found.absence(key)


def test_the_last_attempt_at_a_visit_counts(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", replace(SMALL, failed=((0, 1),), canaries=0))
    done = next((study / "visits" / _cell(0)).glob("*/2.1"))
    again = done.with_name("1.2")
    done.rename(again)
    record = read(VisitRecord, again / "visit.json")
    write(again / "visit.json", replace(record, key=replace(record.key, repetition=1, attempt=2)))
    found = overview(study)
    first = [m for m in found.of(_cell(0), found.runs[0]) if m.repetition == 1]
    assert [(2, Outcome.COMPLETED)] == [(m.attempt, m.outcome) for m in first]


def test_cells_in_force_alike_name_each_other(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", SMALL)
    for path in study.glob("visits/*/*/*/visit.json"):
        record = read(VisitRecord, path)
        if record.key.cell in (_cell(0), _cell(2)) and not record.key.canary:
            write(path, replace(record, effective_digest="same"))
    found = overview(study)
    assert (_cell(2),) == found.cells[_cell(0)].identical_to


def test_what_else_varies_is_in_the_label(tmp_path: Path) -> None:
    settings = Levels({"shared_buffers": "512MB"})
    study = write_study(tmp_path / "study", replace(SMALL, settings=settings))
    labels = [cell.label.panel for cell in overview(study).cells.values()]
    assert ["ext4 barrier", "ext4 nobarrier", "xfs", "btrfs nodatacow"] == labels


def test_an_image_file_and_an_emulated_device_are_marked(tmp_path: Path) -> None:
    found = overview(write_study(tmp_path / "study", SMALL))
    assert ["image file"] == [mark.split(":")[0] for mark in found.marks]
    recipe = replace(SMALL, device_kind="block device", throttle=Throttle("hdd-7200", read_iops=150))
    emulated = overview(write_study(tmp_path / "emulated", recipe))
    assert ["emulated device (hdd-7200)"] == [mark.split(":")[0] for mark in emulated.marks]


def _cell(number: int) -> str:
    return cells_of(SMALL)[number].id
