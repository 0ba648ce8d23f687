"""`--fail-if`: a condition on comparisons, and whether it holds, does not hold, or cannot be told.

`slower 5%` holds where the whole interval lies beyond 5 % slower, does not hold where the whole interval lies on
this side of it, and cannot be told where the interval has both. That it holds is a difference: an interval that bears
`same` at a lower confidence is widened to the one that a difference takes. 5 % slower is a factor of 1.05 in time, of 1 / 1.05
in what is counted per second, as the margin of `same` is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from bedplate.errors import EXIT_CANNOT_TELL, PlanError
from bedplate.model.figure import Better, Scale
from bedplate.near_names import did_you_mean
from bedplate.statistics.comparison import EstimateKind, at_confidence, is_speed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.analysis.comparison.compared import Compared
    from bedplate.model.figure import Metric
    from bedplate.statistics.comparison import Comparison

EXIT_HOLDS = 1
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_CONDITION = re.compile(r"\s*([a-z]+)\s*(.*)", re.DOTALL)
_WORDS = ("slower", "faster", "worse", "better", "lower", "higher")
_AGAINST = {"slower": "worse", "faster": "better"}


class Truth(Enum):
    """What is known of a condition."""

    HOLDS = "holds"
    FAILS = "does not hold"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Condition:
    """One of `slower`, `faster`, `worse`, `better`, `lower`, `higher`, by at least `share` (0.05 for 5 %)."""

    word: str
    share: float

    def goes_up(self, metric: Metric) -> bool:
        """Whether the contender's figure is above that of the baseline where this holds. PlanError where that is not known."""
        if self.word in {"higher", "lower"}:
            return self.word == "higher"
        if self.word in _AGAINST and not is_speed(metric):
            raise PlanError(
                f"{metric.name} is no speed, so nothing is {self.word}; write {_AGAINST[self.word]}, higher or lower"
            )
        if metric.better is Better.NEITHER:
            raise PlanError(
                f"of {metric.name} {metric.better.words}; write higher or lower in place of {self.word}"
            )
        wanted = self.word in {"better", "faster"}
        return wanted == (metric.better is Better.HIGHER)


def parse_share(text: str) -> float:
    """0.05 from `5%` or `5 %`; PlanError for anything else."""
    found = _PERCENT.fullmatch(text)
    if found is None:
        raise PlanError(f"{text!r} is no share; write a number and a percent sign: 5%")
    return float(found[1]) / 100


def parse_condition(text: str, *, margin: float) -> Condition:
    """`slower 5%`; without a number the margin of `same` is meant. PlanError that names the words there are."""
    found = _CONDITION.fullmatch(text)
    if found is None or found[1] not in _WORDS:
        meant = did_you_mean(text.partition(" ")[0], _WORDS)
        hint = f"; {meant}" if meant else ""
        raise PlanError(
            f"condition {text!r} is not understood; write one of {', '.join(_WORDS)}, and a share: slower 5%{hint}"
        )
    return Condition(found[1], parse_share(found[2]) if found[2].strip() else margin)


def truth(condition: Condition, compared: Compared) -> Truth:
    """Whether a condition holds of one comparison. PlanError where it does not fit the metric."""
    found = compared.comparison
    goes_up = condition.goes_up(found.metric)
    if found.metric.scale is Scale.COUNT and condition.share:
        raise PlanError(
            f"{found.metric.name} is a count, of which no share is taken; write {condition.word} 0%"
        )
    if compared.identical:
        # What is the same in force is not slower, whatever its runs say.
        return Truth.FAILS
    return Truth.CANNOT_TELL if found.basis is None else _of_interval(found, condition.share, goes_up=goes_up)


def exit_status(truths: Iterable[Truth]) -> int:
    """1 where the condition holds anywhere, else 125 where it cannot be told somewhere, else 0."""
    found = set(truths)
    if Truth.HOLDS in found:
        return EXIT_HOLDS
    return EXIT_CANNOT_TELL if Truth.CANNOT_TELL in found or not found else 0


def _of_interval(found: Comparison, share: float, *, goes_up: bool) -> Truth:
    if found.kind is EstimateKind.RATIO:
        bound = 1 + share if goes_up else 1 / (1 + share)
    else:
        bound = share if goes_up else -share
    difference = found
    if (found.difference_confidence or 0.0) > found.confidence:
        difference = at_confidence(found, found.difference_confidence or 0.0)
    least = difference.low if goes_up else _negative(difference.high)
    most = found.high if goes_up else _negative(found.low)
    bound = bound if goes_up else -bound
    if least is not None and least > bound:
        return Truth.HOLDS
    return Truth.FAILS if most is not None and most <= bound else Truth.CANNOT_TELL


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
