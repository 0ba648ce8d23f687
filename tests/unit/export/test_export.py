from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_study import HOSTILE, Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.errors import PlanError
from bedplate.export.tables import _without_formulas, export

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = Recipe(
    filesystem_blocks=(None,),
    database_blocks=(8192,),
    repetitions=2,
    course_s=5,
    failed=((1, 1),),
    hostile=True,
    canaries=1,
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("export") / "study", RECIPE)


def test_a_directory_takes_every_table_in_every_format(study: Path, tmp_path: Path) -> None:
    written = export(study, tmp_path / "out")
    assert 9 == len(written)
    assert all(path.is_file() for path in written)


def test_the_formats_hold_the_same_rows(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path)
    # A failed visit leaves two runs without figures; they are rows all the same.
    assert 4 * 2 * 2 + 1 == pl.read_parquet(tmp_path / "runs.parquet").height
    for table in ("runs", "figures", "courses"):
        parquet = pl.read_parquet(tmp_path / f"{table}.parquet")
        csv = pl.read_csv(tmp_path / f"{table}.csv", infer_schema_length=None)
        assert parquet.columns == csv.columns
        assert parquet.height == csv.height == len(json.loads((tmp_path / f"{table}.json").read_text()))


def test_a_run_that_did_not_complete_has_no_class(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path)
    runs = pl.read_parquet(tmp_path / "runs.parquet")
    completed = pl.col("outcome") == "completed"
    for name in ("durability_volatile", "durability_volatile_512", "durability_protected"):
        assert 0 == runs.filter(completed)[name].null_count()
        assert [None, None] == runs.filter(~completed)[name].to_list()


def test_absent_is_null_with_its_reason(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path / "figures.parquet")
    figures = pl.read_parquet(tmp_path / "figures.parquet").filter(pl.col("metric") == "page_cache_hit_ratio")
    assert figures.height > 0
    assert figures["value"].null_count() == figures.height
    assert {"the server read nothing from the file system"} == set(figures["reason"])


def test_one_file_of_figures_knows_its_runs(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path / "figures.csv", ["csv"])
    found = pl.read_csv(tmp_path / "figures.csv", infer_schema_length=None)
    assert {"variant", "block_size_bytes", "validity", "filesystem.type", "workload.scale"} <= set(
        found.columns
    )
    assert HOSTILE in set(found["study"])


def test_json_holds_all_three_tables(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path / "study.json")
    found = json.loads((tmp_path / "study.json").read_text())
    assert ["runs", "figures", "courses"] == list(found)
    assert {"second", "tps", "phase"} <= set(found["courses"][0])


@pytest.mark.parametrize("name", ["figures.csv", "figures.parquet", "study.json"])
def test_a_folder_that_is_not_there_is_made(study: Path, tmp_path: Path, name: str) -> None:
    assert (tmp_path / "new" / "folder" / name,) == export(study, tmp_path / "new" / "folder" / name)
    assert [name] == [path.name for path in (tmp_path / "new" / "folder").iterdir()]


def test_an_unknown_format_names_the_known_ones(study: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="known are csv, parquet, json"):
        export(study, tmp_path / "out", ["spss"])
    with pytest.raises(PlanError, match="needs a directory"):
        export(study, tmp_path / "out.csv", ["json"])


def test_the_class_beside_a_figure_of_lmdb_is_that_of_its_test(tmp_path: Path) -> None:
    study = synthetic_microbenchmark(tmp_path / "study", repetitions=1)
    export(study, tmp_path / "figures.parquet")
    export(study, tmp_path / "tables", ["parquet"])
    # One file of figures says it once, and of the figure.
    flat = pl.read_parquet(tmp_path / "figures.parquet")
    assert 3 == sum(name.startswith("durability") for name in flat.columns)
    for table in (flat, pl.read_parquet(tmp_path / "tables" / "figures.parquet")):
        speeds = table.filter(pl.col("metric") == "test_operations_per_s")
        names = ("item", "durability_volatile", "durability_protected")
        classes = {item: (volatile, protected) for item, volatile, protected in speeds.select(names).rows()}
        assert ("durable", "durable") == classes["fillseqsync"]
        assert ("unsafe", "bounded loss") == classes["fillseq"] == classes["readwhilewriting"]
        assert ("reads only", "reads only") == classes["readrandom"]
    runs = pl.read_parquet(tmp_path / "tables" / "runs.parquet")
    assert {("unsafe", "bounded loss")} == set(
        runs.select("durability_volatile", "durability_protected").rows()
    )


