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
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from scipy.special import betainc, betaincinv, fdtrc

from bedplate.model.course import filled
from bedplate.model.figure import Better, Metric, Scale, Status
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.estimation import (
    NO_SCATTER,
    REPETITIONS_MIN,
    VALUES_MIN,
    Estimate,
    chance_of_verdict,
    paired,
    unpaired,
)
from bedplate.statistics.false_discovery import RATE, discoveries, joint_confidence

if TYPE_CHECKING:
    from bedplate.statistics.estimation import BoolArray, FloatArray
    from bedplate.statistics.summary import Observation

# Keys of a visit's provenance, in the order in which a difference is told, and what each is called.
NAMES: Mapping[str, str] = {
    "machine": "machine",
    "disk": "device stack",
    "executor": "executor",
    "accelerator": "accelerator",
    "qemu": "QEMU",
    "host_kernel": "kernel of the host",
    "kernel": "kernel",
    "kernel_digest": "build of the kernel",
    "zfs": "ZFS",
    "build": "build of the engine",
    "tools": "libraries and tools",
    "protocol": "protocol of the workload",
    "dataset": "dataset",
}

# What the page's script says too.
DIFFERENCE = "{name}: {values}"


def differences(
    provenances: Iterable[Mapping[str, str]], *, declared: Collection[str] = ()
) -> tuple[str, ...]:
    """One sentence per way in which visits are not comparable; empty where they are.

    What is not known of a visit differs from nothing. `declared` are keys that the plan varies.
    """
    known = list(provenances)
    allowed = {*declared, *(["kernel_digest"] if "kernel" in declared else [])}
    found = []
    for key, name in NAMES.items():
        values = sorted({provenance[key] for provenance in known if key in provenance})
        if key not in allowed and len(values) > 1:
            found.append(filled(DIFFERENCE, name=name, values=", ".join(values)))
    return tuple(found)


if TYPE_CHECKING:
    Counted: TypeAlias = tuple[int, int]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class ShareInterval:
    """`estimate` between `low` and `high`."""

    estimate: float
    low: float
    high: float


def proportion(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> ShareInterval:
    """The share of k of n (Clopper & Pearson 1934, Biometrika 26). ValueError unless 0 <= k <= n, n >= 1."""
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} of {trials} is no proportion; k of n has 0 <= k <= n and n >= 1")
    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return ShareInterval(successes / trials, low, high)


