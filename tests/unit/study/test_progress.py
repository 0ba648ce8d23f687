from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.cli.status import status
from bedplate.study.checksums import write_checksums
from bedplate.study.store import read_progress

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RECIPE = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=2, course_s=2)


def test_suspect_runs_are_counted_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path / "study", replace(RECIPE, suspect=((0, 1), (2, 2))))
    # Each of the two visits has two runs.
    assert 4 == read_progress(study).suspect
    status(study, as_json=False)
    assert "in doubt     4 runs, no part of a verdict" in capsys.readouterr().out


def test_a_sound_study_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path / "study", RECIPE)
    assert 0 == read_progress(study).suspect
    status(study, as_json=False)
    assert "in doubt" not in capsys.readouterr().out


def test_a_damaged_visit_is_named_and_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_study(tmp_path / "study", RECIPE)
    broken = next((study / "visits").glob("ext4*/*/1.1")) / "runs" / "00-run" / "run.json"
    broken.write_text("[]")
    found = read_progress(study)
    assert (1, 0) == (found.damaged, found.left)
    assert found.visits == found.completed + found.failed + found.damaged
    assert 0 == status(study, as_json=False)
    said = capsys.readouterr().out
    assert "1 damaged" in said
    assert str(broken) in said
    assert "--retry-failed" in said


def test_verifying_compares_every_file_and_says_where_there_is_nothing_to_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_study(tmp_path / "study", RECIPE)
    old, *newer = sorted((study / "visits").glob("*/*/*"))
    for visit in newer:
        write_checksums(visit)
    assert 0 == status(study, as_json=False, verify=True)
    said = capsys.readouterr().out
    assert f"of {len(newer)} visits" in said
    assert "all are what they were" in said
    assert "1 visit, made by an earlier version" in said
    course = next(newer[0].glob("runs/*/course.parquet"))
    data = course.read_bytes()
    course.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    assert 0 == status(study, as_json=False)
    assert 1 == status(study, as_json=False, verify=True)
    assert f"{course} was changed" in capsys.readouterr().out
    assert old not in newer
