"""TPC-H's scores, plans and dropped queries as rows of the tables that are exported (docs/EXPORT.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from bedplate.model.metrics import METRICS
from bedplate.report.tpch_view import SCORES, plan_letters, read_plans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.report.overview import Measurement, Overview
    from bedplate.report.tpch_view import TpchView
    from bedplate.statistics.tpch_scores import Score

# `m_time` and `m_score` are made of the kept queries, the others of all.
_OF_KEPT = ("m_time", "m_score")

SCORE_COLUMNS: Mapping[str, Any] = {
    "study": pl.String,
    "cell": pl.String,
    "dataset": pl.String,
    "run": pl.String,
    "emulated": pl.Boolean,
    "metric": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "ideal_share": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "repetitions": pl.Int64,
    "basis": pl.String,
    "queries": pl.Int64,
    "queries_kept": pl.Int64,
    "timeouts": pl.String,
    "reasons": pl.String,
    "selection": pl.String,
}
PLAN_COLUMNS: Mapping[str, Any] = {
    "phase": pl.String,
    "query": pl.String,
    "hash": pl.String,
    "letter": pl.String,
    "explained": pl.String,
}
DROPPED_COLUMNS: Mapping[str, Any] = {
    "study": pl.String,
    "dataset": pl.String,
    "run": pl.String,
    "query": pl.String,
    "causes": pl.String,
    "reasons": pl.String,
    "selection": pl.String,
}


def score_rows(found: Overview) -> list[dict[str, Any]]:
    """Rows of `SCORE_COLUMNS`: four for each cell of each power run; a cell without a time has them too."""
    return [row for view in found.tpch for cell in found.cells for row in _of_cell(found, view, cell)]


def _of_cell(found: Overview, view: TpchView, cell: str) -> Iterator[dict[str, Any]]:
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


def plan_rows(found: Overview, m: Measurement) -> Iterator[dict[str, Any]]:
    """Rows of `PLAN_COLUMNS` of one run; none where it kept no plans."""
    plans = read_plans(m)
    if plans is None:
        return
    view = next((view for view in found.tpch if (view.dataset, view.run) == (m.dataset, m.run)), None)
    letters = plan_letters(view) if view is not None and not m.canary else {}
    for plan in plans.plans:
        yield {
            "phase": plan.phase,
            "query": plan.item,
            "hash": plan.hash,
            "letter": letters.get(plan.item, {}).get(plan.hash),
            "explained": plan.explained,
        }


def dropped_rows(found: Overview) -> list[dict[str, Any]]:
    """Rows of `DROPPED_COLUMNS`."""
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
        for view in found.tpch
        for query, reasons in view.scores.dropped.items()
    ]
