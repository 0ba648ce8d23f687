"""TPC-H's scores, plans and dropped queries as tables for other tools (docs/EXPORT.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from polars import Int64

from bedplate.analysis.overview import SCORES, CellFacts, Overview, ScoreView
from bedplate.analysis.run_heads import runs_of
from bedplate.export.columns import (
    KEY_COLUMNS,
    Column,
    RunRow,
    Table,
    WorkloadExport,
    as_in_runs,
    field_columns,
)
from bedplate.model.metrics import METRICS
from bedplate.statistics.tpch_scores import CellScores, Score
from bedplate.workloads.tpch.figures import NOT_AUDITED
from bedplate.workloads.tpch.model import WORKLOAD
from bedplate.workloads.tpch.query_plan import QueryPlan
from bedplate.workloads.tpch.scores import plan_letters, read_plans

# `m_time` and `m_score` are made of the kept queries, the others of all.
_OF_KEPT = ("m_time", "m_score")


class _ScoreRow(NamedTuple):
    overview: Overview
    view: ScoreView
    cell: CellFacts
    metric: str
    made: CellScores | None

    @property
    def score(self) -> Score | None:
        return None if self.made is None else getattr(self.made, self.metric)

    @property
    def bounded(self) -> Score | None:
        """Of visits that cannot be compared there is no interval (CellFacts.incomparable)."""
        return None if self.cell.incomparable else self.score

    @property
    def reasons(self) -> tuple[str, ...]:
        if self.score is not None:
            return self.score.reasons
        left_out = self.view.scores.left_out.get(self.cell.id)
        return (left_out,) if left_out else ()


def _score_rows(overview: Overview) -> Iterator[_ScoreRow]:
    """Four for each cell of each power run; a cell without a time has them too."""
    for view in overview.scores:
        made = {scores.cell: scores for scores in view.scores.cells}
        for name, cell in overview.cells.items():
            for metric in SCORES:
                yield _ScoreRow(overview, view, cell, metric, made.get(name))


_SCORES: Table[_ScoreRow] = Table(
    (
        as_in_runs("study", lambda row: row.overview.study.facts.title),
        as_in_runs("cell", lambda row: row.cell.id),
        as_in_runs("dataset", lambda row: row.view.dataset),
        as_in_runs("run", lambda row: row.view.run),
        as_in_runs("emulated", lambda row: row.cell.emulated),
        Column(
            "metric",
            lambda row: row.metric,
            "`time`: the sum; a timeout counts as its limit. `score`: the sum of best time / time; a timeout scores 0. `m_time` and "
            "`m_score`: the same over the queries that finished in every cell with one and the same plan",
        ),
        *field_columns(Score, lambda row: row.score, "value"),
        Column("unit", lambda row: METRICS[row.metric].unit, "`s`, or `1`"),
        *field_columns(Score, lambda row: row.score, "ideal_share"),
        *field_columns(Score, lambda row: row.bounded, "low high"),
        Column(
            "repetitions",
            lambda row: row.view.repetitions.get(row.cell.id, 0),
            "how many runs it is made of",
            Int64,
        ),
        *field_columns(CellScores, lambda row: row.made, "basis"),
        Column(
            "queries",
            lambda row: len(row.view.scores.kept if row.metric in _OF_KEPT else row.view.scores.queries),
            "how many queries this score is made of",
            Int64,
        ),
        Column(
            "queries_kept",
            lambda row: len(row.view.scores.kept),
            "how many are left for `m_time` and `m_score`",
            Int64,
        ),
        Column(
            "timeouts",
            lambda row: ", ".join(row.made.timeouts) if row.made else "",
            "the queries whose median is a timeout in this cell, joined by `, `",
        ),
        Column("reasons", lambda row: "; ".join(row.reasons), "why there is no value; joined by `; `"),
        Column(
            "selection",
            lambda row: row.overview.selection,
            "the filters that selected the cells, and how many of the study's these are; empty where they are all",
        ),
    ),
    _score_rows,
)


class _LetteredPlan(NamedTuple):
    plan: QueryPlan
    letter: str | None


def _plan_rows(overview: Overview) -> Iterator[RunRow[_LetteredPlan]]:
    """One per query of every power run and stream that kept its plans."""
    lettered = {(view.dataset, view.run): plan_letters(view) for view in overview.scores}
    for m in overview.measurements:
        plans = read_plans(m)
        letters = {} if m.canary else lettered.get((m.dataset, m.run), {})
        for plan in plans.plans if plans else ():
            yield RunRow(overview, m, _LetteredPlan(plan, letters.get(plan.item, {}).get(plan.hash)))


_PLANS: Table[RunRow[_LetteredPlan]] = Table(
    (
        *KEY_COLUMNS,
        *field_columns(
            QueryPlan, lambda row: row.record.plan, "phase", "`queries`, or the stream: `stream 2`"
        ),
        *field_columns(QueryPlan, lambda row: row.record.plan, "query=item hash"),
        Column(
            "letter",
            lambda row: row.record.letter,
            "the plan's name in `bedplate show`: within a pass and a query the same letter is the same plan; empty for streams",
        ),
        *field_columns(QueryPlan, lambda row: row.record.plan, "explained"),
    ),
    _plan_rows,
    bulky=True,
)


class _DroppedQuery(NamedTuple):
    overview: Overview
    view: ScoreView
    query: str
    reasons: tuple[str, ...]


_DROPPED: Table[_DroppedQuery] = Table(
    (
        as_in_runs("study", lambda row: row.overview.study.facts.title),
        as_in_runs("dataset", lambda row: row.view.dataset),
        as_in_runs("run", lambda row: row.view.run),
        Column("query", lambda row: row.query, "number of the query"),
        Column(
            "causes",
            lambda row: "; ".join(row.view.scores.causes.get(row.query, ())),
            "in short: `no time`, `over its limit`, `plan not known`, `plans differ within a cell`, "
            "`plans differ between cells`",
        ),
        Column("reasons", lambda row: "; ".join(row.reasons), "the same with the cells; joined by `; `"),
        Column("selection", lambda row: row.overview.selection, "as in `scores`"),
    ),
    lambda overview: (
        _DroppedQuery(overview, view, query, reasons)
        for view in overview.scores
        for query, reasons in view.scores.dropped.items()
    ),
)

EXPORT = WorkloadExport(
    {"scores": _SCORES, "plans": _PLANS, "dropped_queries": _DROPPED},
    lambda overview: bool(runs_of(overview, WORKLOAD)),
    (("TPC-H", f"Its figures are {NOT_AUDITED}."),),
)
