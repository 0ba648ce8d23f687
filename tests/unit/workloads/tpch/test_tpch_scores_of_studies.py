"""What the overview of a TPC-H study holds: parts of runs, scores as summaries, the composite, letters of plans."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study, tpch_cells
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.overview import SCORES, ScoreView, overview, part_figures, whole_figures
from bedplate.analysis.wording import span
from bedplate.model.codec import read, write
from bedplate.model.metrics import figure
from bedplate.model.visit import VisitRecord
from bedplate.page.document import page_document
from bedplate.page.static import page_shell
from bedplate.statistics.summary import SUSPECT, Summary, SummaryKey
from bedplate.statistics.tpch_scores import QueryRun, scores
from bedplate.terminal.tables import show_tables
from bedplate.workloads.tpch.scores import plan_letters

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = TpchRecipe(
    filesystems=("ext4", "btrfs"),
    database_blocks=(8192,),
    timeouts=(),
    other_plans=(),
    wavering_plans=(),
    failed=(),
)
EXT4, BTRFS = (cell.id for cell in tpch_cells(RECIPE))


def test_a_figure_of_a_phase_or_an_item_is_none_of_the_whole_run() -> None:
    figures = (
        figure("phase_s", 3.0, phase="load"),
        figure("table_load_s", 1.0, phase="load", item="lineitem"),
        figure("load_total_s", 9.0),
        figure("load_s", 12.5, phase="load"),
        figure("mkfs_s", 0.4, phase="prepare"),
        figure("load_total_s", 10.0),
    )
    whole, parts = whole_figures(figures), part_figures(figures)
    assert {"load_total_s": 9.0, "load_s": 12.5, "mkfs_s": 0.4} == {
        name: row.value for name, row in whole.items()
    }
    assert [("load", "", "phase_s"), ("load", "lineitem", "table_load_s")] == list(parts)


def test_every_part_has_a_summary_of_its_own(tmp_path: Path) -> None:
    found = overview(synthetic_tpch_study(tmp_path / "study", RECIPE))
    load, cold = found.runs[0], found.runs[1]
    assert 3 == found.summary(EXT4, load, "phase_s", "indexes").n
    assert 3 == found.summary(EXT4, load, "table_load_s", "load", "lineitem").n
    assert 3 == found.summary(EXT4, cold, "query_s", "queries", "14").n
    assert 0 == found.summary(EXT4, cold, "query_s").n, "a query's time is no figure of the run"
    # A load does not lack the figures of a query.
    metrics = {key.metric for key in found.summaries_of(EXT4, load)}
    assert not metrics & {"query_s", "tpch_power", "tps", "score"}


def test_a_timeout_is_counted_and_not_measured(tmp_path: Path) -> None:
    found = overview(synthetic_tpch_study(tmp_path / "study", replace(RECIPE, timeouts=((0, 20),))))
    summary = found.summary(EXT4, found.runs[1], "query_s", "queries", "20")
    assert (0, 3) == (summary.n, summary.censored)
    absent = SummaryKey(EXT4, *found.runs[1], "tpch_power")
    assert (0, 3) == (found.summaries[absent].n, found.summaries[absent].absent)
    assert "query 20 was stopped at its limit of 30 s" == found.absence(absent)


def test_a_pass_with_a_timeout_took_longer_than_its_sum(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", replace(RECIPE, timeouts=((0, 20),)))
    found = overview(study)
    stopped, whole = (found.summary(cell, found.runs[1], "queries_total_s") for cell in (EXT4, BTRFS))
    assert (0, 3, None) == (stopped.n, stopped.censored, stopped.centre)
    assert (3, 0) == (whole.n, whole.censored)
    text = as_printed(show_tables([study], workload="cold", metric="queries_total_s"))
    (limit,) = re.findall(r"^ ?ext4 .*?> ([\d.]+) ", text, flags=re.MULTILINE)
    assert float(limit) > 30
    page = page_document([found])
    columns = page["summaries"]
    metric = [m["name"] for m in page["metrics"]].index("queries_total_s")
    row = {
        columns["cell"][i]: i
        for i, place in enumerate(columns["metric"])
        if (place, columns["run"][i]) == (metric, 1)
    }
    assert {0: 3, 1: 0} == {cell: columns["censored"][i] for cell, i in row.items()}
    assert columns["mean"][row[0]] is None
    assert columns["limit"][row[0]] == pytest.approx(float(limit), rel=1e-3)
    assert columns["limit"][row[1]] is None
    (shell,) = page_shell([found])["studies"]
    medians = {row.name: row.runs[1].figure for table in shell.tables for row in table.rows}
    assert ["> ", False] == [medians["ext4"][:2], medians["btrfs"].startswith(">")]


def test_scores_are_summaries_too(tmp_path: Path) -> None:
    found = overview(synthetic_tpch_study(tmp_path / "study", RECIPE))
    (cold, warm) = found.scores
    assert ("cold", "warm") == (cold.run, warm.run)
    for view in found.scores:
        for cell in view.scores.cells:
            for metric in SCORES:
                summary = found.summary(cell.cell, (view.dataset, view.run), metric)
                score = getattr(cell, metric)
                assert (score.value, score.low, score.high) == (summary.centre, summary.low, summary.high)
                assert 3 == summary.n
                assert "" == span(summary), "a score has no smallest and no largest"


def test_the_best_cell_is_the_faster_one(tmp_path: Path) -> None:
    view = overview(synthetic_tpch_study(tmp_path / "study", RECIPE)).scores[0]
    first, second = view.scores.cells
    assert (EXT4, BTRFS) == (first.cell, second.cell)
    assert first.m_score.value == pytest.approx(22, abs=0.01)
    assert second.m_score.value is not None
    assert second.m_score.value < 17


def test_suspect_runs_count_only_where_there_are_no_others(tmp_path: Path) -> None:
    recipe = replace(RECIPE, suspect=((0, 1, "cold"), *((1, number, "cold") for number in (1, 2, 3))))
    found = overview(synthetic_tpch_study(tmp_path / "study", recipe))
    view = found.scores[0]
    assert {EXT4: 2, BTRFS: 3} == view.repetitions
    assert (2, "trusted") == _n_and_basis(found.summary(EXT4, found.runs[1], "time"))
    assert (3, SUSPECT) == _n_and_basis(found.summary(BTRFS, found.runs[1], "time"))


def test_a_cell_without_a_pass_says_why_it_has_no_score(tmp_path: Path) -> None:
    recipe = replace(RECIPE, failed=tuple((0, number, "cold") for number in (1, 2, 3)))
    found = overview(synthetic_tpch_study(tmp_path / "study", recipe))
    key = SummaryKey(EXT4, *found.runs[1], "m_score")
    assert "no query has a time here" == found.absence(key)
    assert key not in found.summaries


def test_visits_that_cannot_be_compared_have_no_interval(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", RECIPE)
    for number, path in enumerate(sorted(study.glob(f"visits/{EXT4}/*/*/visit.json"))):
        record = read(VisitRecord, path)
        write(path, replace(record, provenance={**record.provenance, "kernel": f"6.{number}"}))
    found = overview(study)
    assert found.cells[EXT4].incomparable
    assert found.summary(EXT4, found.runs[1], "score").low is None
    assert found.summary(BTRFS, found.runs[1], "score").low is not None


def test_the_composite_is_the_geometric_mean_of_the_pass_before_it(tmp_path: Path) -> None:
    found = overview(synthetic_tpch_study(tmp_path / "study", RECIPE))
    for cell in (EXT4, BTRFS):
        warm = {m.repetition: m.value("tpch_power") for m in found.of(cell, found.runs[2])}
        for m in found.of(cell, found.runs[3]):
            power, throughput = warm[m.repetition], m.value("tpch_throughput")
            assert power is not None
            assert throughput is not None
            assert m.value("tpch_composite") == pytest.approx(math.sqrt(power * throughput), abs=0.06)
        assert 3 == found.summary(cell, found.runs[3], "tpch_composite").n


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"failed": ((0, 1, "warm"),)}, "its power run 'warm' did not complete"),
        ({"suspect": ((0, 1, "warm"),)}, "its power run 'warm' is suspect"),
        ({"timeouts": ((0, 20),)}, "query 20 was stopped at its limit of 30 s"),
    ],
)
def test_a_composite_without_its_power_says_why(
    tmp_path: Path, change: dict[str, tuple[object, ...]], reason: str
) -> None:
    recipe = replace(RECIPE, repetitions=1, **change)  # type: ignore[arg-type]
    found = overview(synthetic_tpch_study(tmp_path / "study", recipe))
    (m,) = found.of(EXT4, found.runs[3])
    composite = m.by_metric["tpch_composite"]
    assert composite.value is None
    assert reason in str(composite.reason)


def test_streams_without_a_pass_have_no_composite_and_say_so(tmp_path: Path) -> None:
    recipe = replace(RECIPE, repetitions=1, passes=(), timeouts=(), failed=())
    found = overview(synthetic_tpch_study(tmp_path / "study", recipe))
    (m,) = found.of(EXT4, found.runs[1])
    assert m.value("tpch_throughput") is not None
    assert None is m.value("tpch_composite")
    assert "no power run came before it in its visit" == str(m.by_metric["tpch_composite"].reason)


def test_two_suspect_halves_make_a_suspect_composite(tmp_path: Path) -> None:
    recipe = replace(RECIPE, repetitions=1, suspect=((0, 1, "warm"), (0, 1, "throughput")))
    found = overview(synthetic_tpch_study(tmp_path / "study", recipe))
    assert (1, SUSPECT) == _n_and_basis(found.summary(EXT4, found.runs[3], "tpch_composite"))


def test_repetitions_are_counted_without_any_tps(tmp_path: Path) -> None:
    whole = overview(synthetic_tpch_study(tmp_path / "whole", RECIPE))
    assert 3 == whole.repetitions
    begun = replace(RECIPE, missing=tuple((cell, number) for cell in (0, 1) for number in (1, 2, 3)))
    assert 0 == overview(synthetic_tpch_study(tmp_path / "begun", begun)).repetitions
    bench = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=2, course_s=5)
    found = overview(write_study(tmp_path / "bench", bench))
    assert (2, ()) == (found.repetitions, found.scores)


def test_a_time_that_cannot_be_is_no_time(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", replace(RECIPE, repetitions=1))
    path = next(study.glob(f"visits/{EXT4}/*/*/runs/*-cold-*/run.json"))
    run = json.loads(path.read_text())
    for row in run["figures"]:
        if (row["metric"], row["item"]) == ("query_s", "7"):
            row["value"] = 0.0
    path.write_text(json.dumps(run))
    view = overview(study).scores[0]
    assert "7" in view.scores.dropped
    assert view.scores.cells[0].time.value is None


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=3), min_size=1, max_size=20))
def test_equal_letters_are_equal_plans(chosen: list[list[int]]) -> None:
    cells = [f"cell {number}" for number in range(len(chosen))]
    runs = [QueryRun(cell, 1, "9", 1.0, plan="p") for cell in cells]
    hashes = {
        cell: {"9": tuple(dict.fromkeys(map(str, plans)))} for cell, plans in zip(cells, chosen, strict=True)
    }
    letters = plan_letters(ScoreView("d", "cold", scores(runs, cells), hashes, {}))["9"]
    assert {str(plan) for plans in chosen for plan in plans} == set(letters)
    assert len(letters) == len(set(letters.values()))
    assert "A" == letters[str(chosen[0][0])]
    assert sorted(letters.values(), key=lambda name: (len(name), name)) == list(letters.values())


def _n_and_basis(summary: Summary) -> tuple[int, str | None]:
    return summary.n, summary.basis
