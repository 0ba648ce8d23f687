"""Which visits would tell most per hour among the cells of a contest that may still be the best.

The model of a search (`statistics/search`) says of few runs how likely each cell is within the margin of the best, as cells share
levels. It names visits and recommends no cell. Cells that verdicts rule out take no part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.advice.advised import comparable
from bedplate.analysis.advice.extending import seconds_of_visits
from bedplate.analysis.comparison.compared import candidates_of
from bedplate.model.figure import Better, Scale, Status
from bedplate.model.visit import Outcome
from bedplate.statistics.comparison import MARGIN
from bedplate.statistics.pareto import Standing
from bedplate.statistics.search.choice import lead
from bedplate.statistics.search.posterior import posterior
from bedplate.statistics.search.space import SearchSpace, Tried

if TYPE_CHECKING:
    from bedplate.analysis.advice.advised import Advised, Contest, Objective
    from bedplate.analysis.overview import Measurement, Overview

# Figures of the model are drawn: the same study gives the same ones.
_SEED = 18


@dataclass(frozen=True)
class NextVisits:
    """The cell that is most likely within the margin of the best of `among` cells that runs could be trusted of, and that chance.

    `rivals` have the chance to be better by more than the margin and the mean seconds of a visit, what tells most per second
    first. `seconds` is one visit of the leader and of each rival.
    """

    leader: str
    chance: float
    rivals: tuple[tuple[str, float, float], ...]
    seconds: float
    among: int

    @property
    def cells(self) -> tuple[str, ...]:
        """Those to visit, the leader first."""
        return (self.leader, *(cell for cell, _, _ in self.rivals))


def open_cells(found: Overview, contest: Contest) -> tuple[str, ...]:
    """The cells that may still be the best, in the order of the schedule; of cells that are effectively identical the first.

    Not those of which runs were stopped at a limit: the model would take them for as fast as their quick runs.
    """
    ruled_out = {
        cell
        for cell, standing in zip(contest.cells, contest.front.standings, strict=True)
        if contest.can_judge and standing is Standing.RULED_OUT
    }
    kept: list[str] = []
    for cell in (*contest.cells, *contest.left_out):
        if cell not in (ruled_out | contest.stopped) and not set(found.cells[cell].identical_to) & set(kept):
            kept.append(cell)
    return tuple(kept)


def next_visits(found: Advised, contest: Contest) -> NextVisits | str:
    """What the model says of two or more open cells; else why nothing is known, as the end of a sentence."""
    overview, objective = found.overview, contest.objectives[0]
    metric, cells = objective.metric, open_cells(found.overview, contest)
    if metric.scale is not Scale.RATIO or metric.better is Better.NEITHER:
        return f"the model is of ratios, and {metric.name} is compared otherwise"
    if not comparable(overview, cells, contest.run).all():
        return "cells were measured in other surroundings, which the model cannot tell from what they are"
    tried = [
        _tried(m, number, objective)
        for number, cell in enumerate(cells)
        for m in overview.of(cell, contest.run)
        if m.outcome is not Outcome.NOT_RUN
    ]
    if not any(each.value for each in tried):
        return f"no run has a trusted {metric.name} yet"
    seconds = [seconds_of_visits(overview, [(cell, contest.run[0], False)]) for cell in cells]
    known = tuple(each for each in seconds if each is not None)
    if len(known) < len(cells):
        return "no visit has a time"
    levels = {each.cell: each.levels for each in candidates_of([overview])}
    space = SearchSpace(tuple(levels[cell] for cell in cells), known)
    allowed = space.open(tried)
    if allowed.sum() < 2:
        return "fewer than two cells have runs that could be trusted, and a search would not try the others again"
    best = lead(posterior(space, tried, seed=_SEED), allowed, MARGIN)
    rivals = sorted(best.rivals, key=lambda cell: -best.ahead[cell] / known[cell])
    return NextVisits(
        leader=cells[best.leader],
        chance=best.chance,
        rivals=tuple((cells[each], float(best.ahead[each]), known[each]) for each in rivals),
        seconds=sum(known[each] for each in (best.leader, *rivals)),
        among=int(allowed.sum()),
    )


def _tried(m: Measurement, number: int, objective: Objective) -> Tried:
    """A run as the model takes it: a larger figure is better, and what is not trusted is none."""
    observed = objective.observation(m)
    value = observed.value if observed.status is Status.MEASURED and observed.validity.is_trusted else None
    if m.outcome is not Outcome.COMPLETED or value is None or not 0 < value < math.inf:
        value = None
    elif objective.metric.better is Better.LOWER:
        value = 1 / value
    return Tried(m.repetition, number, value, 0.0, failed=m.outcome is Outcome.FAILED)
