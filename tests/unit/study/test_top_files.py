"""A study's own files have checksums too: one that is not what it was is named beside every figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.study.test_store import create, extend, finish, schedule

from bedplate.cli.status import status
from bedplate.model import codec
from bedplate.study.checksums import top_checksums
from bedplate.study.records import StudyFacts
from bedplate.study.store import read_progress
from bedplate.study.stored import read_study, verify_study

if TYPE_CHECKING:
    from pathlib import Path

TOP = ("plan.toml", "plan/own.sql", "schedule.json", "machine.json")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    with create(tmp_path / "s") as store:
        finish(store, schedule().visits[0])
    return tmp_path / "s"


def test_a_study_that_was_made_and_extended_is_as_it_was(study: Path, tmp_path: Path) -> None:
    assert ((), ()) == (read_study(study).changed, read_progress(study).changed)
    with create(tmp_path / "other") as store:
        extend(store)
        store.note("looked at")
    found = read_study(tmp_path / "other")
    assert () == found.changed
    assert {*TOP, "plan/scripts/two.sql"} == set(found.facts.checksums)


@pytest.mark.parametrize("name", TOP)
def test_a_file_that_was_changed_is_named_by_every_reader(
    study: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study / name
    path.write_bytes(path.read_bytes() + b"\n")
    words = f"{path} was changed after the study was made or extended"
    found = read_study(study)
    assert 1 == len(found.visits)
    assert words in found.marks[0]
    assert 1 == status(study, as_json=False, verify=True)
    said = capsys.readouterr().out
    assert f"  changed      {words}" in said
    assert any(words in problem for problem in verify_study(study).problems)


def test_a_file_of_the_plan_that_is_missing_is_named(study: Path) -> None:
    (study / "plan" / "own.sql").unlink()
    assert "plan/own.sql cannot be read" in read_study(study).marks[0]


def test_an_earlier_version_has_none_to_compare(study: Path) -> None:
    facts = codec.read(StudyFacts, study / "study.json")
    codec.write(study / "study.json", replace(facts, checksums={}))
    (study / "plan.toml").write_text("title = 'other'\n")
    assert () == read_study(study).changed


def test_what_is_half_extended_is_not_called_changed(study: Path) -> None:
    (study / "plan.toml").write_text("title = 'new'\n")
    (study / ".extension").mkdir()
    assert () == read_study(study).changed


def test_no_file_outside_of_the_study_is_looked_at(study: Path) -> None:
    facts = codec.read(StudyFacts, study / "study.json")
    codec.write(study / "study.json", replace(facts, checksums=top_checksums({"../other": b""})))
    assert "'../other', which is no file of the study" in read_study(study).changed[0]


def test_a_study_may_be_named_by_a_path_that_goes_up(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside").mkdir()
    assert () == read_study(tmp_path / "beside" / ".." / "s").changed
    monkeypatch.chdir(tmp_path / "beside")
    assert () == read_study(type(study)("../s")).changed
