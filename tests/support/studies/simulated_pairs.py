"""Paired sequences of which the truth is known, each looked at after every block until it tells.

Runs scatter as in `simulated_studies`; the contender is moved by the true ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tests.support.studies.simulated_studies import Scenario, simulate, verdicts

from bedplate.statistics.paired_sequence import FIRST_LOOK, sequential

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.studies.simulated_studies import FloatArray

    from bedplate.statistics.estimation import Estimate

CONFIDENCE = 0.95
PAIRED = (
    Scenario("1 %", (0.01, 0.01)),
    Scenario("4 %", (0.04, 0.04)),
    Scenario("10 %", (0.1, 0.1)),
    Scenario("4 %, heavy tails (t3)", (0.04, 0.04), "t3"),
    Scenario("4 %, dips of 30 % in a tenth of the runs", (0.04, 0.04), "dips"),
    Scenario("4 %, 20 % slower from start to end", (0.04, 0.04), trend=0.8),
    Scenario("4 %, 20 % slower after half", (0.04, 0.04), step=0.8),
    Scenario("4 % beside 10 %", (0.04, 0.1)),
)


@dataclass(frozen=True)
class Told:
    """What uses of a paired sequence came to: for each the verdict (1, -1, 0 for the same, NaN for cannot tell) and the blocks that it took."""

    verdict: FloatArray
    blocks: FloatArray

    def share(self, verdict: float) -> float:
        """Of uses that said so."""
        return float(np.mean(self.verdict == verdict))

    @property
    def cannot_tell(self) -> float:
        """Of uses whose time was gone."""
        return float(np.mean(np.isnan(self.verdict)))


def differences(
    scenario: Scenario, random: np.random.Generator, *, uses: int, blocks: int, ratio: float
) -> FloatArray:
    """The log ratios of `uses` pairs of cells, a block each: (uses, blocks)."""
    logs = simulate(scenario, random, studies=uses, repetitions=blocks, cells=2)
    return np.asarray(logs[..., 1] - logs[..., 0] + math.log(ratio))


def watched(found: FloatArray, *, estimated: Callable[[FloatArray], Estimate] = sequential) -> Told:
    """Each use is looked at from the first look on, and ends at the first look that tells."""
    uses, blocks = found.shape
    verdict, taken = np.full(uses, np.nan), np.full(uses, float(blocks))
    for n in range(FIRST_LOOK, blocks + 1):
        at_look = verdicts(estimated(found[:, :n]), CONFIDENCE)[2]
        fresh = np.isnan(verdict) & ~np.isnan(at_look)
        verdict[fresh], taken[fresh] = at_look[fresh], n
    return Told(verdict, taken)


@dataclass(frozen=True)
class Candidates:
    """What candidates of a bisection were taken for: shares that are good and bad, and of all those that time decided."""

    good: float
    bad: float
    by_estimate: float
    blocks: float


def bisected(found: FloatArray, *, slower: float) -> Candidates:
    """Candidates held against “slower by that share”: by the interval, or when time is gone by the estimate's side. None is skipped."""
    uses, blocks = found.shape
    bound = math.log(1 / (1 + slower))
    side, taken = np.zeros(uses), np.full(uses, float(blocks))
    for n in range(FIRST_LOOK, blocks + 1):
        low, high = sequential(found[:, :n]).interval(CONFIDENCE)
        at_look = np.where(high < bound, -1.0, np.where(low >= bound, 1.0, 0.0))
        fresh = (side == 0) & (at_look != 0)
        side[fresh], taken[fresh] = at_look[fresh], n
    late = side == 0
    side[late] = np.where(found[late].mean(axis=-1) < bound, -1.0, 1.0)
    return Candidates(
        float(np.mean(side > 0)), float(np.mean(side < 0)), float(np.mean(late)), float(np.median(taken))
    )
