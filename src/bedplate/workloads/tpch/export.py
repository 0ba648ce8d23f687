"""TPC-H's scores, plans and dropped queries as tables for other tools (docs/EXPORT.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polars import Float64, Int64, String

from bedplate.analysis.overview import SCORES, Overview, ScoreView
from bedplate.analysis.run_heads import runs_of
from bedplate.export.columns import (
    KEY_COLUMNS,
    ExportColumn,
    ExportTable,
    WorkloadExport,
    run_columns,
    run_key,
)
from bedplate.model.metrics import METRICS
from bedplate.statistics.tpch_scores import Score
from bedplate.workloads.tpch.figures import NOT_AUDITED
from bedplate.workloads.tpch.model import WORKLOAD
from bedplate.workloads.tpch.scores import plan_letters, read_plans

# `m_time` and `m_score` are made of the kept queries, the others of all.
_OF_KEPT = ("m_time", "m_score")

_SCORE_COLUMNS: Mapping[str, ExportColumn] = {
    **run_columns("study", "cell", "dataset", "run", "emulated"),
    "metric": ExportColumn(
        String,
        "`time`: the sum; a timeout counts as its limit. `score`: the sum of best time / time; a timeout scores 0. `m_time` and "
        "`m_score`: the same over the queries that finished in every cell with one and the same plan",
    ),
    "value": ExportColumn(Float64, "the score; empty where a query has no time"),
    "unit": ExportColumn(String, "`s`, or `1`"),
    "ideal_share": ExportColumn(
        Float64, "how near it comes to a cell that is best in every query; 1 is the ideal"
    ),
    "low": ExportColumn(Float64, "lower bound of the 95 % interval; empty below three repetitions"),
    "high": ExportColumn(Float64, "its upper bound"),
    "repetitions": ExportColumn(Int64, "how many runs it is made of"),
    "basis": ExportColumn(String, "`trusted`; `suspect` or `unknown` where the cell has no trusted run"),
    "queries": ExportColumn(Int64, "how many queries this score is made of"),
    "queries_kept": ExportColumn(Int64, "how many are left for `m_time` and `m_score`"),
    "timeouts": ExportColumn(String, "the queries whose median is a timeout in this cell, joined by `, `"),
    "reasons": ExportColumn(String, "why there is no value; joined by `; `"),
    "selection": ExportColumn(
        String,
        "the filters that selected the cells, and how many of the study's these are; empty where they are all",
    ),
}

_PLAN_COLUMNS: Mapping[str, ExportColumn] = {
    **KEY_COLUMNS,
    "phase": ExportColumn(String, "`queries`, or the stream: `stream 2`"),
    "query": ExportColumn(String, "number of the query"),
    "hash": ExportColumn(
        String, "hash of the plan's structure: equal where two runs did the same in the same order"
    ),
    "letter": ExportColumn(
        String,
        "the plan's name in `bedplate show`: within a pass and a query the same letter is the same plan; empty for streams",
    ),
    "explained": ExportColumn(String, "what EXPLAIN (FORMAT JSON) said after the run"),
}

_DROPPED_COLUMNS: Mapping[str, ExportColumn] = {
    **run_columns("study", "dataset", "run"),
    "query": ExportColumn(String, "number of the query"),
    "causes": ExportColumn(
        String,
        "in short: `no time`, `over its limit`, `plan not known`, `plans differ within a cell`, "
        "`plans differ between cells`",
    ),
    "reasons": ExportColumn(String, "the same with the cells; joined by `; `"),
    "selection": ExportColumn(String, "as in `scores`"),
}


def _score_rows(found: Overview) -> list[dict[str, Any]]:
    """Four for each cell of each power run; a cell without a time has them too."""
    return [row for view in found.scores for cell in found.cells for row in _of_cell(found, view, cell)]


def _of_cell(found: Overview, view: ScoreView, cell: str) -> Iterator[dict[str, Any]]:
    scores = view.scores
    made = next((entry for entry in scores.cells if entry.cell == cell), None)
    facts = found.cells[cell]
    for metric in SCORES:
        score: Score | None = None if made is None else getattr(made, metric)
        # Of visits that cannot be compared there is no interval (CellFacts.incomparable).
        bounded = score is not None and not facts.incomparable
        left_out = scores.left_out.get(cell)
        yield {
            "study": found.study.facts.title,
            "cell": cell,
            "dataset": view.dataset,
            "run": view.run,
            "emulated": facts.emulated,
            "metric": metric,
            "value": score.value if score else None,
            "unit": METRICS[metric].unit,
            "ideal_share": score.ideal_share if score else None,
            "low": score.low if score and bounded else None,
            "high": score.high if score and bounded else None,
            "repetitions": view.repetitions.get(cell, 0),
            "basis": made.basis if made else None,
            "queries": len(scores.kept if metric in _OF_KEPT else scores.queries),
            "queries_kept": len(scores.kept),
            "timeouts": ", ".join(made.timeouts) if made else "",
            "reasons": "; ".join(score.reasons if score else (left_out,) if left_out else ()),
            "selection": found.selection,
        }


def _plan_rows(found: Overview) -> Iterator[dict[str, Any]]:
    """One per query of every power run and stream that kept its plans."""
    lettered = {(view.dataset, view.run): plan_letters(view) for view in found.scores}
    for m in found.measurements:
        plans = read_plans(m)
        letters = {} if m.canary else lettered.get((m.dataset, m.run), {})
        for plan in plans.plans if plans else ():
            yield {
                **run_key(found, m),
                "phase": plan.phase,
                "query": plan.item,
                "hash": plan.hash,
                "letter": letters.get(plan.item, {}).get(plan.hash),
                "explained": plan.explained,
            }


def _dropped_rows(found: Overview) -> list[dict[str, Any]]:
    """One per power run and query that the m-scores leave out."""
    return [
        {
            "study": found.study.facts.title,
            "dataset": view.dataset,
            "run": view.run,
            "query": query,
            "causes": "; ".join(view.scores.causes.get(query, ())),
            "reasons": "; ".join(reasons),
            "selection": found.selection,
        }
        for view in found.scores
        for query, reasons in view.scores.dropped.items()
    ]


EXPORT = WorkloadExport(
    {
        "scores": ExportTable(_SCORE_COLUMNS, _score_rows),
        "plans": ExportTable(_PLAN_COLUMNS, _plan_rows, bulky=True),
        "dropped_queries": ExportTable(_DROPPED_COLUMNS, _dropped_rows),
    },
    lambda found: bool(runs_of(found, WORKLOAD)),
    (("TPC-H", f"Its figures are {NOT_AUDITED}."),),
)
