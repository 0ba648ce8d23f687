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

    ValueError for a figure that has no better direction or is no ratio, and for a budget or margin that is none.
    """

    metric: Metric
    budget_s: float
    seed: int
    baseline: int | None = None
    margin: float = MARGIN

    def __post_init__(self) -> None:
        """See the class."""
        if self.metric.scale is not Scale.RATIO or self.metric.better is Better.NEITHER:
            raise ValueError(
                f"{self.metric.name} has no best: name a figure with a better direction that is compared as a ratio"
            )
        if not 0 < self.budget_s < math.inf or not 0 < self.margin < 1:
            raise ValueError(
                f"a budget is above 0 s and a margin between 0 and 1, found {self.budget_s} s and {self.margin}"
            )

    def turned(self, value: float) -> float:
        """The figure so that a larger one is better."""
        return value if self.metric.better is Better.HIGHER else 1 / value

    def turned_all(self, tried: Iterable[Tried]) -> list[Tried]:
        """Visits with their figures so turned, as the model takes them."""
        return [
            each if each.value is None else replace(each, value=self.turned(each.value)) for each in tried
        ]


@dataclass(frozen=True)
class SearchProof:
    """What a proof found of its leader: by the rival's number, rival / leader. `gain` is leader / baseline.

    `open` are the rivals that may be better by more than the margin. `is_refuted`: one is shown better, and not the same
    within the margin.
    """

    leader: int
    rivals: Mapping[int, Comparison] = field(default_factory=dict)
    open: tuple[int, ...] = ()
    is_refuted: bool = False
    gain: Comparison | None = None


def judged_proof(question: SearchQuestion, leader: int, proved: Iterable[Tried]) -> SearchProof:
    """Judge the visits of one proof; a block is a repetition. A rival without three of them in common stays open."""
    runs: dict[int, dict[int, Observation]] = {leader: {}}
    for each in proved:
        own = runs.setdefault(each.cell, {})
        if each.value is not None:
            own[each.block] = Observation(each.value)
    rivals = {
        cell: compare(runs[leader], own, question.metric, margin=question.margin)
        for cell, own in sorted(runs.items())
        if cell != leader
    }
    together = judged_together(list(rivals.values()), [question.metric.name] * len(rivals))
    baseline = question.baseline
    has_gain = baseline is not None and baseline != leader and baseline in runs
    return SearchProof(
        leader=leader,
        rivals=rivals,
        open=tuple(cell for cell, each in rivals.items() if _bounds(question, each)[1] > 1 + question.margin),
        is_refuted=any(
            _bounds(question, each)[0] > 1 and _bounds(question, each)[1] > 1 + question.margin
            for each in together
        ),
        gain=(
            compare(runs[baseline], runs[leader], question.metric, margin=question.margin)
            if has_gain and baseline is not None
            else None
        ),
    )


def _bounds(question: SearchQuestion, found: Comparison) -> tuple[float, float]:
    """Of how many times better a rival is than the leader; from 0 to infinity where there is no interval."""
    if found.low is None or found.high is None:
        return 0.0, math.inf
    low, high = sorted((question.turned(found.low), question.turned(found.high)))
    return low, high
