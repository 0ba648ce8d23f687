"""Intervals for k of n, which has no logarithm at zero and no normal error near it, and for two of them.

Exact ones, that never cover less than they say, as n is small here (a dozen power cuts) and a promise
of durability must not be better than its evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import betainc, betaincinv

if TYPE_CHECKING:
    from typing import TypeAlias

    # k of n: how often it happened, and of how many.
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
