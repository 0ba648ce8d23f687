"""TPC-H on the page: its scores, and the plans that queries had."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from bedplate.analysis.overview import SCORES, Measurement, Overview, ScoreView
from bedplate.analysis.run_heads import run_kind
from bedplate.analysis.wording import rounded
from bedplate.errors import OutputNotUnderstood
from bedplate.model.visit import Validity
from bedplate.page.document import packed
from bedplate.page.static import WorkloadPage
from bedplate.statistics import tpch_scores
from bedplate.statistics.tpch_scores import CellScores, QueryRun, interval_factor
from bedplate.units import format_count
from bedplate.workloads.tpch import scores
from bedplate.workloads.tpch.figures import NOT_AUDITED, WITHOUT_REFRESH
from bedplate.workloads.tpch.model import POWER, THROUGHPUT
from bedplate.workloads.tpch.query_plan import PlanLine, QueryPlan, first_difference, plan_lines
from bedplate.workloads.tpch.scores import power_notes, read_plans

# More than the scores show, so that a sum over 22 of them is right in all that they do.
_TIME_DIGITS = 8

_NO_TIME = 0

_NO_PLAN = -1

# As the page takes them.
_DOUBTS = {Validity.VALID: 0, Validity.SUSPECT: 1, Validity.UNKNOWN: 2}


def packed_query_times(views: Sequence[tuple[ScoreView, Mapping[str, int]]]) -> str:
    """The runs of every view in the order given, each view with the index of its cells on the page.

    A row is [cell, repetition, doubt, times, plans], with a time and a plan for each of the view's `queries`: null
    where the query did not run, 0 where it has no time, the limit with a minus where it was stopped; `doubt` is 0 of a
    valid run, 1 of a suspect one, 2 where validity is unknown; a plan is a number within its view, -1 where it is not known. `factors` are `interval_factor` by the number of repetitions.
    """
    counts = [len({run.repetition for run in view.query_runs}) for view, _ in views]
    return packed(
        {
            "views": [_view(view, cell_of) for view, cell_of in views],
            "factors": [interval_factor(count) for count in range(max(counts, default=0) + 1)],
        }
    )


def _view(view: ScoreView, cell_of: Mapping[str, int]) -> dict[str, Any]:
    queries = tuple(dict.fromkeys((*view.scores.queries, *(run.query for run in view.query_runs))))
    rows: dict[tuple[int, int, int], dict[str, QueryRun]] = {}
    for run in view.query_runs:
        key = (cell_of[run.cell], run.repetition, _DOUBTS[run.validity])
        rows.setdefault(key, {})[run.query] = run
    plans: dict[str, int] = {}
    for run in view.query_runs:
        if run.plan is not None:
            plans.setdefault(run.plan, len(plans))
    return {
        "queries": list(queries),
        "rows": [
            [
                *key,
                [_time(found.get(query)) for query in queries],
                [_plan(found.get(query), plans) for query in queries],
            ]
            for key, found in rows.items()
        ],
    }


def _time(query_run: QueryRun | None) -> float | None:
    if query_run is None:
        return None
    if query_run.limit_s is not None:
        return -(rounded(query_run.limit_s, _TIME_DIGITS) or _NO_TIME)
    return rounded(query_run.time_s, _TIME_DIGITS) or _NO_TIME


def _plan(query_run: QueryRun | None, plans: Mapping[str, int]) -> int | None:
    if query_run is None:
        return None
    return _NO_PLAN if query_run.plan is None else plans[query_run.plan]


_DIGITS = 5

# So many cells or reasons are named; of hundreds the rest is counted.
_NAMED_MOST = 3

_WITH_PLANS = (POWER, THROUGHPUT)

_OFFICIAL = ("tpch_power", "tpch_throughput")


def tpch_document(overviews: Sequence[Overview], runs: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
    """Scores, plans and what must stand beside them; None where no study has a figure of TPC-H's own."""
    if not has_tpch(overviews):
        return None
    cell_of: list[dict[str, int]] = []
    for found in overviews:
        first = sum(map(len, cell_of))
        cell_of.append({cell: first + index for index, cell in enumerate(found.cells)})
    return {
        "note": f"{NOT_AUDITED}; {WITHOUT_REFRESH}",
        "scores": [
            _scores(found, view, study=number, run_index=runs.index((view.dataset, view.run)), cell_of=cells)
            for number, (found, cells) in enumerate(zip(overviews, cell_of, strict=True))
            for view in found.scores
        ],
        "times": packed_query_times(
            [(view, cells) for found, cells in zip(overviews, cell_of, strict=True) for view in found.scores]
        ),
        "power_notes": _power_notes(overviews, runs, cell_of),
        "plans": _plans(overviews, runs, cell_of),
    }


