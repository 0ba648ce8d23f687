"""Times of TPC-H's queries by cell and repetition, as the page needs them to score a choice of cells itself.

The page's script makes of them what `statistics/tpch_scores.py` makes; a test holds the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.analysis.rounding import rounded
from bedplate.model.visit import Validity
from bedplate.page.courses import packed
from bedplate.statistics.tpch_scores import interval_factor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.analysis.scores import ScoreView
    from bedplate.statistics.tpch_scores import QueryRun

# More than the scores show, so that a sum over 22 of them is right in all that they do.
_DIGITS = 8
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


def _time(run: QueryRun | None) -> float | None:
    if run is None:
        return None
    if run.limit_s is not None:
        return -(rounded(run.limit_s, _DIGITS) or _NO_TIME)
    return rounded(run.time_s, _DIGITS) or _NO_TIME


def _plan(run: QueryRun | None, plans: Mapping[str, int]) -> int | None:
    if run is None:
        return None
    return _NO_PLAN if run.plan is None else plans[run.plan]