def trials_for(share: float, *, confidence: float = CONFIDENCE) -> int:
    """How many trials without a success bound the share of successes by `share`: the upper end of `proportion(0, n)`.

    ValueError unless 0 < share < 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"{share} is no share that a bound can reach; it lies between 0 and 1")
    return math.ceil(round(math.log((1 - confidence) / 2) / math.log1p(-share), 9))


def proportion_difference(
    baseline: Counted, contender: Counted, *, confidence: float = CONFIDENCE
) -> ShareInterval:
    """Contender - baseline of two k of n, as shares.

    Between the ends of two exact intervals that both hold at once with the confidence that is asked for (each
    with its square root, as the two are independent). Sharper ones fall short for few trials: Newcombe's
    hybrid (1998, Stat. Med. 17, method 10), even of exact bounds, covers 92.5 % for three of each.
    """
    each = math.sqrt(confidence)
    first, second = proportion(*baseline, confidence=each), proportion(*contender, confidence=each)
    return ShareInterval(second.estimate - first.estimate, second.low - first.high, second.high - first.low)


def p_difference(baseline: Counted, contender: Counted) -> float:
    """1 - the confidence at which the interval of the difference touches 0; 1 where the two shares are equal.

    Below 0.5 it is never less than the p-value of Fisher's exact test of the same table, which asks less: whether the
    two differ, and not by how much.
    """
    estimate = contender[0] / contender[1] - baseline[0] / baseline[1]
    if estimate == 0:
        return 1.0
    upper, lower = (baseline, contender) if estimate > 0 else (contender, baseline)
    return _p_below(upper, lower, 0.0)


def p_same(baseline: Counted, contender: Counted, margin: float) -> float:
    """1 - the confidence at which the interval of the difference begins to reach beyond ±margin."""
    return max(_p_below(baseline, contender, margin), _p_below(contender, baseline, margin))


def _p_below(upper: Counted, lower: Counted, shift: float) -> float:
    """1 - the confidence up to which the upper bound of one share lies at most `shift` above the lower one of the other.

    Both bounds leave the same tail t outside. The lower one is the share x under which so many or more are as likely
    as t, the upper one is x + shift, under which so few or fewer are: one equation in x.
    """
    if shift >= 1:
        return 0.0
    # A bound that is 0 or 1 is so at any confidence.
    if lower[0] == 0:
        tail = 1.0 if upper[0] == upper[1] else _at_most(upper, shift)
    elif upper[0] == upper[1]:
        tail = _at_least(lower, 1 - shift)
    else:
        # A third of a second, which only comparisons of shares need.
        from scipy.optimize import brentq  # noqa: PLC0415

        def miss(x: float) -> float:
            return _at_least(lower, x) - _at_most(upper, x + shift)

        tail = _at_least(lower, brentq(miss, 0.0, 1 - shift, xtol=1e-200, rtol=1e-15))
    return 4 * tail * (1 - tail) if tail < 0.5 else 1.0


def _at_least(counted: Counted, share: float) -> float:
    """The chance of k or more of n; k is 1 at least."""
    k, n = counted
    return float(betainc(k, n - k + 1, share))


def _at_most(counted: Counted, share: float) -> float:
    """The chance of k or fewer of n; k is below n."""
    k, n = counted
    return float(betainc(n - k, k + 1, 1 - share))


@dataclass(frozen=True)
class PooledShares:
    """Contender - baseline of two shares, each k of n; `within` is that of the repetitions, None below three."""

    baseline: Counted
    contender: Counted
    within: Estimate | None = None

    @property
    def mean(self) -> float:
        """The difference of the two shares."""
        return self.contender[0] / self.contender[1] - self.baseline[0] / self.baseline[1]

    def interval(self, confidence: float) -> tuple[float, float]:
        """From the lower one of both lower ends to the upper one of both upper ends."""
        exact = proportion_difference(self.baseline, self.contender, confidence=confidence)
        if self.within is None:
            return exact.low, exact.high
        low, high = self.within.interval(confidence)
        return min(exact.low, float(low)), max(exact.high, float(high))

    def p_difference(self) -> float:
        """1 - the confidence at which the interval touches 0; 1 where the two kinds of evidence point apart."""
        exact = p_difference(self.baseline, self.contender)
        if self.within is None:
            return exact
        if self.mean * float(self.within.mean) <= 0:
            return 1.0
        return max(exact, float(self.within.p_difference()))

    def p_same(self, margin: float) -> float:
        """1 - the confidence at which the interval begins to reach beyond ±margin."""
        exact = p_same(self.baseline, self.contender, margin)
        return exact if self.within is None else max(exact, float(self.within.p_same(margin)))


# Differences that a reader would not act on, as a share of the baseline.
MARGIN = 0.05

# A plan that says how many repetitions would tell aims at this chance of a verdict, and ends here.
CHANCE = 0.8

REPETITIONS_MAX = 100

# What the page's script says too.
NO_VALUE = "one side has no run with a value{left_out}"

LEFT_OUT = " ({runs} left out)"

NO_COMMON_REPETITION = "the two have no repetition in common"

BOTH_ZERO = "both are 0 in every repetition, so that there is no ratio"

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
    margin: float | None
    n: int
    paired: bool
    verdict: Verdict = Verdict.CANNOT_TELL
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = CONFIDENCE
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
    def kind(self) -> EstimateKind:
        """What a figure of this scale is compared by."""
        return EstimateKind.RATIO if self.metric.scale is Scale.RATIO else EstimateKind.DIFFERENCE

    @property
    def differs(self) -> bool:
        """True where the interval leaves out equality, whatever the verdict."""
        equal = 1.0 if self.kind is EstimateKind.RATIO else 0.0
        return (self.low is not None and self.low > equal) or (self.high is not None and self.high < equal)

    @property
    def is_told_apart(self) -> bool:
        """Whether the verdict is a difference."""
        return self.verdict not in {Verdict.SAME, Verdict.CANNOT_TELL}

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
        metric,
        None if metric.scale is Scale.COUNT else margin,
        0,
        shares_repetitions,
        confidence=confidence,
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
    described = Comparison(metric, None if metric.scale is Scale.COUNT else margin, estimate.n, is_paired)
    described = replace(described, estimate=taken_back(described.kind, float(estimate.mean)))
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
        are_zero = not any((*first, *second))
        return replace(found, reasons=(BOTH_ZERO if are_zero else NOT_POSITIVE,))
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
    if found.metric.scale is Scale.COUNT and low == high == 0:
        return Verdict.SAME
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
    return direction(found.metric, larger=larger)


def direction(metric: Metric, *, larger: bool) -> Verdict:
    """The word for a figure that is shown larger, or smaller, than its baseline."""
    if not is_speed(metric):
        return Verdict.HIGHER if larger else Verdict.LOWER
    return Verdict.FASTER if larger == (metric.better is Better.HIGHER) else Verdict.SLOWER


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


# Pairs are said to disagree by two tests: by all of them together, and by the factors that the ratio may depend on. Each
# at this rate, so that of pairs that are alike 3 % are said to disagree at most.
DISAGREEMENT = 0.015


def p_disagreement(differences: FloatArray) -> FloatArray:
    """The chance of pairs as far apart as these, were their differences one and the same.

    `differences` has the shape (..., pairs, blocks) and no gap; two pairs and two blocks at least, ValueError otherwise.
    """
    pairs, blocks = differences.shape[-2:]
    if min(pairs, blocks) < VALUES_MIN or not np.all(np.isfinite(differences)):
        raise ValueError("pairs can only disagree where there are two of them, in two blocks, without a gap")
    p_all = _p_of_variance(differences)
    if pairs == VALUES_MIN:
        return p_all
    scatter = (_residuals(differences) ** 2).sum(axis=-1)
    keep = np.argsort(np.argsort(scatter, axis=-1), axis=-1) < pairs - 1
    fewer = differences[keep].reshape(*differences.shape[:-2], pairs - 1, blocks)
    return np.asarray(np.maximum(p_all, _p_of_variance(fewer)))


def _residuals(differences: FloatArray) -> FloatArray:
    """What is neither the pair's nor the block's."""
    of_pairs = differences.mean(axis=-1, keepdims=True)
    of_blocks = differences.mean(axis=-2, keepdims=True)
    return np.asarray(differences - of_pairs - of_blocks + differences.mean(axis=(-2, -1), keepdims=True))


def _p_of_variance(differences: FloatArray) -> FloatArray:
    """Analysis of variance, with Box's degrees of freedom for pairs of unequal scatter."""
    pairs, blocks = differences.shape[-2:]
    means = differences.mean(axis=-1)
    between = blocks * ((means - means.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1) / (pairs - 1)
    variances = (_residuals(differences) ** 2).sum(axis=-1) / (blocks - 1)
    total = variances.sum(axis=-1)
    within = total / (pairs - 1)
    # The trace of the covariance of the pairs' means about their mean, squared, by that of its square.
    squares = (variances**2).sum(axis=-1) * (1 - 2 / pairs) + (total / pairs) ** 2
    scatters = within > NO_SCATTER**2
    own = (total * (1 - 1 / pairs)) ** 2 / np.where(scatters, squares, 1.0)
    degrees = np.where(scatters, np.clip(own, 1.0, pairs - 1.0), pairs - 1.0)
    ratio = between / np.where(scatters, within, 1.0)
    p_value = fdtrc(degrees, degrees * (blocks - 1), ratio)
    return np.asarray(np.where(scatters, p_value, np.where(between > NO_SCATTER**2, 0.0, 1.0)))


@dataclass(frozen=True)
class Pairs:
    """Differences of all pairs i < j, contender j - baseline i, in the order of `numpy.triu_indices`.

    `judged` are those with an interval. `p_differences` and `p_sames` are the p-values of those of them that scatter:
    the others are told by arithmetic. `margin` is on the scale of the arithmetic; None where no sameness is judged.
    """

    estimate: Estimate
    judged: BoolArray
    p_differences: FloatArray
    p_sames: FloatArray
    margin: float | None
    alternatives: int

    def verdicts(self, confidence: Confidence) -> tuple[BoolArray, BoolArray]:
        """Whether i is shown larger than j, and shown the same, as matrices of alternatives x alternatives.

        The same arithmetic as `comparison.judged_apart` has for one pair.
        """
        low, high = self.estimate.interval(confidence.difference)
        within = np.zeros_like(self.judged)
        if self.margin is not None:
            lower, upper = self.estimate.interval(confidence.sameness)
            within = self.judged & (lower >= -self.margin) & (upper <= self.margin)
            # A difference that is shown, and shown to be negligible.
            within |= self.judged & (low >= -self.margin) & (high <= self.margin) & ((low > 0) | (high < 0))
        told = self.judged & ~within
        larger = self._matrix(told & (high < 0)) | self._matrix(told & (low > 0)).T
        same = self._matrix(within)
        return larger, same | same.T

    def _matrix(self, pairs: BoolArray) -> BoolArray:
        matrix = np.zeros((self.alternatives, self.alternatives), dtype=np.bool_)
        matrix[np.triu_indices(self.alternatives, 1)] = pairs
        return matrix


def all_pairs(values: FloatArray, metric: Metric, *, comparable: BoolArray, margin: float = MARGIN) -> Pairs:
    """Compare all rows of `values` (alternatives x repetitions; NaN where there is no usable value).

    `comparable` says of each pair, in the order of `numpy.triu_indices`, whether it may be judged at all. A pair
    needs `REPETITIONS_MIN` repetitions in common; a value of a positive figure that is not positive leaves its row
    without a verdict, as it has no logarithm.
    """
    is_ratio = metric.scale is Scale.RATIO
    known = np.asarray(values, dtype=np.float64)
    known = np.where(np.isfinite(known), known, np.nan)
    if is_ratio:
        refused = np.asarray((known <= 0).any(axis=1))
        known = np.where(refused[:, None], np.nan, known)
        known = np.log(known)
    first, second = np.triu_indices(len(known), 1)
    differences = known[second] - known[first]
    there = np.isfinite(differences)
    counts = there.sum(axis=-1)
    judged = (counts >= REPETITIONS_MIN) & comparable
    n = np.maximum(counts, 2)
    mean = np.where(there, differences, 0.0).sum(axis=-1) / n
    squares = np.where(there, (differences - mean[:, None]) ** 2, 0.0).sum(axis=-1)
    estimate = Estimate(mean, np.sqrt(squares / (n - 1) / n), n - 1.0, REPETITIONS_MIN)
    limit = None if metric.scale is Scale.COUNT else math.log1p(margin) if is_ratio else margin
    scattering = judged & estimate.scatters
    return Pairs(
        estimate,
        judged,
        estimate.p_difference()[scattering],
        np.empty(0) if limit is None else estimate.p_same(limit)[scattering],
        limit,
        len(known),
    )


class Evidence(Protocol):
    """The p-values of one figure, without those of what does not scatter (it is told by arithmetic)."""

    @property
    def p_differences(self) -> FloatArray:
        """Of “the two are equal”."""

    @property
    def p_sames(self) -> FloatArray:
        """Of “the two differ by more than the margin”."""


@dataclass(frozen=True)
class Confidence:
    """Of the intervals of one figure: of those that are read for a difference, and of those read for sameness."""

    difference: float = CONFIDENCE
    sameness: float = CONFIDENCE


def confidences(figures: Sequence[Evidence], *, rate: float = RATE) -> tuple[Confidence, ...]:
    """One for each figure, in their order."""
    differences = _of_families([pairs.p_differences for pairs in figures], rate)
    sames = _of_families([pairs.p_sames for pairs in figures], rate)
    return tuple(Confidence(*each) for each in zip(differences, sames, strict=True))


def judged_together(
    comparisons: Sequence[Comparison], figures: Sequence[Hashable], *, rate: float = RATE
) -> tuple[Comparison, ...]:
    """The comparisons of one question with intervals and verdicts that hold together, in their order.

    `figures` says of each what it is a comparison of. Those without an interval are in no family, and stay as they are.
    """
    families: defaultdict[Hashable, list[Comparison]] = defaultdict(list)
    for comparison, figure in zip(comparisons, figures, strict=True):
        families[figure].append(comparison)
    own = dict(
        zip(families, confidences([_family(each) for each in families.values()], rate=rate), strict=True)
    )
    return tuple(
        comparison
        if comparison.basis is None
        else judged_apart(comparison, difference=own[figure].difference, sameness=own[figure].sameness)
        for comparison, figure in zip(comparisons, figures, strict=True)
    )


def family_confidence(comparisons: Iterable[Comparison], margin: float | None) -> Confidence:
    """That at which comparisons of one family are judged, were `margin` what is the same."""
    (confidence,) = confidences([_family([replace(each, margin=margin) for each in comparisons])])
    return confidence


@dataclass(frozen=True)
class Family:
    """What is given as two arrays of p-values."""

    p_differences: FloatArray
    p_sames: FloatArray


def _family(comparisons: Sequence[Comparison]) -> Family:
    scattering = [each for each in comparisons if each.scatters]
    return Family(
        np.array([p for each in scattering if (p := each.p_difference) is not None]),
        np.array([p for each in scattering if (p := each.p_same) is not None]),
    )


def _of_families(families: Sequence[FloatArray], rate: float) -> list[float]:
    """The confidence of each family; that of one comparison where it has none."""
    asked = [family for family in families if len(family)]
    if not asked:
        return [CONFIDENCE for _ in families]
    selected = int(discoveries([_simes(family) for family in asked], rate=rate))
    own_rate = rate * max(selected, 1) / len(asked)
    return [
        float(joint_confidence(family, rate=own_rate)) if len(family) else CONFIDENCE for family in families
    ]


def _simes(p_values: FloatArray) -> float:
    """The p-value of “none of these is true”."""
    ordered = np.sort(p_values)
    return float(min(1.0, np.min(ordered * len(ordered) / np.arange(1, len(ordered) + 1))))
