from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.synthetic_study import Recipe, write_study

from bedplate.cli.status import status
from bedplate.study.progress import read_progress

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
