"""Parts are named once and in order; a median with timeouts among its runs is never that of the quick ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study, tpch_cells

from bedplate.analysis.overview import overview
from bedplate.analysis.part_summaries import page_parts, ranked
from bedplate.model.metrics import METRICS, censored, figure
from bedplate.model.visit import Validity
from bedplate.statistics.summary import SummaryKey, summarise

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.analysis.overview import Overview
    from bedplate.analysis.part_summaries import RankedSummary

RECIPE = TpchRecipe(
    filesystems=("ext4",), database_blocks=(8192,), repetitions=4, passes=("cold",), streams=1, failed=()
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    """Four repetitions of one cell."""
    return overview(synthetic_tpch_study(tmp_path_factory.mktemp("parts") / "study", RECIPE))


def with_times(
    study: Overview, times: list[float | None], suspect: tuple[int, ...] = ()
) -> tuple[Overview, SummaryKey]:
    """The study with these times of query 1, in the order of the repetitions; None is a timeout at 30 s."""
    cell, run = tpch_cells(RECIPE)[0].id, next(run for run in study.runs if run[1] == "cold")
    key = SummaryKey(cell, *run, "query_s", "queries", "1")
    place = (key.phase, key.item, key.metric)
    due = study.of(cell, run)
    made = []
    for m in study.measurements:
        if m in due:
            time = times[m.repetition - 1]
            row = (
                censored("query_s", 30.0, phase="queries", item="1")
                if time is None
                else figure("query_s", time, phase="queries", item="1")
            )
            validity = Validity.SUSPECT if m.repetition in suspect else m.validity
            m = replace(m, parts={**m.parts, place: row}, validity=validity)  # noqa: PLW2901
        made.append(m)
    return replace(study, measurements=tuple(made)), key


def of_times(study: Overview, times: list[float | None], suspect: tuple[int, ...] = ()) -> RankedSummary:
    found, key = with_times(study, times, suspect)
    observations = [
        m.observation("query_s", "queries", "1") for m in found.of(key.cell, (key.dataset, key.run))
    ]
    return ranked(found, key, summarise(observations, METRICS["query_s"].scale))


def test_the_whole_run_stands_first_and_queries_by_their_numbers(study: Overview) -> None:
    parts = page_parts([study])
    assert ("measure", "", "whole run", "") == (
        parts[0].phase,
        parts[0].item,
        parts[0].label,
        parts[0].group,
    )
    assert [f"query {number}" for number in range(1, 23)] == [p.label for p in parts if p.group == "queries"]
    assert [f"stream 1, query {number}" for number in range(1, 23)] == [
        p.label for p in parts if p.group == "stream 1"
    ]
    assert ["load", "primary keys", "foreign keys", "indexes", "analyze", "checkpoint"] == [
        p.label for p in parts if p.group == "phases"
    ]
    assert "lineitem" in [p.label for p in parts if p.group == "load, one by one"]
    assert len(parts) == len({(p.phase, p.item) for p in parts}) == len({(p.group, p.label) for p in parts})


def test_transactions_have_no_parts(tmp_path: Path) -> None:
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=1, course_s=2)
    assert ["whole run"] == [
        part.label for part in page_parts([overview(write_study(tmp_path / "study", recipe))])
    ]


@pytest.mark.parametrize(
    ("times", "middle", "limit", "n"),
    [
        # Of times alone it is the mean, with timeouts the median.
        ([1.0, 2.0, 4.0, 8.0], 64**0.25, None, 4),
        ([1.0, 2.0, 3.0, None], 2.5, 30.0, 3),
        ([1.0, 2.0, None, None], None, 30.0, 2),
        ([1.0, None, None, None], None, 30.0, 1),
        ([None, None, None, None], None, 30.0, 0),
    ],
)
def test_timeouts_rank_above_every_time(
    study: Overview, times: list[float | None], middle: float | None, limit: float | None, n: int
) -> None:
    found = of_times(study, times)
    assert (limit, n) == (found.limit, found.summary.n)
    assert found.summary.centre == (middle and pytest.approx(middle))
    if limit is not None:
        assert (None, None) == (found.summary.low, found.summary.high)


def test_a_suspect_time_does_not_stand_in_for_a_trusted_timeout(study: Overview) -> None:
    found = of_times(study, [1.0, None, None, None], suspect=(1,))
    assert (None, 30.0, 0) == (found.summary.centre, found.limit, found.summary.n)


def test_a_suspect_timeout_does_not_displace_trusted_times(study: Overview) -> None:
    found = of_times(study, [1.0, 2.0, 4.0, None], suspect=(4,))
    assert (None, 3) == (found.limit, found.summary.n)
    assert found.summary.centre == pytest.approx(2.0)
