"""Two cells and one metric: how they differ, how sure that is, and when it cannot be told.

Positive figures (scale `ratio`) are compared as a ratio contender / baseline of geometric means, by
logarithms; proportions, shares and counts as a difference of means, as they may be zero. Both are made
within each repetition that the two have in common (see `estimation`). What is k of n is pooled over these
repetitions, and has an interval from the first one on (see `pooled_shares`).

The verdict is read from the interval and from nothing else: `faster` or `slower` (`higher` or `lower`
for what is no speed) where the interval leaves out equality, `same` where it lies within the margin,
even if it leaves out equality there (what the reader calls negligible is not made a difference by
measuring it well), and `cannot tell` otherwise. So a verdict is wrong only where the interval misses.

A run that is suspect, or of unknown validity, is no part of a verdict unless the caller asks for it. A censored value (a query
that was stopped at its limit) counts as its limit, as does every value beyond the smallest limit: what is
compared then are the figures up to that limit, of which the ratio bounds the true one on one side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bedplate.model.figure import Better, Metric, Scale, Status
from bedplate.model.template import filled
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.estimation import (
    REPETITIONS_MIN,
    Estimate,
    chance_of_verdict,
    paired,
    unpaired,
)
from bedplate.statistics.pooled_shares import PooledShares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.statistics.estimation import FloatArray
    from bedplate.statistics.proportions import Counted
    from bedplate.statistics.summary import Observation

CONFIDENCE = 0.95
# Differences that a reader would not act on, as a share of the baseline.
MARGIN = 0.05
# A plan that says how many repetitions would tell aims at this chance of a verdict, and ends here.
CHANCE = 0.8
REPETITIONS_MAX = 100
# What the page's script says too.
NO_VALUE = "one side has no run with a value{left_out}"
LEFT_OUT = " ({runs} left out)"
NO_COMMON_REPETITION = "the two have no repetition in common"
NOT_POSITIVE = "a value is not positive, and has no logarithm to compare"
BOTH_STOPPED = "both sides have runs that were stopped at a limit"
TOO_FEW_IN_COMMON = f"a verdict needs {REPETITIONS_MIN} repetitions in common, found {{n}}"
TOO_FEW_ON_ONE_SIDE = f"a verdict needs {REPETITIONS_MIN} repetitions on each side, found {{n}} on one"
SUSPECT_RUNS = "{n} suspect run{s}"
UNKNOWN_RUNS = "{n} run{s} of unknown validity"
_SPEED_UNITS = frozenset({"s", "ms", "us", "µs", "QphH@SF"})


class Verdict(StrEnum):
    """What the contender is, beside the baseline."""

    FASTER = "faster"
    SLOWER = "slower"
    HIGHER = "higher"
    LOWER = "lower"
    SAME = "same"
    CANNOT_TELL = "cannot tell"


class EstimateKind(StrEnum):
    """What `estimate` is: contender / baseline, or contender - baseline in the metric's unit."""

    RATIO = "ratio"
    DIFFERENCE = "difference"


