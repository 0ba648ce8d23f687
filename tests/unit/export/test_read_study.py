"""`bedplate.read_study`: the tables of `bedplate export` as data frames, for polars, pandas and DuckDB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

import bedplate
from bedplate.errors import StudyError
from bedplate.export.tables import export

RECIPE = Recipe(
    filesystem_blocks=(None,), database_blocks=(8192,), repetitions=2, course_s=5, failed=((1, 1),)
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("read") / "study", RECIPE)


def test_the_tables_are_those_that_the_export_writes(study: Path, tmp_path: Path) -> None:
    tables = bedplate.read_study(str(study))
    export(study, tmp_path, ["parquet"])
    assert ("runs", "figures", "courses") == tables.names
    for name in tables.names:
        assert_frame_equal(pl.read_parquet(tmp_path / f"{name}.parquet"), getattr(tables, name))
    assert tables.runs is tables.runs
    assert {*tables.names} <= {*dir(tables)}


def test_a_study_has_the_tables_of_its_workloads_bulky_ones_too(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", TpchRecipe())
    tables = bedplate.read_study(study)
    assert {"scores", "plans"} <= {*tables.names}
    assert tables.scores.height > 0


def test_a_table_that_is_not_there_is_named_with_the_nearest_that_is(study: Path) -> None:
    tables = bedplate.read_study(study)
    with pytest.raises(AttributeError, match=r"table 'rums' is not known; did you mean runs\?"):
        _ = tables.rums


def test_the_folder_of_a_question_is_read_as_its_study_and_what_is_none_is_refused(
    study: Path, tmp_path: Path
) -> None:
    assert bedplate.read_study(study).runs.equals(bedplate.read_study(study.parent).runs)
    with pytest.raises(StudyError, match=r"is not a study: it has no study\.json"):
        bedplate.read_study(tmp_path)
    damaged = write_study(tmp_path / "damaged", RECIPE)
    (damaged / "study.json").write_text("{", encoding="utf-8")
    with pytest.raises(StudyError, match=r"study\.json"):
        bedplate.read_study(damaged)


def test_an_import_of_the_package_alone_takes_the_standard_library(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _IMPORT, str(repository / "src")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "['bedplate']\n" == done.stdout


_IMPORT = """
import sys
sys.path.insert(0, sys.argv[1])
import bedplate
print([name for name in sys.modules if name.startswith("bedplate") or name == "polars"])
"""


def test_pandas_takes_a_table(study: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    runs = bedplate.read_study(study).runs
    assert runs.columns == [*runs.to_pandas().columns]


def test_duckdb_reads_a_table_by_its_name(study: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    runs = bedplate.read_study(study).runs
    assert [(runs.height,)] == duckdb.sql("select count(*) from runs").fetchall()
