"""Which visits would tell most per hour, where a class of cells has too few repetitions for verdicts.

The model of a search (`statistics/search`) says of few runs how likely each cell is within the margin of the best, as cells share
levels. It recommends visits and never a cell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.compared import candidates_of
from bedplate.model.figure import Better, Scale, Status
from bedplate.model.visit import Outcome
from bedplate.statistics.comparison import MARGIN
from bedplate.statistics.search.choice import lead
from bedplate.statistics.search.posterior import posterior
from bedplate.statistics.search.space import SearchSpace, Tried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.advice.advised import Advised, Contest, Objective
    from bedplate.analysis.overview import Measurement, Overview

# Figures of the model are drawn: the same study gives the same ones.
_SEED = 18


@dataclass(frozen=True)
class NextVisits:
    """The cell that is most likely within the margin of the best of `among` cells, and that chance.

    `rivals` have the chance to be better by more than the margin and the mean seconds of a visit, what tells most per second
    first. `seconds` is the leader's visit, `all_seconds` one visit of every cell.
    """

    leader: str
    chance: float
    rivals: tuple[tuple[str, float, float], ...]
    seconds: float
    all_seconds: float
    among: int


def next_visits(found: Advised, contest: Contest) -> NextVisits | None:
    """None of an imported study, below two cells, without a believed figure or a visit's time, and for a figure that is no ratio."""
    overview, objective = found.overview, contest.objectives[0]
    metric = objective.metric
    cells = _distinct(overview, (*contest.cells, *contest.left_out))
    seconds = _visit_seconds(overview, cells, contest.run[0])
    if (
        overview.study.facts.is_imported
        or len(cells) < 2
        or seconds is None
        or metric.scale is not Scale.RATIO
        or metric.better is Better.NEITHER
    ):
        return None
    if any(overview.cells[cell].incomparable for cell in cells):
        return None
    levels = {each.cell: each.levels for each in candidates_of([overview])}
    space = SearchSpace(tuple(levels[cell] for cell in cells), seconds)
    tried = [
        _tried(m, number, objective)
        for number, cell in enumerate(cells)
        for m in overview.of(cell, contest.run)
        if m.outcome is not Outcome.NOT_RUN
    ]
    allowed = space.open(tried)
    if not allowed.any() or not any(each.value for each in tried):
        return None
    best = lead(posterior(space, tried, seed=_SEED), allowed, MARGIN)
    rivals = sorted(best.rivals, key=lambda cell: -best.ahead[cell] / seconds[cell])
    return NextVisits(
        leader=cells[best.leader],
        chance=best.chance,
        rivals=tuple((cells[each], float(best.ahead[each]), seconds[each]) for each in rivals),
        seconds=seconds[best.leader],
        all_seconds=sum(seconds),
        among=len(cells),
    )


def _distinct(found: Overview, cells: Sequence[str]) -> list[str]:
    """Of cells that are effectively identical the first."""
    kept: list[str] = []
    for cell in cells:
        if not set(found.cells[cell].identical_to) & set(kept):
            kept.append(cell)
    return kept


def _tried(m: Measurement, number: int, objective: Objective) -> Tried:
    """A run as the model takes it: a larger figure is better, and what is not trusted is none."""
    observed = objective.observation(m)
    value = observed.value if observed.status is Status.MEASURED and observed.validity.is_trusted else None
    if m.outcome is not Outcome.COMPLETED or value is None or not 0 < value < math.inf:
        value = None
    elif objective.metric.better is Better.LOWER:
        value = 1 / value
    return Tried(m.repetition, number, value, 0.0, failed=m.outcome is Outcome.FAILED)


def _visit_seconds(found: Overview, cells: Sequence[str], dataset: str) -> tuple[float, ...] | None:
    """The mean time of each cell's visits; that of all where it has none, None where nothing has a time."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for record in (visit.record for visit in found.study.visits):
        key = record.key
        if record.outcome is Outcome.COMPLETED and key.dataset == dataset and not key.canary:
            times[key.cell].append(record.whole_seconds or record.seconds)
    known = [each for own in times.values() for each in own if each > 0]
    if not known:
        return None
    usual = fmean(known)
    return tuple(fmean(times[cell]) if sum(times[cell]) > 0 else usual for cell in cells)
