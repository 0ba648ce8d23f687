"""Every alternative beside every other in one figure, as arrays: what `comparison` does for one pair.

Hundreds of cells are tens of thousands of pairs, so this is the same arithmetic (`estimation`, on logarithms
where a ratio is meant) for all of them at once. A test holds the two to each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bedplate.model.figure import Scale
from bedplate.statistics.comparison import MARGIN
from bedplate.statistics.estimation import REPETITIONS_MIN, Estimate

if TYPE_CHECKING:
    from bedplate.model.figure import Metric
    from bedplate.statistics.estimation import BoolArray, FloatArray
    from bedplate.statistics.objectives import Confidence


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
