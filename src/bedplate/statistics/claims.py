"""How sure it is that a claim holds, or that it does not: p-values of both, and rules that put claims together.

A claim says that a figure lies within bounds. `p_holds` is 1 - the confidence up to which the whole interval lies
within them, `p_fails` 1 - that up to which it lies wholly outside; both are read from Student's two-sided interval, as
every verdict is (`comparison`). Claims of many parts are put together so that neither word is said more easily than
of one part alone:

- all of several parts: it holds where every part does (an intersection-union test, which needs no correction: Berger
  1982, Technometrics 24), and fails where one does, which is looked for among all (Bonferroni).
- the best level is one of a set: some level of the set is better than every level outside it, or some level
  outside it is better than every one of the set; each is looked for among its levels (Bonferroni).
- opposite signs: one is sure to be above 0 and the other below (Gail & Simon 1985, Biometrics 41).
- spreads: the variance between levels is made of products of two different repetitions, so that scatter has no part
  in it (`variation`), and two of them are held against each other by Fieller's method over jackknife values.

Repetitions lie on the last axis; figures are natural logarithms where a ratio is meant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr, stdtrit

from bedplate.statistics.design import products_of, pseudo_values
from bedplate.statistics.estimation import REPETITIONS_MIN, Estimate, of_differences

if TYPE_CHECKING:
    from bedplate.statistics.estimation import FloatArray


@dataclass(frozen=True)
class SpreadRatio:
    """The spread of one set of level means / that of another, by jackknife values of their variances.

    `part` and `whole` have the shape (repetitions,); the interval is of the logarithm of the ratio.
    """

    part: FloatArray
    whole: FloatArray

    @property
    def n(self) -> int:
        """Repetitions."""
        return len(self.part)

    def at(self, ratio: float) -> Estimate:
        """Of part - ratio² x whole: above 0 where the ratio of the spreads is above `ratio`."""
        return of_differences(self.part - ratio**2 * self.whole)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Fieller's interval (1954) of the ratio of variances, as half of its logarithm; open where it has no end."""
        scatter = (
            np.cov(self.part, self.whole) * float(stdtrit(self.n - 1, 0.5 + confidence / 2)) ** 2 / self.n
        )
        part, whole = float(self.part.mean()), float(self.whole.mean())
        square = whole**2 - scatter[1, 1]
        half = part * whole - scatter[0, 1]
        rest = part**2 - scatter[0, 0]
        inside = half**2 - square * rest
        if inside < 0 or square == 0:
            return -math.inf, math.inf
        ends = sorted((half + sign * math.sqrt(inside)) / square for sign in (-1, 1))
        low, high = (0.5 * math.log(end) if end > 0 else -math.inf for end in ends)
        if square > 0:
            return low, high
        # That the baseline has any spread is not sure: what is not refuted lies outside of the two ends.
        return (high, math.inf) if ends[0] <= 0 < ends[1] else (-math.inf, math.inf)


@dataclass(frozen=True)
class Witness:
    """The one estimate that a claim rests on. `tries` are those among which it was looked for.

    At the confidence 1 - a/`tries` it says what a claim says that is judged at a. `words` name it, `mean` is its
    estimate on the scale of the arithmetic.
    """

    words: str
    mean: float
    estimate: Estimate | SpreadRatio
    tries: int = 1


@dataclass(frozen=True)
class Doubt:
    """1 - the confidence from which on a claim holds, and fails; each with what it rests on."""

    p_holds: float
    p_fails: float
    for_holds: Witness
    for_fails: Witness

    @property
    def p_value(self) -> float:
        """Of the likelier of the two: 1 - the confidence from which on something can be told."""
        return min(self.p_holds, self.p_fails)


def p_above(estimate: Estimate, bound: float) -> float:
    """Two-sided p-value of “above the bound”: 1 - the confidence up to which the whole interval is."""
    distance = float(estimate.mean) - bound
    error = float(estimate.error)
    if error == 0:
        return 0.0 if distance > 0 else 1.0
    return min(1.0, 2 * float(stdtr(float(estimate.degrees), -distance / error)))


def p_below(estimate: Estimate, bound: float) -> float:
    """The same of “below the bound”."""
    return p_above(replace(estimate, mean=-estimate.mean), -bound)


