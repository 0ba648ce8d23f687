"""Nothing is read beyond the limit of its kind, and nothing is walked through beyond what a study has."""

from __future__ import annotations

import json
import os
import subprocess
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.study.test_stored import CELL, DATASET, write_study

from bedplate.analysis.claims import load_claims
from bedplate.errors import PlanError, StudyError
from bedplate.model import codec, limits
from bedplate.model.visit import VisitRecord
from bedplate.study.checksums import VisitFiles, write_checksums
from bedplate.study.records import StudyFacts
from bedplate.study.stored import read_study
from bedplate.units import GIB, MIB

_TOP = ("study.json", "schedule.json", "machine.json", "plan.toml")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path / "s")


def visit(study: Path) -> Path:
    return study / "visits" / CELL.id / DATASET.id / "2.1"


def peak_bytes(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", sorted({*limits.FILE_LIMITS, "script.sql"} - {".xz"}))
def test_a_file_of_holes_is_refused_by_its_size_and_not_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / (f"a{name}" if name.startswith(".") else name)
    path.touch()
    os.truncate(path, 20 * GIB)

    def read() -> None:
        with pytest.raises(StudyError, match="is not read: it has 21,474,836,480 bytes") as refusal:
            codec.read_bytes(path)
        assert f"at most {limits.most_bytes_of(path.name):,}" in str(refusal.value)

    assert peak_bytes(read) < MIB


@pytest.mark.parametrize("name", _TOP)
def test_a_study_whose_own_file_is_too_large_is_refused_by_that_file(study: Path, name: str) -> None:
    os.truncate(study / name, 20 * GIB)
    with pytest.raises(StudyError, match=f"{name} is not read"):
        read_study(study)


@pytest.mark.parametrize("name", ["visit.json", "checksums.json"])
def test_a_visit_whose_record_is_too_large_is_set_aside(study: Path, name: str) -> None:
    write_checksums(visit(study))
    os.truncate(visit(study) / name, 20 * GIB)
    (aside,) = read_study(study).set_aside
    assert name in aside.reasons[0]


def test_a_file_without_a_size_is_read_and_one_without_end_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the kernel makes when it is read says that it has no bytes.
    assert codec.read_bytes(Path("/proc/self/stat"))
    monkeypatch.setattr("bedplate.model.codec.most_bytes_of", lambda _: 10)
    with pytest.raises(StudyError, match="at most 10"):
        codec.read_bytes(Path("/proc/self/stat"))


def test_who_writes_is_held_to_the_same_limit(study: Path) -> None:
    path = study / "study.json"
    before = path.read_bytes()
    facts = codec.read(StudyFacts, path)
    with pytest.raises(StudyError, match=r"study\.json is not written: it would have"):
        codec.write(path, replace(facts, title="x" * 9 * MIB))
    assert before == path.read_bytes()
    assert [] == list(study.glob(".*part"))


@pytest.mark.parametrize("text", ["[" + "[]," * 4_000_000 + "1]", "[" + "0," * 4_000_000 + "1]"])
def test_a_document_of_millions_of_values_is_not_made(text: str) -> None:
    def parse() -> None:
        with pytest.raises(StudyError, match="a document has at most 3,000,000"):
            codec.parse(text, source="a.json")

    assert peak_bytes(parse) < MIB


def changed(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_a_title_that_every_row_would_have_is_bounded(study: Path) -> None:
    changed(study / "study.json", lambda facts: facts.update(title="x" * 10 * MIB))
    with pytest.raises(StudyError, match=r"study\.json"):
        read_study(study)
    changed(study / "study.json", lambda facts: facts.update(title="x" * 30_000))
    with pytest.raises(StudyError, match="the title has 30,000 characters; allowed are 25,000"):
        read_study(study)


def test_names_and_levels_of_a_schedule_are_bounded(study: Path) -> None:
    def change(schedule: Any) -> None:
        next(iter(schedule["runs"].values()))[0]["name"] = "x" * 30_000

    changed(study / "schedule.json", change)
    with pytest.raises(StudyError, match="the name of a run has 30,000 characters"):
        read_study(study)


def test_a_cell_has_no_thousands_of_levels(study: Path) -> None:
    def change(schedule: Any) -> None:
        next(iter(schedule["datasets"].values()))["levels"] = {f"a{n}": n for n in range(100_000)}

    changed(study / "schedule.json", change)
    with pytest.raises(StudyError, match="expected at most 1000 levels"):
        read_study(study)


def test_a_visit_whose_folders_are_too_deep_is_named_and_set_aside(study: Path) -> None:
    _dig(visit(study), 20)
    (aside,) = read_study(study).set_aside
    assert "lies deeper than 12 folders" in aside.reasons[0]


def test_folders_without_end_are_named_and_the_study_is_not_read(study: Path) -> None:
    # Deeper than a path may be long, and than Python calls itself.
    _dig(visit(study), 5_000)
    try:
        with pytest.raises(StudyError, match="is more than 40 folders deep"):
            read_study(study)
    finally:
        # What removes old places of tests calls itself for each folder.
        subprocess.run(["rm", "-rf", visit(study) / "d"], check=True)


def _dig(folder: Path, levels: int) -> None:
    below = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=below)
        above, below = below, os.open("d", os.O_RDONLY, dir_fd=below)
        os.close(above)
    os.close(below)


def test_files_without_end_in_a_visit_are_counted_and_the_visit_is_set_aside(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedplate.study.checksums.MOST_FILES", 50)
    for number in range(60):
        (visit(study) / f"{number}.json").touch()
    (aside,) = read_study(study).set_aside
    assert "has more than 50 files and folders" in aside.reasons[0]


def test_thousands_of_foreign_files_are_told_in_a_few_sentences_and_in_no_time_of_their_own(
    study: Path,
) -> None:
    record = codec.read(VisitRecord, visit(study) / "visit.json")
    codec.write(visit(study) / "visit.json", replace(record, sealed=True))
    write_checksums(visit(study))
    for number in range(20_000):
        (visit(study) / f"{number}.{'json' if number % 2 else 'log'}").touch()
    # A tuple that grows by one for each of them copies the two hundred million times.
    files = VisitFiles(visit(study))
    assert [11, 11] == [len(files.damage), len(files.remarks)]
    assert "and so are 9,990 more" in files.damage[-1]
    (aside,) = read_study(study).set_aside
    assert len(aside.reasons) == 11


def test_no_pipe_whose_checksum_has_its_size_is_waited_for(study: Path) -> None:
    (visit(study) / "pipe.log").touch()
    write_checksums(visit(study))
    (visit(study) / "pipe.log").unlink()
    os.mkfifo(visit(study) / "pipe.log")
    changed(visit(study) / "checksums.json", lambda sums: sums["files"]["pipe.log"].update(size_bytes=-1))
    files = VisitFiles(visit(study))
    files.verify()
    (remark,) = files.remarks
    assert "it is no plain file any more" in remark


def test_what_a_person_names_is_read_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text("x" * 100)
    assert b"x" * 100 == limits.read_at_most(path, 100)
    with pytest.raises(OSError, match="it has more than 99 bytes"):
        limits.read_at_most(path, 99)
    with pytest.raises(OSError, match="it has more than 1,000 bytes"):
        limits.read_at_most(Path("/dev/zero"), 1000)
    os.truncate(path, 20 * GIB)
    with pytest.raises(PlanError, match=r"claims\.toml: cannot be read: it has more than 4,194,304 bytes"):
        load_claims([path])


def test_what_is_taken_away_may_be_larger_than_anything_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedplate.model.codec.most_bytes_of", lambda _: 10)
    codec.write_text(tmp_path / "export.json", "x" * 100)
    assert 100 == (tmp_path / "export.json").stat().st_size