@dataclass(frozen=True)
class Comparison:
    """A contender beside a baseline.

    `low` and `high` bound `estimate` at `confidence`; both are None without an interval, one of them where
    censored values leave that side open. `smallest` and `largest` are the extremes of the repetitions.
    `margin` is what `same` means, as a share (ratio) or in the metric's unit (difference); None where no
    sameness is judged. `n` counts repetitions (the smaller number without `paired`), `suspect` and `unknown` the runs
    that are left out as such, `censored` those that count as their limit. `reasons` say why there is less than a verdict. `basis` is the estimate on
    the scale of the arithmetic (natural logarithms for ratios), or the counts of two k of n. `open_side` is 1 where the true figure may
    lie any way above, -1 below, 0 otherwise. `difference_confidence` is the one that a difference takes, where `confidence` is
    that of an interval that bears `same`. `differences` are what it was made of, on the scale of the arithmetic: by
    repetition, one mapping where the two share repetitions, else the baseline's (with its sign turned) and the
    contender's, which add up. Empty for k of n, for values that cannot be compared and where a side is open.
    """

    metric: Metric
    kind: EstimateKind
    verdict: Verdict
    estimate: float | None
    low: float | None
    high: float | None
    confidence: float
    margin: float | None
    n: int
    paired: bool
    smallest: float | None = None
    largest: float | None = None
    suspect: int = 0
    unknown: int = 0
    censored: int = 0
    reasons: tuple[str, ...] = ()
    basis: Estimate | PooledShares | None = None
    open_side: int = 0
    difference_confidence: float | None = None
    differences: tuple[Mapping[int, float], ...] = ()

    @property
    def differs(self) -> bool:
        """True where the interval leaves out equality, whatever the verdict."""
        equal = 1.0 if self.kind is EstimateKind.RATIO else 0.0
        return (self.low is not None and self.low > equal) or (self.high is not None and self.high < equal)

    @property
    def pooled(self) -> PooledShares | None:
        """The counts behind it, where the figure is k of n."""
        return self.basis if isinstance(self.basis, PooledShares) else None

    @property
    def scatters(self) -> bool:
        """Whether chance has a part in it; what does not scatter at all is told by arithmetic."""
        return isinstance(self.basis, PooledShares) or (self.basis is not None and bool(self.basis.scatters))

    @cached_property
    def more_repetitions(self) -> int | None:
        """How many more would tell, with a chance of `CHANCE`, were the estimate the true one.

        None with a verdict, without an interval and beyond `REPETITIONS_MAX`. It takes a while: it is asked where it is read.
        """
        basis = self.basis
        # Of k of n more may be counted in one repetition as well, so that no number of them is named. Repetitions that
        # all agree, and tell nothing: more of the same tell nothing either.
        if self.verdict is not Verdict.CANNOT_TELL or self.open_side or not isinstance(basis, Estimate):
            return None
        if float(basis.error) <= 0:
            return None
        margin = 0.0 if self.margin is None else _margin_on_scale(self.kind, self.margin)
        deviation = float(basis.error) * math.sqrt(basis.n)
        # Few are often enough, and the chance of each number costs the same.
        for first, last in pairwise((basis.n + 1, basis.n + 9, basis.n + 33, REPETITIONS_MAX + 1)):
            counts = np.arange(first, min(last, REPETITIONS_MAX + 1), dtype=np.float64)
            if len(counts):
                chances = chance_of_verdict(
                    float(basis.mean), deviation, counts, confidence=self.confidence, margin=margin
                )
                if len(enough := np.flatnonzero(chances >= CHANCE)):
                    return int(counts[enough[0]]) - basis.n
        return None

    @property
    def p_difference(self) -> float | None:
        """1 - the confidence from which on the interval leaves out equality; None without an interval."""
        if self.basis is None:
            return None
        if self.open_side and float(self.basis.mean) * self.open_side <= 0:
            return 1.0
        return float(self.basis.p_difference())

    @property
    def p_same(self) -> float | None:
        """1 - the confidence from which on the interval lies within the margin; None where no sameness is judged."""
        if self.basis is None or self.margin is None or self.open_side:
            return None
        return float(self.basis.p_same(_margin_on_scale(self.kind, self.margin)))


def compare(
    baseline: Mapping[int, Observation],
    contender: Mapping[int, Observation],
    metric: Metric,
    *,
    margin: float | None = MARGIN,
    confidence: float = CONFIDENCE,
    shares_repetitions: bool = True,
    with_doubted: bool = False,
) -> Comparison:
    """Compare what two cells found of a metric, by repetition.

    `shares_repetitions` is False for two studies, whose repetitions have nothing in common. `margin` is a
    share for ratios (0.05 is a factor of 1.05 either way), points for shares (0.05 is five points of a
    hundred), and not used for counts; None judges no sameness. With fewer than three repetitions there is a
    description and no verdict, except of k of n. ValueError for a margin or confidence that is none.
    """
    if not 0 < confidence < 1 or (margin is not None and not 0 <= margin < math.inf):
        raise ValueError(f"confidence {confidence} must lie between 0 and 1, margin {margin} at or above 0")
    sides = [usable(side, with_doubted=with_doubted) for side in (baseline, contender)]
    known = [o.validity for side in (baseline, contender) for o in side.values() if _has_value(o)]
    suspect, unknown = known.count(Validity.SUSPECT), known.count(Validity.UNKNOWN)
    empty = Comparison(
        metric=metric,
        kind=EstimateKind.RATIO if metric.scale is Scale.RATIO else EstimateKind.DIFFERENCE,
        verdict=Verdict.CANNOT_TELL,
        estimate=None,
        low=None,
        high=None,
        confidence=confidence,
        margin=None if metric.scale is Scale.COUNT else margin,
        n=0,
        paired=shares_repetitions,
        suspect=0 if with_doubted else suspect,
        unknown=0 if with_doubted else unknown,
    )
    if not all(sides):
        words = left_out_words(empty.suspect, empty.unknown)
        left_out = filled(LEFT_OUT, runs=words) if words else ""
        return replace(empty, reasons=(filled(NO_VALUE, left_out=left_out),))
    if shares_repetitions:
        common = sorted(sides[0].keys() & sides[1].keys())
        if not common:
            return replace(empty, reasons=(NO_COMMON_REPETITION,))
        sides = [{repetition: side[repetition] for repetition in common} for side in sides]
    n = min(len(side) for side in sides)
    return _compared(replace(empty, n=n), *sides)


