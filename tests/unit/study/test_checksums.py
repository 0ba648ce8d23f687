"""A finished visit is what it was when it had ended, or it is named and not used."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.study.test_stored import CELL, DATASET, FIGURES, RUNS, write_study

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.figure import RunFigures
from bedplate.model.visit import VisitRecord
from bedplate.study.checksums import CHECKSUMS_FILE, VisitFiles, write_checksums
from bedplate.study.stored import Study, read_study

RUN = f"runs/01-{RUNS[0].id}/run.json"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Three finished visits with checksums; each with a log and a course beside its records."""
    path = write_study(tmp_path / "s")
    for visit in visits(path):
        (visit / "logs").mkdir()
        (visit / "logs" / "server.log").write_text("ready\n")
        (visit / RUN).with_name("course.parquet").write_bytes(b"PAR1....PAR1")
        record = codec.read(VisitRecord, visit / "visit.json")
        codec.write(visit / "visit.json", replace(record, sealed=True))
        write_checksums(visit)
    return path


def visits(study: Path) -> list[Path]:
    return sorted((study / "visits").glob("*/*/*"))


def visit(study: Path) -> Path:
    return study / "visits" / CELL.id / DATASET.id / "2.1"


def reasons(study: Path) -> str:
    """Why one visit is not used, and that the two others are."""
    found = read_study(study)
    assert 2 == len(found.visits)
    (aside,) = found.set_aside
    return "; ".join(aside.reasons)


def unsealed(study: Path) -> Path:
    """The same study as an earlier version wrote it."""
    for path in visits(study):
        (path / CHECKSUMS_FILE).unlink()
        record = codec.read(VisitRecord, path / "visit.json")
        codec.write(path / "visit.json", replace(record, sealed=False))
    return study


def same_size(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert len(old) == len(new)
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def test_a_whole_study_has_nothing_to_say(study: Path) -> None:
    found = read_study(study)
    assert (3, (), ()) == (len(found.visits), found.set_aside, found.marks)


def test_every_file_but_its_own_has_a_checksum(study: Path) -> None:
    files = json.loads((visit(study) / CHECKSUMS_FILE).read_text())["files"]
    there = {str(path.relative_to(visit(study))) for path in visit(study).rglob("*") if path.is_file()}
    assert there - {CHECKSUMS_FILE} == set(files)


def test_a_pipe_and_a_link_have_no_checksum_and_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "visit.json").write_text("{}")
    os.mkfifo(tmp_path / "run.json")
    (tmp_path / "server.log").symlink_to("/etc/hostname")
    write_checksums(tmp_path)
    assert list(json.loads((tmp_path / CHECKSUMS_FILE).read_bytes())["files"]) == ["visit.json"]


@pytest.mark.parametrize("name", ["visit.json", RUN])
def test_a_record_that_was_changed_is_not_used(study: Path, name: str) -> None:
    # A valid record, of the same size: only the checksum can tell.
    old, new = (b'"suspect"', b'"valid"  ') if name == RUN else (b'"boot_id": "b"', b'"boot_id": "c"')
    same_size(visit(study) / name, old, new)
    assert f"{visit(study) / name} was changed after its visit had ended" in reasons(study)


def test_a_record_that_grew_is_not_used(study: Path) -> None:
    with (visit(study) / RUN).open("a") as file:
        file.write("\n")
    assert "bytes, and" in reasons(study)


@pytest.mark.parametrize("name", ["visit.json", RUN, f"runs/01-{RUNS[0].id}/course.parquet"])
def test_a_record_that_is_missing_is_named(study: Path, name: str) -> None:
    (visit(study) / name).unlink()
    assert f"{visit(study) / name} is missing" in reasons(study)


def test_checksums_that_are_missing_are_named(study: Path) -> None:
    (visit(study) / CHECKSUMS_FILE).unlink()
    assert f"{CHECKSUMS_FILE} is missing" in reasons(study)


def test_a_record_that_came_later_is_not_used(study: Path) -> None:
    second = visit(study) / "runs" / f"03-{RUNS[0].id}"
    shutil.copytree((visit(study) / RUN).parent, second)
    assert f"{second / 'run.json'} was not there when its visit had ended" in reasons(study)


