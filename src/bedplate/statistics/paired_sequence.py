"""Pairs that are looked at after each one: an interval that holds at every look, so that one may stop when it tells.

A block is a baseline and a contender, measured in random order. What is looked at is the difference within each block, of
logarithms where a ratio is meant. A Student's interval that is looked at after every block misses the truth at some
look far more often than it says. This one (Lai 1976, On confidence sequences, Ann. Stat. 4, whose construction Wang and
Ramdas, arXiv 2310.03722, work out) holds the true mean at all looks from block `FIRST_LOOK` on together with the given confidence.
It mixes the likelihood ratio of normal differences over all means, flat, and over all deviations by the right Haar measure.

With m the first look, n the blocks and t_k Student's distribution of k degrees the half width is s/sqrt(n) times
sqrt((n - 1) (x - 1)), where x = (n/m (1 + a²/(m - 1))^m)^(1/n), and `a` solves 2 (1 - T(a) + a f(a)) = 1 - confidence
with the distribution T and the density f of t_(m-1). docs/decisions/0016 says why this one. Arrays in, arrays out, as in `estimation`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, stdtr

from bedplate.statistics.estimation import Estimate, of_differences

if TYPE_CHECKING:
    from bedplate.statistics.estimation import FloatArray

# With three the first interval is wider than any difference that is looked for; with five a large one costs another block.
FIRST_LOOK = 4

_STEPS = 200


@dataclass(frozen=True)
class SequentialEstimate(Estimate):
    """A mean difference whose interval holds at every look; `n` are the blocks so far, `FIRST_LOOK` at least."""

    def half_width(self, confidence: FloatArray | float) -> FloatArray:
        """Half of the interval's width at a confidence between 0 and 1."""
        return np.asarray(_multiplier(float(confidence), self.n) * self.error)


def joint(wrong: float, lines: int) -> float:
    """The confidence of each of some lines that are watched together, so that all hold with 1 - `wrong` (Bonferroni)."""
    return 1 - wrong / max(lines, 1)


def sequential(differences: FloatArray) -> SequentialEstimate:
    """The mean of the blocks' differences, which lie on the last axis. ValueError before the first look."""
    n = differences.shape[-1]
    if n < FIRST_LOOK:
        raise ValueError(f"the first look is after {FIRST_LOOK} blocks, found {n}; measure another")
    found = of_differences(differences)
    return SequentialEstimate(found.mean, found.error, found.degrees, n)


@lru_cache(maxsize=4096)
def _multiplier(confidence: float, blocks: int) -> float:
    """What the standard error is multiplied by, at one look."""
    first = FIRST_LOOK
    bound = _first_bound(confidence)
    exponent = (math.log(blocks / first) + first * math.log1p(bound**2 / (first - 1))) / blocks
    return math.sqrt((blocks - 1) * math.expm1(exponent))


@lru_cache(maxsize=256)
def _first_bound(confidence: float) -> float:
    """`a`: Student's t at the first look, by bisection; the chance falls as it grows."""
    degrees = FIRST_LOOK - 1
    low, high = 0.0, 1e6
    for _ in range(_STEPS):
        middle = (low + high) / 2
        density = math.exp(
            gammaln((degrees + 1) / 2)
            - gammaln(degrees / 2)
            - 0.5 * math.log(degrees * math.pi)
            - (degrees + 1) / 2 * math.log1p(middle**2 / degrees)
        )
        chance = 2 * (float(stdtr(degrees, -middle)) + middle * density)
        low, high = (middle, high) if chance > 1 - confidence else (low, middle)
    return high