def has_tpch(overviews: Sequence[Overview]) -> bool:
    """Whether any pass or any streams of queries were measured."""
    return any(key.metric in _OFFICIAL for found in overviews for key in found.summaries)


def _power_notes(
    overviews: Sequence[Overview], runs: Sequence[tuple[str, str]], cell_of: Sequence[Mapping[str, int]]
) -> list[list[Any]]:
    """Run, cell and what is to be known of its power, where there is anything."""
    return [
        [runs.index(run), index, list(notes)]
        for found, cells in zip(overviews, cell_of, strict=True)
        for run in found.runs
        if run_kind(found, run) == POWER
        for name, index in cells.items()
        if (notes := power_notes(found, name, run))
    ]


def _scores(
    overview: Overview, view: ScoreView, *, study: int, run_index: int, cell_of: Mapping[str, int]
) -> dict[str, Any]:
    names = _Names(overview)
    return {
        "study": study,
        "run": run_index,
        "queries": list(view.scores.queries),
        "kept": list(view.scores.kept),
        "dropped": [[query, names.few(reasons)] for query, reasons in view.scores.dropped.items()],
        "left_out": [
            [cell_of[cell], names.in_words(reason)] for cell, reason in view.scores.left_out.items()
        ],
        "only_suspect": [cell_of[cell] for cell in view.scores.only_suspect],
        "cells": [
            _cell_scores(cell, view, cell_of[cell.cell], bounded=not overview.cells[cell.cell].incomparable)
            for cell in view.scores.cells
        ],
    }


def _cell_scores(cell_scores: CellScores, view: ScoreView, index: int, *, bounded: bool) -> dict[str, Any]:
    """Each score as value, share of the ideal, ends of the interval, and why there is none.

    Of visits that cannot be compared there is no interval (CellFacts.incomparable): they are not `bounded`.
    """
    made = {
        name: [
            *(rounded(getattr(score, part), _DIGITS) for part in ("value", "ideal_share")),
            *(rounded(getattr(score, part), _DIGITS) if bounded else None for part in ("low", "high")),
            list(score.reasons),
        ]
        for name in SCORES
        if (score := getattr(cell_scores, name))
    }
    return {
        "cell": index,
        "basis": cell_scores.basis,
        "n": view.repetitions.get(cell_scores.cell, 0),
        "bounded": bounded,
        "timeouts": list(cell_scores.timeouts),
        **made,
    }


class _Names:
    """Cells by the names that readers know, in sentences that name them by their ids."""

    def __init__(self, overview: Overview) -> None:
        self._labels = {cell: facts.label.full for cell, facts in overview.cells.items()}
        ids = "|".join(re.escape(cell) for cell in sorted(self._labels, key=len, reverse=True)) or "(?!)"
        self._id = re.compile(ids)
        self._list = re.compile(f"(?:{ids})(?:, (?:{ids}))*")

    def in_words(self, sentence: str) -> str:
        return self._list.sub(lambda match: self._few_cells(match.group()), sentence)

    def few(self, reasons: Sequence[str]) -> list[str]:
        named = [self.in_words(reason) for reason in reasons[:_NAMED_MOST]]
        return named + _rest(len(reasons) - len(named), "more reason")

    def _few_cells(self, ids: str) -> str:
        cells = self._id.findall(ids)
        named = [self._labels[cell] for cell in cells[:_NAMED_MOST]]
        return "; ".join(named + _rest(len(cells) - len(named), "more cell"))


def _rest(count: int, word: str) -> list[str]:
    return [format_count(count, word)] if count > 0 else []


