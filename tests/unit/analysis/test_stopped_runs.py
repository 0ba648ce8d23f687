"""A cell of which some runs were stopped at a limit: the others are the quick ones, and make it no faster than it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study
from tests.support.studies.written import write
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.advice import advised, open_cells
from bedplate.analysis.answer import NotTakenFor, headline
from bedplate.analysis.claims import Finding, judge_claims, parse_claims
from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.effects import study_effects
from bedplate.analysis.mail import mail_text
from bedplate.analysis.overview import Overview, overview
from bedplate.model.codec import read
from bedplate.model.figure import RunFigures
from bedplate.model.metrics import censored
from bedplate.statistics.comparison import Verdict
from bedplate.terminal.tables import show_tables

if TYPE_CHECKING:
    from pathlib import Path

RUN, TOTAL = "cold", "queries_total_s"
RECIPE = TpchRecipe(
    repetitions=5,
    timeouts=(),
    failed=(),
    other_plans=(),
    wavering_plans=(),
    database_blocks=(8192,),
    streams=0,
)
LIMIT_S, STOPPED, QUICK = 500.0, 2, 0.3


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    """Btrfs takes 35 s in three repetitions, less than half of what the others take, and 500 s or more in two."""
    study: Path = synthetic_tpch_study(tmp_path_factory.mktemp("stopped") / "study", RECIPE)
    for path in study.glob("visits/btrfs*/*/*/runs/*/run.json"):
        run = read(RunFigures, path)
        if run.run != RUN:
            continue
        is_stopped = int(path.parts[-4].partition(".")[0]) <= STOPPED
        figures = tuple(
            each
            if (each.metric, each.phase) != (TOTAL, "measure")
            else replace(censored(TOTAL, LIMIT_S), phase=each.phase, item=each.item, pass_=each.pass_)
            if is_stopped
            else replace(each, value=(each.value or 0) * QUICK)
            for each in run.figures
        )
        write(path, replace(run, figures=figures))
    return overview(study)


def cell_of(found: Overview, kind: str) -> str:
    return next(id_ for id_, cell in found.study.schedule.cells.items() if cell.filesystem.type == kind)


def test_it_is_neither_taken_nor_judged_and_named_with_the_reason(found: Overview) -> None:
    own = next(each for each in headline(found).answers if each.run[1] == RUN)
    btrfs = cell_of(found, "btrfs")
    assert own.taken is not None
    assert (cell_of(found, "xfs"), 2) == (own.taken.cell, own.cells)
    (told,) = own.not_taken
    assert (NotTakenFor.TOO_FEW, (btrfs,), ()) == (told.why, told.cells, told.seen)
    assert "2 stopped at a limit, which `bedplate compare` judges" in told.reason
    assert "btrfs" not in mail_text(headline(found)).partition("cell ")[2]


def test_advice_and_its_model_take_it_for_nothing(found: Overview) -> None:
    contest = next(each for each in advised(found).contests if each.run[1] == RUN)
    btrfs = cell_of(found, "btrfs")
    assert {btrfs} == contest.stopped == contest.left_out.keys()
    assert btrfs not in open_cells(found, contest)


def test_effects_leave_the_cell_out_and_say_so(found: Overview) -> None:
    (one,) = (each for each in study_effects(found, workload=RUN).found if each.asked.metric == TOTAL)
    assert (1, 0) == (one.stopped, one.unusable)
    levels = {each.level for part in one.parts for each in part.effects} | {
        each.baseline for part in one.parts for each in part.effects
    }
    assert {"ext4", "xfs"} == levels


def test_a_claim_is_not_judged_by_the_quick_runs(found: Overview) -> None:
    claim = (
        'title = "x"\n[[claim]]\nid = "a"\nsentence = "x"\n[[claim.check]]\nkind = "ratio"\nrun = "cold"\n'
        'metric = "queries_total_s"\nbaseline = "type=ext4"\ncontender = "type=btrfs"\nat_most = 0.9\n'
    )
    ((one,),) = judge_claims([found], [parse_claims(claim)]).judged
    assert Finding.CANNOT_TELL is one.finding
    assert (None, "runs that were stopped at a limit: 2") == (
        one.estimate,
        one.reasons[0].split("(")[1].split(";")[0],
    )


def test_means_that_compare_shows_have_its_ratio(found: Overview) -> None:
    (one,) = answer([found], ComparisonQuestion("type=ext4", "type=btrfs", workload=RUN)).compared
    first, second = (each.centre for each in one.figures)
    assert first is not None
    assert second is not None
    assert one.comparison.estimate == pytest.approx(second / first)
    assert (Verdict.CANNOT_TELL, STOPPED) == (one.comparison.verdict, one.comparison.censored)


def test_the_table_says_how_many_were_stopped(found: Overview) -> None:
    """The median of five is one of the quick ones, and no mean of all."""
    text = " ".join(as_printed(show_tables([found.study.directory], workload=RUN, metric=TOTAL), 120).split())
    assert "[a] 2 of 5 runs were stopped at a limit, so that this is the median" in text