def of_estimate(
    metric: Metric, estimate: Estimate, *, margin: float | None = MARGIN, is_paired: bool = True
) -> Comparison:
    """A comparison whose estimate was made over several pairs: described below three repetitions, else judged.

    `estimate` is on the scale of the arithmetic: natural logarithms for a metric that is compared as a ratio.
    """
    kind = EstimateKind.RATIO if metric.scale is Scale.RATIO else EstimateKind.DIFFERENCE
    described = Comparison(
        metric=metric,
        kind=kind,
        verdict=Verdict.CANNOT_TELL,
        estimate=taken_back(kind, float(estimate.mean)),
        low=None,
        high=None,
        confidence=CONFIDENCE,
        margin=None if metric.scale is Scale.COUNT else margin,
        n=estimate.n,
        paired=is_paired,
    )
    if estimate.n < REPETITIONS_MIN:
        too_few = TOO_FEW_IN_COMMON if is_paired else TOO_FEW_ON_ONE_SIDE
        return replace(described, reasons=(filled(too_few, n=estimate.n),))
    return at_confidence(replace(described, basis=estimate), CONFIDENCE)


def at_confidence(comparison: Comparison, confidence: float) -> Comparison:
    """The same comparison with the interval of another confidence, and the verdict that follows."""
    basis = comparison.basis
    if basis is None:
        return replace(comparison, confidence=confidence)
    low, high = (taken_back(comparison.kind, float(bound)) for bound in basis.interval(confidence))
    if comparison.open_side > 0:
        high = None
    elif comparison.open_side < 0:
        low = None
    judged = replace(comparison, confidence=confidence, low=low, high=high)
    return replace(judged, verdict=_verdict(judged))


def judged_apart(comparison: Comparison, *, difference: float, sameness: float) -> Comparison:
    """The comparison with an interval of one confidence for sameness, and where it is not the same of another.

    For families in which the two are asked for apart (`objectives`). The interval is the one that bears the verdict.
    """
    comparison = replace(comparison, difference_confidence=difference)
    same = at_confidence(comparison, sameness)
    if same.verdict is Verdict.SAME:
        return same
    found = at_confidence(comparison, difference)
    if found.verdict is not Verdict.SAME or found.differs:
        return found
    return replace(found, verdict=Verdict.CANNOT_TELL)


def left_out_words(suspect: int, unknown: int) -> str:
    """Runs that take no part: `2 suspect runs, 1 run of unknown validity`; empty without any."""
    counts = ((suspect, SUSPECT_RUNS), (unknown, UNKNOWN_RUNS))
    return ", ".join(filled(template, n=count) for count, template in counts if count)


def usable(side: Mapping[int, Observation], *, with_doubted: bool = False) -> dict[int, Observation]:
    """The repetitions of a side that a comparison is made of."""
    return {
        repetition: observed
        for repetition, observed in side.items()
        if _has_value(observed) and (with_doubted or observed.validity.is_trusted)
    }


def _has_value(observed: Observation) -> bool:
    known = observed.limit if observed.status is Status.CENSORED else observed.value
    return (
        observed.outcome is Outcome.COMPLETED
        and observed.status is not Status.ABSENT
        and known is not None
        and math.isfinite(known)
    )


def _pooled(found: Comparison, sides: Sequence[Sequence[Counted]]) -> Comparison:
    """Two k of n, each given by repetition."""
    totals = [(sum(k for k, _ in side), sum(n for _, n in side)) for side in sides]
    first, second = (np.array([k / n for k, n in side], dtype=np.float64) for side in sides)
    within = None
    if found.n >= REPETITIONS_MIN:
        within = paired(first, second) if found.paired else unpaired(first, second)
    basis = PooledShares(totals[0], totals[1], within)
    each = second - first if found.paired else None
    return at_confidence(
        replace(
            found,
            estimate=basis.mean,
            smallest=None if each is None else float(np.min(each)),
            largest=None if each is None else float(np.max(each)),
            basis=basis,
        ),
        found.confidence,
    )


