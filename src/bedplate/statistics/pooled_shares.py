"""How two k of n differ that were counted in several recordings, under every verdict on power cuts.

The counts of all recordings together have an exact interval, from a single recording on (`proportions`). It takes every
cut for one draw from the same share, and says nothing of how recordings differ among themselves. From three
repetitions on the scatter of the recordings is known too, and with it Student's interval of the difference within each
(`estimation`). Then the wider evidence counts on either side: the exact one where the recordings happen to agree, as
30 of 30 in each does, Student's where they scatter by more than counting explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.statistics import proportions
from bedplate.statistics.proportions import proportion_difference

if TYPE_CHECKING:
    from bedplate.statistics.estimation import Estimate
    from bedplate.statistics.proportions import Counted


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
        exact = proportions.p_difference(self.baseline, self.contender)
        if self.within is None:
            return exact
        if self.mean * float(self.within.mean) <= 0:
            return 1.0
        return max(exact, float(self.within.p_difference()))

    def p_same(self, margin: float) -> float:
        """1 - the confidence at which the interval begins to reach beyond ±margin."""
        exact = proportions.p_same(self.baseline, self.contender, margin)
        return exact if self.within is None else max(exact, float(self.within.p_same(margin)))
