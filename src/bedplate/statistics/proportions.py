"""Intervals for k of n and for counts, which have no logarithm at zero and no normal error near it.

Exact ones, that never cover less than they say, as n is small here (a dozen power cuts) and a promise
of durability must not be better than its evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import betaincinv, gammaincinv

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """`estimate` between `low` and `high`; the upper bound is infinite where nothing bounds it."""

    estimate: float
    low: float
    high: float


def proportion(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> Interval:
    """The share of k of n (Clopper & Pearson 1934, Biometrika 26). ValueError unless 0 <= k <= n, n >= 1."""
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} of {trials} is no proportion; k of n has 0 <= k <= n and n >= 1")
    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return Interval(successes / trials, low, high)


def rate(events: int, exposure: float, *, confidence: float = CONFIDENCE) -> Interval:
    """Events per unit of exposure, such as per hour (Garwood 1936, Biometrika 28; Poisson).

    For rare events that come alone. Events that come in bursts scatter more than this says: compare those by
    repetition. ValueError for a negative count and an exposure that is not positive.
    """
    if events < 0 or not 0 < exposure < math.inf:
        raise ValueError(f"{events} events in {exposure} are no rate; a count is not negative, time passes")
    tail = (1 - confidence) / 2
    low = float(gammaincinv(events, tail)) if events else 0.0
    high = float(gammaincinv(events + 1, 1 - tail))
    return Interval(events / exposure, low / exposure, high / exposure)


def proportion_difference(
    baseline: tuple[int, int], contender: tuple[int, int], *, confidence: float = CONFIDENCE
) -> Interval:
    """Contender - baseline of two k of n, as shares.

    Between the ends of two exact intervals that both hold at once with the confidence that is asked for (each
    with its square root, as the two are independent). Sharper ones fall short for few trials: Newcombe's
    hybrid (1998, Stat. Med. 17, method 10), even of exact bounds, covers 92.5 % for three of each.
    """
    each = math.sqrt(confidence)
    first, second = proportion(*baseline, confidence=each), proportion(*contender, confidence=each)
    return Interval(second.estimate - first.estimate, second.low - first.high, second.high - first.low)


def rate_ratio(
    baseline: tuple[int, float], contender: tuple[int, float], *, confidence: float = CONFIDENCE
) -> Interval:
    """Contender / baseline of two rates, each (events, exposure).

    Given their sum, the contender's events are binomial (Przyborowski & Wilenski 1940, Biometrika 31), so
    Clopper and Pearson's bounds apply. Without a single event the ratio may be anything: the estimate is
    NaN, the interval from 0 to infinity.
    """
    events, exposure = contender
    before, time = baseline
    if min(events, before) < 0 or not (0 < exposure < math.inf and 0 < time < math.inf):
        raise ValueError(f"{baseline} and {contender} are no rates; a count is not negative, time passes")
    if events + before == 0:
        return Interval(math.nan, 0.0, math.inf)
    share = proportion(events, events + before, confidence=confidence)
    low, middle, high = (
        math.inf if part >= 1 else part / (1 - part) * time / exposure
        for part in (share.low, share.estimate, share.high)
    )
    return Interval(middle, low, high)
