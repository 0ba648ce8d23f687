"""Studies that tests share: what a test changes, no other one sees, and it sees itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.support.studies.made_once import made_once
from tests.support.studies.read_once import read_once
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.analysis.overview import overview

RECIPE = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=1, course_s=2)


def files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_study_that_was_made_before_is_the_same_and_has_what_no_other_test_wrote(tmp_path: Path) -> None:
    first = files(write_study(tmp_path / "first", RECIPE))
    (tmp_path / "first" / "study.json").write_text("{}")
    assert first == files(write_study(tmp_path / "second", RECIPE))
    assert first != files(write_study(tmp_path / "other", replace(RECIPE, seed=8)))


def test_a_recipe_that_is_not_wanted_any_more_is_made_anew(tmp_path: Path) -> None:
    made = []

    @made_once
    def make(directory: Path, number: int) -> Path:
        made.append(number)
        directory.mkdir()
        return directory

    for place, number in enumerate((0, 0, *range(9), 0)):
        make(tmp_path / str(place), number)
    assert [*range(9), 0] == made


def test_a_study_is_read_once_until_a_file_of_it_changes(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", RECIPE)
    path = next(study.glob("visits/[!c]*/*/*/runs/*/run.json"))
    with read_once():
        found = overview(study)
        assert found is overview(study)
        run = json.loads(path.read_text())
        run["validity"], run["validity_reasons"] = "suspect", ["so says the test"]
        path.write_text(json.dumps(run))
        again = overview(study)
        assert found.summaries != again.summaries
        assert again is overview(study)
        path.unlink()
        assert again.measurements != overview(study).measurements
    assert overview(study) is not overview(study)
