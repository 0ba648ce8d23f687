"""A search's proof: the leader beside each rival and the plan's baseline, by fresh runs in complete blocks.

`comparison.compare` judges, and nothing of the search's model. A rival is *cleared* where its interval does not reach beyond the
margin above the leader: then the leader is within the margin of it. All rivals must be, so each interval may have its own 95 %
(an intersection-union test, Berger 1982). A leader is *refuted* where a rival is shown better among all of them together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bedplate.model.figure import Better, Metric, Scale
from bedplate.statistics.comparison import MARGIN, Comparison, compare
from bedplate.statistics.objectives import judged_together
from bedplate.statistics.summary import Observation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.statistics.search.space import Tried


@dataclass(frozen=True)
class SearchQuestion:
    """The figure that is best (compared as a ratio), the budget in seconds, the seed, and the number of the plan's baseline.

    `beside` are cells that take part in every proof. `not_worse` are further figures, each with the share by which the best cell may be worse than the baseline in it. ValueError for a figure that has no better direction or is no ratio, and for a budget or margin that is none.
    """

    metric: Metric
    budget_s: float
    seed: int
    baseline: int | None = None
    margin: float = MARGIN
    not_worse: tuple[tuple[Metric, float], ...] = ()
    beside: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """See the class."""
        for metric in (self.metric, *(each for each, _ in self.not_worse)):
            if metric.scale is not Scale.RATIO or metric.better is Better.NEITHER:
                raise ValueError(
                    f"{metric.name} has no best: name a figure with a better direction that is compared as a ratio"
                )
        if self.not_worse and self.baseline is None:
            raise ValueError(
                "no cell is there that others could be worse than: the plan's first cell is left out"
            )
        if not 0 < self.budget_s < math.inf or not 0 < self.margin < 1:
            raise ValueError(
                f"a budget is above 0 s and a margin between 0 and 1, found {self.budget_s} s and {self.margin}"
            )

    def turned(self, value: float) -> float:
        """The figure so that a larger one is better."""
        return _turned(self.metric, value)

    def turned_all(self, tried: Iterable[Tried]) -> list[Tried]:
        """Visits with their figures so turned, as the model takes them."""
        return [
            each if each.value is None else replace(each, value=self.turned(each.value)) for each in tried
        ]

    def of_another(self, number: int, tried: Iterable[Tried]) -> list[Tried]:
        """Visits with the further figure of this number in place of the first, so turned."""
        metric = self.not_worse[number][0]
        return [
            replace(each, value=None if found is None else _turned(metric, found))
            for each in tried
            for found in [each.others[number] if each.others else None]
        ]


@dataclass(frozen=True)
class SearchProof:
    """What a proof found of its leader: by the rival's number, rival / leader. `gain` is leader / baseline.

    `open` are the rivals that may be better by more than the margin. `is_refuted`: one is shown better, and not the same
    within the margin; or the leader is shown worse in another figure than it may be. `kept` are leader / baseline in those figures, `unsure`
    the numbers of those in which it may be worse than asked. `doubtful` are the open rivals that may be worse than asked in one of them.
    """

    leader: int
    rivals: Mapping[int, Comparison] = field(default_factory=dict)
    open: tuple[int, ...] = ()
    is_refuted: bool = False
    gain: Comparison | None = None
    kept: tuple[Comparison, ...] = ()
    unsure: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()


def judged_proof(question: SearchQuestion, leader: int, proved: Iterable[Tried]) -> SearchProof:
    """Judge the visits of one proof; a block is a repetition. A rival without three of them in common stays open."""
    proved = list(proved)
    runs = _runs(leader, proved)
    rivals = {
        cell: compare(runs[leader], own, question.metric, margin=question.margin)
        for cell, own in sorted(runs.items())
        if cell != leader
    }
    together = dict(
        zip(rivals, judged_together(list(rivals.values()), [question.metric.name] * len(rivals)), strict=True)
    )
    baseline = question.baseline
    has_gain = baseline is not None and baseline != leader and baseline in runs
    kept_by = {cell: _kept(question, cell, proved) for cell in rivals}
    too_bad = {cell for cell, each in kept_by.items() if _is_worse_than_asked(each)}
    kept = _kept(question, leader, proved)
    bounds = {cell: _bounds(question.metric, each) for cell, each in rivals.items()}
    still_open = tuple(
        cell for cell, (_, high) in bounds.items() if high > 1 + question.margin and cell not in too_bad
    )
    return SearchProof(
        leader=leader,
        rivals=rivals,
        open=still_open,
        is_refuted=_is_worse_than_asked(kept)
        or any(
            _bounds(question.metric, each)[0] > 1
            and _bounds(question.metric, each)[1] > 1 + question.margin
            and cell not in too_bad
            for cell, each in together.items()
        ),
        gain=(
            compare(runs[baseline], runs[leader], question.metric, margin=question.margin)
            if has_gain and baseline is not None
            else None
        ),
        kept=tuple(each for each, _ in kept),
        unsure=_unsure(kept),
        doubtful=tuple(cell for cell in still_open if _unsure(kept_by[cell])),
    )


def _runs(leader: int, proved: Iterable[Tried]) -> dict[int, dict[int, Observation]]:
    runs: dict[int, dict[int, Observation]] = {leader: {}}
    for each in proved:
        own = runs.setdefault(each.cell, {})
        if each.value is not None:
            own[each.block] = Observation(each.value)
    return runs


def _kept(question: SearchQuestion, cell: int, proved: list[Tried]) -> list[tuple[Comparison, float]]:
    """Of each further figure the cell / the baseline, and how many times as good it must be; none of the baseline itself."""
    if question.baseline is None or cell == question.baseline:
        return []
    found = []
    for number, (metric, share) in enumerate(question.not_worse):
        # Turned values would be compared the wrong way round: these are the figure's own.
        runs: dict[int, dict[int, Observation]] = {cell: {}, question.baseline: {}}
        for each in proved:
            value = each.others[number] if each.others else None
            if each.cell in runs and value is not None:
                runs[each.cell][each.block] = Observation(value)
        comparison = compare(runs[question.baseline], runs[cell], metric, margin=question.margin)
        found.append((comparison, 1 / (1 + share)))
    return found


def _unsure(kept: list[tuple[Comparison, float]]) -> tuple[int, ...]:
    """The numbers of the further figures that may be worse than asked."""
    return tuple(at for at, (each, least) in enumerate(kept) if _bounds(each.metric, each)[0] < least)


def _is_worse_than_asked(kept: list[tuple[Comparison, float]]) -> bool:
    return any(_bounds(each.metric, each)[1] < least for each, least in kept)


def _turned(metric: Metric, value: float) -> float:
    return value if metric.better is Better.HIGHER else 1 / value


def _bounds(metric: Metric, found: Comparison) -> tuple[float, float]:
    """Of how many times better the one is than the other; from 0 to infinity where there is no interval."""
    if found.low is None or found.high is None:
        return 0.0, math.inf
    low, high = sorted((_turned(metric, found.low), _turned(metric, found.high)))
    return low, high
