"""What the terminal and the exports show of a TPC-H study."""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study, tpch_cells
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.overview import overview
from bedplate.analysis.part_summaries import ranked
from bedplate.errors import PlanError, StudyError
from bedplate.export.tables import TABLES, export
from bedplate.model import codec
from bedplate.study.records import StudySchedule
from bedplate.terminal.tables import show_document, show_tables

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = TpchRecipe()
PLAIN = replace(RECIPE, timeouts=(), other_plans=(), wavering_plans=(), failed=())
ONE = replace(PLAIN, filesystems=("ext4",), database_blocks=(8192,), repetitions=1)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic_tpch_study(tmp_path_factory.mktemp("tpch") / "study", RECIPE)


@pytest.fixture(scope="module")
def shown(study: Path) -> str:
    """All tables of the study at 80 columns."""
    return as_printed(show_tables([study]))


@pytest.fixture(scope="module")
def cold(study: Path) -> str:
    """The tables of one pass."""
    return as_printed(show_tables([study], workload="cold"))


def row_of(text: str, title: str, start: str) -> list[str]:
    """The words of the first row that begins so, in the table of that title."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(title):
            break
    return next(line.split() for line in lines if line.startswith(f" {start}"))


@pytest.mark.parametrize("columns", [80, 100])
def test_all_of_it_fits_into_the_terminal(study: Path, columns: int) -> None:
    text = as_printed(show_tables([study]), width=columns)
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text, "nothing is cut off"


def slower(study: Path, factor: float) -> Path:
    """The same study, with every time and every rate made larger."""
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        run = json.loads(path.read_text())
        for row in run["figures"]:
            if row["value"] is not None and row["unit"] in {"s", "QphH@SF"}:
                row["value"] *= factor
        path.write_text(json.dumps(run))
    return study


@pytest.mark.parametrize("factor", [0.01, 1.0, 77.7, 1234.5, 30_000.0])
def test_no_mark_is_pushed_off_the_table_by_large_times(tmp_path: Path, factor: float) -> None:
    recipe = replace(PLAIN, query_timeout_s=None)
    text = as_printed(show_tables([slower(synthetic_tpch_study(tmp_path / "study", recipe), factor)]))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    # Load, two passes and the rates, each with a mark for every cell.
    assert 4 * len(tpch_cells(recipe)) == len(re.findall(r"3 ✓", text))


def test_the_load_has_a_column_for_each_phase(study: Path, shown: str) -> None:
    row = row_of(shown, "Load", "ext4")
    found = overview(study)
    run = found.runs[0]
    phases = ("load", "primary keys", "foreign keys", "indexes", "analyze", "checkpoint")
    medians = [
        [f"{found.summary(cell.id, run, 'phase_s', phase).centre or 0:.4g}" for phase in phases]
        for cell in tpch_cells(RECIPE)
    ]
    assert [f"{float(word):.4g}" for word in row[1:7]] in medians
    assert "✓" == row[-1]


def test_scores_have_their_share_of_the_ideal_and_an_interval(study: Path, cold: str) -> None:
    row = row_of(cold, "Scores of cold", "ext4")
    view = next(view for view in overview(study).scores if view.run == "cold")
    # The quickest of the type stands first.
    first = min(
        (each for each in view.scores.cells if each.cell.startswith("ext4")),
        key=lambda each: each.time.value or math.inf,
    )
    assert first.m_score.value is not None
    assert first.m_score.ideal_share is not None
    assert f"{first.m_score.value:.2f}" in row
    assert f"{100 * first.m_score.ideal_share:.0f}" in row
    assert f"{first.m_score.low:.2f}–{first.m_score.high:.2f}" in cold


def test_the_score_tells_how_many_queries_were_stopped(cold: str) -> None:
    scores = cold.partition("Scores of cold")[2].partition("m-time and m-score:")[0]
    assert ["1 stopped"] == re.findall(r"\d+ stopped", scores)


def test_power_that_is_coarse_says_so_at_its_value(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", replace(ONE, filesystems=("ext4", "xfs"), streams=0))
    place = tpch_cells(replace(ONE, filesystems=("ext4", "xfs")))[1].id
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        run = json.loads(path.read_text())
        for row in run["figures"]:
            if row["metric"] == "query_s":
                row["value"] = 0.5 if place in str(path) and row["item"] == "6" else 5.0
        path.write_text(json.dumps(run))
    text = as_printed(show_tables([study])).partition("Power and throughput")[2]
    assert 1 == text.count("queries under 1 s count to the nearest 0.1 s, which is coarse for them")
    assert "[a]" not in " ".join(row_of(text, "", "ext4"))
    assert "[a]" in " ".join(row_of(text, "", "xfs"))


def test_cells_with_only_suspect_runs_are_named_below_the_scores(tmp_path: Path) -> None:
    recipe = replace(PLAIN, repetitions=1, filesystems=("ext4", "xfs"), streams=0)
    some = replace(recipe, suspect=((1, 1, "cold"),), other_plans=((1, 9),))
    text = " ".join(as_printed(show_tables([synthetic_tpch_study(tmp_path / "some", some)])).split())
    assert "drop no query: ext4 · fs default, 4 KiB · db 32 KiB." in text
    assert "m_score: the cell has no trusted run, unlike the others, query 9: plans differ" in text
    assert "22 of 22 queries are left; none was dropped." in text
    every = replace(recipe, suspect=tuple((cell, 1, "cold") for cell in range(4)))
    text = " ".join(as_printed(show_tables([synthetic_tpch_study(tmp_path / "all", every)])).split())
    assert "No cell has a trusted run" in text


def test_what_was_dropped_and_why_stands_below_the_scores(cold: str) -> None:
    assert "18 of 22 queries are left. Dropped:" in cold
    assert "  9, 17: plans differ between cells\n" in re.sub(r" +\n", "\n", cold)
    assert "  20: over its limit\n" in re.sub(r" +\n", "\n", cold)
    assert "  21: plans differ within a cell, plans differ between cells" in cold


def test_letters_tell_plans_apart_and_timeouts_are_no_times(cold: str) -> None:
    # Of three types at 8 and 32 kB, the best first: ext4 and xfs take another plan at 32 kB.
    assert list("AAAABB") == sorted(row_of(cold, "Queries of cold", "9 *")[3::2])
    assert list("AAAAAB") == sorted(row_of(cold, "Queries of cold", "17 *")[3::2])
    assert ["A"] * 5 + ["A/B"] == sorted(row_of(cold, "Queries of cold", "21 *")[3::2])
    assert ["A"] * 6 == row_of(cold, "Queries of cold", "22")[2::2]
    assert "> 30 A" in " ".join(row_of(cold, "Queries of cold", "20 *"))


def test_a_query_without_a_known_plan_has_no_letter(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", ONE)
    for path in study.glob("visits/*/*/*/runs/*-cold-*/plans.json"):
        path.unlink()
    text = as_printed(show_tables([study], workload="cold"))
    assert "?" == row_of(text, "Queries of cold", "1 *")[-1]
    assert "0 of 22 queries are left" in text
    assert "plan not known" in text


def test_damaged_plans_name_their_file(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", ONE)
    path = next(study.glob("visits/*/*/*/runs/*-cold-*/plans.json"))
    path.write_text('{"plans": 1}', encoding="utf-8")
    with pytest.raises(StudyError, match=re.escape("plans.json")):
        show_tables([study])


def test_power_and_throughput_say_that_they_are_not_audited(shown: str) -> None:
    assert "Not an audited TPC-H result" in shown
    assert "without the refresh functions" in " ".join(shown.split())
    assert "tpch_power: query 20 was stopped at its limit of 30 s" in shown


def test_few_streams_for_a_large_scale_are_told(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", replace(ONE, scale_factor=10.0, query_timeout_s=None))
    text = " ".join(as_printed(show_tables([study])).split())
    assert "2 streams; the specification asks for 3 at this scale factor" in text


def test_many_passes_make_several_tables_of_power(tmp_path: Path) -> None:
    recipe = replace(ONE, passes=("cold", "warm", "warm", "warm"))
    text = as_printed(show_tables([synthetic_tpch_study(tmp_path / "study", recipe)]))
    assert 2 == text.count("Power and throughput, QphH@SF")
    assert {"warm-2", "warm-3", "composite"} <= set(text.split())


def with_another_scale(directory: Path, scale_factor: float) -> Path:
    """One study of two scale factors; runs of the same name on both."""
    study = synthetic_tpch_study(directory / "study", ONE)
    other = synthetic_tpch_study(directory / "other", replace(ONE, scale_factor=scale_factor))
    schedule, more = (codec.read(StudySchedule, place / "schedule.json") for place in (study, other))
    visits = (*schedule.visits, *(replace(visit, index=1) for visit in more.visits))
    both = replace(
        schedule,
        datasets={**schedule.datasets, **more.datasets},
        runs={**schedule.runs, **more.runs},
        visits=visits,
    )
    codec.write(study / "schedule.json", both)
    shutil.copytree(other / "visits", study / "visits", dirs_exist_ok=True)
    return study


def test_power_of_two_scale_factors_stands_in_two_tables(tmp_path: Path) -> None:
    text = as_printed(show_tables([with_another_scale(tmp_path, 0.2)]))
    titles = [
        "Power and throughput, QphH@SF, scale factor 0.1",
        "Power and throughput, QphH@SF, scale factor 0.2",
    ]
    places = [text.index(title) for title in titles]
    for start, end in zip(places, (places[1], text.index("Not an audited")), strict=True):
        heads = text[start:end].split()
        assert [1, 1, 1, 1] == [heads.count(head) for head in ("cold", "warm", "throughput", "composite")]


def test_many_cells_are_summed_up(tmp_path: Path) -> None:
    recipe = replace(PLAIN, database_blocks=(1024, 2048, 4096, 8192, 16384, 32768), repetitions=1)
    text = as_printed(show_tables([synthetic_tpch_study(tmp_path / "study", recipe)], workload="cold"))
    assert "18 cells" in text
    row = row_of(text, "Queries of cold", "7 ")
    # xfs is the fastest at every block size, btrfs the slowest.
    assert ["A", "xfs"] == row[2:4]
    assert "btrfs" == row[-1]


def test_the_type_of_a_workload_and_a_runs_name_both_choose(study: Path, shown: str) -> None:
    assert shown == as_printed(show_tables([study], workload="tpch"))
    load = as_printed(show_tables([study], workload="load"))
    assert "Load, scale factor 0.1" in load
    assert "Scores" not in load
    assert "Power" in as_printed(show_tables([study], workload="throughput"))
    with pytest.raises(PlanError, match="there are load, cold, warm, throughput"):
        show_tables([study], workload="pgbench")


def test_pgbench_is_a_type_too(tmp_path: Path) -> None:
    recipe = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=1, course_s=5)
    study = write_study(tmp_path / "study", recipe)
    assert as_printed(show_tables([study])) == as_printed(show_tables([study], workload="pgbench"))


def test_a_metric_of_whole_runs_and_of_their_parts(study: Path) -> None:
    text = as_printed(show_tables([study], workload="cold", metric="device_read_mib"))
    assert "Bar: cold." in text
    assert "p99" not in text
    assert 7 == len(row_of(text, "cold: device_read_mib", "query 22")[1:])
    phases = as_printed(show_tables([study], metric="phase_s"))
    assert 6 == len(row_of(phases, "load: phase_s", "foreign keys")[2:])
    assert "Bar" not in phases
    streams = as_printed(show_tables([study], metric="query_s", workload="throughput"))
    assert "> 30 " in " ".join(row_of(streams, "throughput: query_s", "stream 2, query 20"))


def test_a_query_that_was_stopped_in_some_runs_has_the_figure_of_the_page(tmp_path: Path) -> None:
    """The mean of the runs that ended would be that of the quick ones (docs/decisions/0015)."""
    study = synthetic_tpch_study(tmp_path / "study", replace(ONE, repetitions=3, timeouts=((0, 20),)))
    ended = {1: 12.5, 2: 14.5}
    for place, path in enumerate(sorted(study.glob("visits/*/*/*/runs/*-cold-*/run.json"))):
        run = json.loads(path.read_text())
        for row in run["figures"]:
            if (row["metric"], row["item"]) == ("query_s", "20") and place in ended:
                row.update(value=ended[place], status="measured", limit=None)
        path.write_text(json.dumps(run))
    found = overview(study)
    (key,) = (key for key in found.summaries if (key.run, key.metric, key.item) == ("cold", "query_s", "20"))
    assert 14.5 == ranked(found, key, found.summaries[key]).summary.centre
    text = as_printed(show_tables([study], metric="query_s", workload="cold"))
    assert "14.50+" in row_of(text, "cold: query_s", "query 20")
    assert "14.50" in " ".join(row_of(as_printed(show_tables([study])), "Queries of cold", "20 "))


def test_a_study_that_has_only_begun_shows_what_is_missing(tmp_path: Path) -> None:
    recipe = replace(PLAIN, repetitions=1, missing=tuple((cell, 1) for cell in range(6)))
    study = synthetic_tpch_study(tmp_path / "study", recipe)
    text = as_printed(show_tables([study]))
    assert "not run yet" in text
    assert "over 0 of 6 cells" in text
    assert () == overview(study).scores
    assert 0 == overview(study).repetitions


def test_a_load_that_failed_is_told_in_every_table(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", replace(ONE, failed=((0, 1, "load"),)))
    text = as_printed(show_tables([study]))
    assert "failed (load): lineitem has 599999 rows, expected are 600572" in text
    assert 4 == len(re.findall("0 ✗", text))


def test_hostile_names_are_printed_not_obeyed(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", replace(ONE, hostile=True))
    assert "window.__pwned=1" in as_printed(show_tables([study]))


def test_the_document_has_all_of_it(study: Path) -> None:
    (document,) = json.loads(json.dumps(show_document([study]), allow_nan=False))["studies"]
    cold, warm = document["tpch"]
    assert ("cold", "warm") == (cold["run"], warm["run"])
    assert 18 == len(cold["kept"])
    assert ["over its limit"] == cold["causes"]["20"]
    assert {"time", "score", "m_time", "m_score", "times_s", "timeouts"} <= set(cold["cells"][0])
    assert {"A", "B"} == set(cold["plan_letters"]["9"].values())
    runs = {run["run"]: run for run in document["cells"][0]["runs"]}
    assert 3 == runs["throughput"]["metrics"]["tpch_composite"]["n"]
    parts = {(part["phase"], part["item"], part["metric"]) for part in runs["cold"]["parts"]}
    assert ("queries", "22", "query_s") in parts
    assert 3 == document["repetitions"]


def test_a_document_of_one_metric_has_no_other(study: Path) -> None:
    (document,) = show_document([study], metric="query_s", workload="cold")["studies"]
    (run,) = document["cells"][0]["runs"]
    assert {} == run["metrics"]
    assert {"query_s"} == {part["metric"] for part in run["parts"]}
    with pytest.raises(PlanError, match="known are"):
        show_document([study], metric="speed")


def test_the_exports_of_a_tpch_study_have_its_own_tables(study: Path, tmp_path: Path) -> None:
    written = export(study, tmp_path / "out")
    names = (*TABLES, "scores", "dropped_queries")
    assert {f"{name}.{kind}" for name in names for kind in ("csv", "parquet", "json")} == {
        path.name for path in written
    }
    for name in names:
        parquet = pl.read_parquet(tmp_path / "out" / f"{name}.parquet")
        csv = pl.read_csv(tmp_path / "out" / f"{name}.csv", infer_schema_length=None)
        assert (parquet.columns, parquet.height) == (csv.columns, csv.height)
    export(study, tmp_path / "study.json")
    assert list(names) == list(json.loads((tmp_path / "study.json").read_text()))


def test_the_exported_scores_are_those_of_the_study(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path, ["parquet"])
    scores = pl.read_parquet(tmp_path / "scores.parquet")
    # Six cells, two passes, four scores.
    assert 48 == scores.height
    view = overview(study).scores[0]
    made = {cell.cell: cell.m_score.value for cell in view.scores.cells}
    rows = scores.filter(metric="m_score", run=view.run)
    assert made == dict(zip(rows["cell"], rows["value"], strict=True))
    assert {18} == set(rows["queries"])
    (timed_out,) = scores.filter((pl.col("timeouts") == "20") & (pl.col("run") == "cold"))["cell"].unique()
    assert tpch_cells(RECIPE)[4].id == timed_out
    (written,) = export(study, tmp_path, ["parquet"], tables=["plans"])
    plans = pl.read_parquet(written)
    # The failed run kept none.
    passes = plans.filter(phase="queries")
    assert (6 * 3 * 2 - 1) * 22 == passes.height
    assert {"A", "B"} == set(passes.filter(query="9")["letter"])
    # Both streams of every visit, under no letter: those are of one pass.
    streams = plans.filter(pl.col("phase").is_in(["stream 1", "stream 2"]))
    assert (6 * 3 * 2 * 22, {None}) == (streams.height, set(streams["letter"]))
    assert plans.height == passes.height + streams.height
    assert isinstance(json.loads(plans["explained"][0]), list)
    dropped = pl.read_parquet(tmp_path / "dropped_queries.parquet")
    assert ["9", "17", "20", "21"] == dropped.filter(run="warm")["query"].to_list()
    figures = pl.read_parquet(tmp_path / "figures.parquet")
    assert (
        5 * 3
        == figures.filter((pl.col("metric") == "tpch_composite") & pl.col("value").is_not_null()).height + 1
    )


def test_a_cell_that_never_completed_a_pass_has_rows_with_its_reason(tmp_path: Path) -> None:
    recipe = replace(PLAIN, repetitions=1, failed=((2, 1, "cold"),))
    study = synthetic_tpch_study(tmp_path / "study", recipe)
    export(study, tmp_path, ["parquet"])
    rows = pl.read_parquet(tmp_path / "scores.parquet").filter(run="cold", cell=tpch_cells(recipe)[2].id)
    assert [None] * 4 == rows["value"].to_list()
    assert {"no query has a time here"} == set(rows["reasons"])