def test_no_text_of_a_csv_is_a_formula_and_numbers_are_numbers(tmp_path: Path) -> None:
    title = '=HYPERLINK("http://localhost/","x")'
    study = write_study(tmp_path / "study", replace(RECIPE, hostile=False, title=title))
    course = next((study / "visits").glob("*/*/*/runs/*/course.parquet"))
    pl.read_parquet(course).with_columns(pl.lit("\t=1").alias("@sum(1)")).write_parquet(course)
    export(study, tmp_path / "out")
    for path in (tmp_path / "out").glob("*.csv"):
        found = pl.read_csv(path, infer_schema_length=None)
        texts = [
            *found.columns,
            *(cell for column in found.select(pl.col(pl.String)) for cell in column if cell),
        ]
        assert [] == [text for text in texts if text.startswith(("=", "+", "-", "@", "\t", "\r"))]
        assert {f"'{title}"} == set(found["study"])
    figures = pl.read_csv(tmp_path / "out" / "figures.csv", infer_schema_length=None)
    assert figures["value"].dtype == pl.Float64
    below_zero = pl.DataFrame({"value": [-1.5], "text": ["-1.5"]})
    assert "value,text\n-1.5,-1.5\n" == _without_formulas(below_zero).write_csv()
    assert title in set(pl.read_parquet(tmp_path / "out" / "runs.parquet")["study"])


def test_every_factor_is_a_column_with_the_plans_key_and_value(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path / "out", ["parquet"])
    runs = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    assert {"ext4", "xfs", "btrfs"} <= set(runs["filesystem.type"])
    assert pl.Boolean == runs["filesystem.barrier"].dtype
    assert {8192} == set(runs["postgresql.block_size"])
    assert {"pgbench"} == set(runs["workload.type"])
    assert runs.height == runs["workload.scale"].count()
    canaries = runs.filter(pl.col("canary"))
    assert canaries.height == canaries["filesystem.type"].count() == 1
    figures = pl.read_parquet(tmp_path / "out" / "figures.parquet")
    by_cell = dict(runs.select("cell", "filesystem.type").rows())
    assert by_cell == dict(figures.select("cell", "filesystem.type").rows())
    assert "filesystem.type" not in pl.read_parquet(tmp_path / "out" / "courses.parquet").columns


def test_only_what_is_asked_for_is_written_and_the_rest_is_refused_with_what_is_near(
    study: Path, tmp_path: Path
) -> None:
    written = export(study, tmp_path / "out", ["csv"], tables=["figures"], metrics=["tps"])
    assert ["figures.csv"] == [path.name for path in written]
    assert {"tps"} == set(pl.read_csv(written[0])["metric"])
    with pytest.raises(PlanError) as refused:
        export(study, tmp_path / "out", ["cvs"], tables=["figurs", "x" * 10_000], metrics=["tsp", "ms_p99"])
    *near, long, turned, part = refused.value.reasons
    assert [
        "format 'cvs' is not known; did you mean csv?",
        "table 'figurs' is not known; did you mean figures?",
    ] == near
    assert "(10,000 characters) is not known; known are runs, figures" in long
    assert len(long) < 400
    assert "metric 'tsp' is not known; did you mean tps?" == turned
    assert "metric 'ms_p99' is not known; did you mean latency_ms_p99" in part
    for name, words in (
        ("out.xls", "did you mean xlsx?"),
        ("out.ods", "written as XLSX, which LibreOffice opens too: export to "),
        ("out.ODS", "out.xlsx"),
        ("out.txt", "known are csv, parquet, json, xlsx"),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            export(study, tmp_path / name)
        assert not (tmp_path / name).exists()
    (one,) = export(study, tmp_path / "runs.csv", tables=["runs"])
    assert "outcome" in pl.read_csv(one, infer_schema_length=None).columns
    (tmp_path / "out.txt").mkdir()
    assert 3 == len(export(study, tmp_path / "out.txt", ["json"]))
    assert 3 == len(export(study, tmp_path / "version-18.1", ["json"]))
    for output, asked, words in (
        ("a.csv", {"tables": ["runs", "figures"]}, "holds one table"),
        ("a.xlsx", {"metrics": ["tps"]}, "is a spreadsheet"),
        ("a", {"tables": ["runs"], "metrics": ["tps"]}, "not among the tables"),
        ("a", {"tables": ["scores"]}, "this study has no table 'scores'; there are runs, figures, courses"),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            export(study, tmp_path / output, **asked)


def test_query_plans_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", TpchRecipe(repetitions=1))
    export(study, tmp_path / "study.json")
    assert "plans" not in json.loads((tmp_path / "study.json").read_text())
    (written,) = export(study, tmp_path / "out", ["json"], tables=["plans"])
    rows = json.loads(written.read_text())
    assert all(row["explained"] for row in rows)
    assert {"ext4", "xfs", "btrfs"} == {row["filesystem.type"] for row in rows}