def test_a_log_that_was_changed_is_named_and_the_figures_are_used(study: Path) -> None:
    with (visit(study) / "logs" / "server.log").open("a") as file:
        file.write("shutting down\n")
    found = read_study(study)
    assert 3 == len(found.visits)
    assert f"{visit(study) / 'logs' / 'server.log'} was changed" in found.marks[0]


def test_the_content_of_every_file_is_compared_when_it_is_asked_for(study: Path) -> None:
    course = (visit(study) / RUN).with_name("course.parquet")
    same_size(course, b"....", b"!...")
    same_size(visit(study) / "logs" / "server.log", b"ready", b"steady"[1:])
    files = VisitFiles(visit(study))
    assert ((), ()) == (files.damage, files.remarks)
    files.verify()
    assert [f"{course} was changed after its visit had ended: its checksum is another"] == list(files.damage)
    assert 1 == len(files.remarks)


def test_a_study_without_checksums_is_read_as_before(study: Path) -> None:
    found = read_study(unsealed(study))
    assert (3, ()) == (len(found.visits), found.set_aside)


def wrong_run(study: Path, change: str) -> Study:
    """The figures of one run as nobody can have measured them, in a study without checksums."""
    path = visit(unsealed(study)) / RUN
    first = FIGURES.figures[0]
    text = codec.dumps(FIGURES)
    if change == "unit":
        text = codec.dumps(replace(FIGURES, figures=(replace(first, unit="tpm"),)))
    elif change == "negative":
        text = codec.dumps(replace(FIGURES, figures=(replace(first, value=-100.0),)))
    else:
        assert '"value": 100.0' in text
        text = text.replace('"value": 100.0', f'"value": {change}')
    path.write_text(text)
    return read_study(study)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("unit", "tps is in 'tpm', and it is measured in '1/s'"),
        ("negative", "tps is -100, and it cannot be negative"),
        ("NaN", "NaN is no number"),
        ("-Infinity", "-Infinity is no number"),
        ("1e999", "expected a finite number, found inf"),
        ("1" * 400, "expected a number"),
        ("true", "expected a number, found True"),
    ],
)
def test_a_figure_that_cannot_be_is_named_with_its_file_and_not_used(
    study: Path, change: str, words: str
) -> None:
    found = wrong_run(study, change)
    assert 2 == len(found.visits)
    (reason,) = found.set_aside[0].reasons
    assert str(visit(study) / RUN) in reason
    assert words in reason


def test_a_trend_may_fall(study: Path) -> None:
    path = visit(unsealed(study)) / RUN
    trend = replace(FIGURES.figures[0], metric="tps_trend", unit="share", value=-0.1)
    codec.write(path, replace(codec.read(RunFigures, path), figures=(trend,)))
    assert () == read_study(study).set_aside


def test_the_copy_of_a_visit_is_no_second_attempt(study: Path) -> None:
    shutil.copytree(visit(study), visit(study).with_name("2.2"))
    found = read_study(study)
    assert {"2.1", "2.2"} == {each.directory.name for each in found.set_aside}
    assert any(
        "is the record of another visit" in reason for each in found.set_aside for reason in each.reasons
    )


def test_two_runs_of_one_name_are_named(study: Path) -> None:
    shutil.copytree((visit(unsealed(study)) / RUN).parent, visit(study) / "runs" / f"03-{RUNS[0].id}")
    assert "has the run 'ro' 2 times" in reasons(study)


def test_a_visit_that_the_schedule_does_not_have_is_named(study: Path) -> None:
    foreign = visit(study).with_name("7.1")
    visit(study).rename(foreign)
    record = codec.read(VisitRecord, foreign / "visit.json")
    codec.write(foreign / "visit.json", replace(record, key=replace(record.key, repetition=7)))
    write_checksums(foreign)
    assert "schedule.json does not have" in reasons(study)


def test_an_engine_that_nobody_knows_is_named_with_its_file(study: Path) -> None:
    schedule = study / "schedule.json"
    record = json.loads(schedule.read_text())
    for cell in record["cells"].values():
        cell["build"]["engine"] = "postgres95"
    schedule.write_text(json.dumps(record))
    with pytest.raises(StudyError) as caught:
        read_study(study)
    assert all(
        str(schedule) in reason and "'postgres95' is not known" in reason for reason in caught.value.reasons
    )