def within(words: str, estimate: Estimate, low: float | None, high: float | None) -> Doubt:
    """That a mean lies between two bounds, None for an open side."""
    witness = Witness(words, float(estimate.mean), estimate)
    above = [p_above(estimate, low)] if low is not None else []
    below = [p_below(estimate, high)] if high is not None else []
    outside = ([p_below(estimate, low)] if low is not None else []) + (
        [p_above(estimate, high)] if high is not None else []
    )
    if not outside:
        raise ValueError("a claim has a bound on one side at least")
    return Doubt(max(above + below), min(outside), witness, witness)


def spread_within(
    words: str, baseline: FloatArray, contender: FloatArray, low: float | None, high: float | None
) -> Doubt:
    """That contender's spread / baseline's lies between two ratios above 0.

    Both are of the shape (repetitions, levels): what each level is beside the mean of all. ValueError below three
    repetitions.
    """
    if min(len(baseline), len(contender)) < REPETITIONS_MIN:
        raise ValueError("products of different repetitions scatter only from three repetitions on")
    ratio = SpreadRatio(_variances(contender), _variances(baseline))
    part, whole = float(ratio.part.mean()), float(ratio.whole.mean())
    mean = 0.5 * math.log(part / whole) if part > 0 and whole > 0 else math.nan
    witness = Witness(words, mean, ratio)
    holds = [p_above(ratio.at(low), 0.0)] if low is not None else []
    fails = [p_below(ratio.at(low), 0.0)] if low is not None else []
    if high is not None:
        holds.append(p_below(ratio.at(high), 0.0))
        fails.append(p_above(ratio.at(high), 0.0))
    return Doubt(max(holds), min(fails), witness, witness)


def all_of(doubts: Sequence[Doubt]) -> Doubt:
    """That every one of them holds; one at least."""
    weakest = max(doubts, key=lambda doubt: doubt.p_holds)
    against = min(doubts, key=lambda doubt: doubt.p_fails)
    k = len(doubts)
    return Doubt(
        p_holds=weakest.p_holds,
        p_fails=min(1.0, k * against.p_fails),
        for_holds=weakest.for_holds,
        for_fails=replace(against.for_fails, tries=k * against.for_fails.tries),
    )


def best_is_among(
    inside: Sequence[str], outside: Sequence[str], better: Mapping[tuple[str, str], tuple[Witness, Estimate]]
) -> Doubt:
    """That the best of some levels is one of `inside`.

    `better` has an estimate for every (inside, outside), above 0 where the first is better. ValueError where one side
    has no level.
    """
    if not inside or not outside:
        raise ValueError("the best of some levels is only asked where there are levels on both sides")

    def hardest(names: Sequence[tuple[str, str]], *, first: bool) -> tuple[float, tuple[str, str]]:
        sign = p_above if first else p_below
        return max((sign(better[name][1], 0.0), name) for name in names)

    holds, by = min(hardest([(s, o) for o in outside], first=True) for s in inside)
    fails, against = min(hardest([(s, o) for s in inside], first=False) for o in outside)
    return Doubt(
        p_holds=min(1.0, len(inside) * holds),
        p_fails=min(1.0, len(outside) * fails),
        for_holds=replace(better[by][0], tries=len(inside)),
        for_fails=replace(better[against][0], tries=len(outside)),
    )


def opposite(first: tuple[str, Estimate], second: tuple[str, Estimate]) -> Doubt:
    """That two means lie on two sides of 0; it fails where both are sure to lie on the same."""
    ways: list[tuple[float, Witness]] = []
    for signs in ((1, -1), (-1, 1), (1, 1), (-1, -1)):
        found = []
        for sign, (words, estimate) in zip(signs, (first, second), strict=True):
            p = p_above(estimate, 0.0) if sign > 0 else p_below(estimate, 0.0)
            found.append((p, Witness(words, float(estimate.mean), estimate)))
        ways.append(max(found, key=lambda each: each[0]))
    holds = min(ways[:2], key=lambda each: each[0])
    fails = min(ways[2:], key=lambda each: each[0])
    return Doubt(holds[0], fails[0], holds[1], fails[1])


def _variances(effects: FloatArray) -> FloatArray:
    """Jackknife values by repetition of the variance between levels; shape (repetitions,)."""
    return pseudo_values(products_of(effects - effects.mean(axis=1, keepdims=True)))