@dataclass
class _Kept:
    """Plans as they are gathered, each text once per query and hash; `rows` are (run, cell, query, plan)."""

    plans: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    lines: dict[str, list[tuple[PlanLine, ...]]] = field(default_factory=dict)
    rows: dict[tuple[int, int, str, int], dict[str, Any]] = field(default_factory=dict)
    settings: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)

    def add(self, query_plan: QueryPlan, source: str) -> int:
        """The index of the plan among those of its query."""
        known = self.plans.setdefault(query_plan.item, {})
        if query_plan.hash not in known:
            lines, problem = _read(query_plan)
            self.lines.setdefault(query_plan.item, []).append(lines)
            known[query_plan.hash] = {
                "hash": query_plan.hash,
                "source": source,
                "lines": [[line.depth, line.words, line.detail] for line in lines],
                "problem": problem,
            }
        return list(known).index(query_plan.hash)

    def differences(self, query: str) -> list[list[Any]]:
        """Of each two plans of a query: their indices, the first line that differs, and in what."""
        pairs = combinations(enumerate(self.lines[query]), 2)
        return [
            [one, other, difference.line, list(difference.words)]
            for (one, left), (other, right) in pairs
            if left and right and (difference := first_difference(left, right)) is not None
        ]


def _read(query_plan: QueryPlan) -> tuple[tuple[PlanLine, ...], str | None]:
    """The lines of a plan; none, and why, where its text is none that this version reads."""
    try:
        return plan_lines(query_plan.explained), None
    except OutputNotUnderstood as error:
        return (), str(error)


def _plans(
    overviews: Sequence[Overview], runs: Sequence[tuple[str, str]], cell_of: Sequence[Mapping[str, int]]
) -> str | None:
    kept = _Kept()
    for found, cells in zip(overviews, cell_of, strict=True):
        for run in found.runs:
            if run_kind(found, run) in _WITH_PLANS:
                for name, index in cells.items():
                    for m in found.of(name, run):
                        _keep(
                            kept, m, run_index=runs.index(run), cell=index, label=found.cells[name].label.full
                        )
    if not kept.rows:
        return None
    queries = sorted(kept.plans, key=lambda item: (int(item) if item.isdecimal() else 1 << 31, item))
    return packed(
        {
            "queries": queries,
            "settings": [dict(settings) for settings in kept.settings],
            "plans": {query: list(kept.plans[query].values()) for query in queries},
            "differences": {query: kept.differences(query) for query in queries},
            "rows": [[*key, row["repetitions"], row["settings"]] for key, row in kept.rows.items()],
        }
    )


def _keep(plan_table: _Kept, m: Measurement, *, run_index: int, cell: int, label: str) -> None:
    plans = read_plans(m)
    if plans is None:
        return
    settings = tuple(sorted(plans.settings.items()))
    number = plan_table.settings.setdefault(settings, len(plan_table.settings))
    for plan in plans.plans:
        place = plan_table.add(plan, f"{label}, {m.run}, repetition {m.repetition}")
        row = plan_table.rows.setdefault(
            (run_index, cell, plan.item, place), {"repetitions": [], "settings": number}
        )
        if m.repetition not in row["repetitions"]:
            row["repetitions"].append(m.repetition)


PAGE = WorkloadPage(
    Path(__file__).parent,
    {"compare": ("scores", "TPC-H scores"), "items": ("plans", "Query plans")},
    has_tpch,
    lambda overviews, runs: {"tpch": tpch_document(overviews, runs)},
    rules={
        "query_scores": {
            "NO_TIME": tpch_scores.NO_TIME,
            "OVER_LIMIT": tpch_scores.OVER_LIMIT,
            "PLAN_UNKNOWN": tpch_scores.PLAN_UNKNOWN,
            "PLANS_IN_A_CELL": tpch_scores.PLANS_IN_A_CELL,
            "PLANS_ACROSS_CELLS": tpch_scores.PLANS_ACROSS_CELLS,
        }
    },
    templates={
        "no_time_in": tpch_scores.NO_TIME_IN,
        "over_limit_in": tpch_scores.OVER_LIMIT_IN,
        "plan_unknown_in": tpch_scores.PLAN_UNKNOWN_IN,
        "plans_in": tpch_scores.PLANS_IN,
        "plans_across": tpch_scores.PLANS_ACROSS,
        "none_kept": tpch_scores.NONE_KEPT,
        "without_time": tpch_scores.WITHOUT_TIME,
        "no_time_here": tpch_scores.NO_TIME_HERE,
        "untrusted": tpch_scores.UNTRUSTED,
        "unlike": tpch_scores.UNLIKE,
        "none_trusted": scores.NONE_TRUSTED,
        "some_untrusted": scores.SOME_UNTRUSTED,
    },
)