def _compared(
    found: Comparison, before: Mapping[int, Observation], after: Mapping[int, Observation]
) -> Comparison:
    baseline, contender = list(before.values()), list(after.values())
    counts = [[o.of for o in side if o.of is not None] for side in (baseline, contender)]
    if [len(side) for side in counts] == [len(baseline), len(contender)]:
        return _pooled(found, counts)
    capped, reasons, open_side = _capped(baseline, contender)
    first, second = capped
    if found.kind is EstimateKind.RATIO and min(*first, *second) <= 0:
        return replace(found, reasons=(NOT_POSITIVE,))
    if found.kind is EstimateKind.RATIO:
        first, second = np.log(first), np.log(second)
    found = replace(
        found,
        estimate=taken_back(found.kind, float(second.mean() - first.mean())),
        censored=sum(o.status is Status.CENSORED for o in (*baseline, *contender)),
        reasons=reasons,
        open_side=open_side,
    )
    if not reasons and not open_side:
        found = replace(found, differences=_differences(before, after, first, second, is_paired=found.paired))
    if found.paired:
        each = second - first
        found = replace(
            found,
            smallest=taken_back(found.kind, float(np.min(each))),
            largest=taken_back(found.kind, float(np.max(each))),
        )
    if found.n < REPETITIONS_MIN:
        too_few = TOO_FEW_IN_COMMON if found.paired else TOO_FEW_ON_ONE_SIDE
        return replace(found, reasons=(*reasons, filled(too_few, n=found.n)))
    if reasons:
        return found
    basis = paired(first, second) if found.paired else unpaired(first, second)
    return at_confidence(replace(found, basis=basis), found.confidence)


def _differences(
    before: Mapping[int, Observation],
    after: Mapping[int, Observation],
    first: FloatArray,
    second: FloatArray,
    *,
    is_paired: bool,
) -> tuple[Mapping[int, float], ...]:
    """What `Comparison.differences` says."""
    if is_paired:
        return (dict(zip(before, map(float, second - first), strict=True)),)
    return dict(zip(before, map(float, -first), strict=True)), dict(
        zip(after, map(float, second), strict=True)
    )


def _capped(
    baseline: list[Observation], contender: list[Observation]
) -> tuple[list[FloatArray], tuple[str, ...], int]:
    """Both sides' values up to the smallest limit; why they cannot be compared; which side is left open.

    The mean time up to a limit is a figure of its own (restricted mean: Royston & Parmar 2013, BMC Med.
    Res. Methodol. 13). Where it cuts one side only, the true ratio lies further out on that side. A limit is
    taken to cut off what is larger, as limits of time do.
    """
    limits = [o.limit for o in (*baseline, *contender) if o.status is Status.CENSORED and o.limit is not None]
    limit = min(limits, default=math.inf)
    values, cut = [], []
    for side in (baseline, contender):
        uncut = [o.limit if o.status is Status.CENSORED else o.value for o in side]
        values.append(np.minimum(np.array(uncut, dtype=np.float64), limit))
        cut.append(any(o.status is Status.CENSORED or (o.value or 0) > limit for o in side))
    if all(cut):
        return values, (BOTH_STOPPED,), 0
    return values, (), 1 if cut[1] else -1 if cut[0] else 0


def _verdict(found: Comparison) -> Verdict:
    low, high = found.low, found.high
    if found.margin is not None and low is not None and high is not None:
        if found.kind is EstimateKind.RATIO:
            within = low >= 1 / (1 + found.margin) and high <= 1 + found.margin
        else:
            within = low >= -found.margin and high <= found.margin
        if within:
            return Verdict.SAME
    if not found.differs:
        return Verdict.CANNOT_TELL
    equal = 1.0 if found.kind is EstimateKind.RATIO else 0.0
    larger = low is not None and low > equal
    if not is_speed(found.metric):
        return Verdict.HIGHER if larger else Verdict.LOWER
    return Verdict.FASTER if larger == (found.metric.better is Better.HIGHER) else Verdict.SLOWER


def is_speed(metric: Metric) -> bool:
    """Whether less of it, or more of it, is `faster`: a time or a rate with a better direction."""
    speeds = metric.unit in _SPEED_UNITS or metric.unit.endswith("/s")
    return metric.better is not Better.NEITHER and speeds and metric.scale is Scale.RATIO


def _margin_on_scale(kind: EstimateKind, margin: float) -> float:
    return math.log1p(margin) if kind is EstimateKind.RATIO else margin


def taken_back(kind: EstimateKind, value: float) -> float | None:
    """A figure on the scale of the arithmetic as it is read: a logarithm as a ratio; None where that is larger than a number can be, as nothing is known then."""
    if kind is EstimateKind.DIFFERENCE:
        return value
    try:
        return math.exp(value)
    except OverflowError:
        return None
