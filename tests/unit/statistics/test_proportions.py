"""k of n and counts: exact bounds against scipy's and against every outcome there is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bedplate.statistics.proportions import proportion, proportion_difference, rate, rate_ratio


@settings(deadline=None)
@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_proportion_has_the_bounds_of_scipys_exact_test(found: tuple[int, int]) -> None:
    interval = proportion(*found)
    expected = stats.binomtest(*found).proportion_ci(0.95, method="exact")
    assert (expected.low, expected.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert interval.low <= interval.estimate == found[0] / found[1] <= interval.high


def test_no_loss_in_twelve_power_cuts_is_not_no_loss() -> None:
    interval = proportion(0, 12)
    assert (0.0, 0.0) == (interval.estimate, interval.low)
    # The closed form at zero: 1 - 0.025^(1/12).
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 12))


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3), (0, 0)])
def test_what_is_no_proportion_is_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="is no proportion"):
        proportion(successes, trials)


@pytest.mark.parametrize("sizes", [(3, 3), (5, 12), (12, 12)])
def test_a_difference_never_covers_less_than_it_says(sizes: tuple[int, int]) -> None:
    first, second = (np.arange(n + 1) for n in sizes)
    bounds = [
        [proportion_difference((a, sizes[0]), (b, sizes[1])) for b in range(sizes[1] + 1)]
        for a in range(sizes[0] + 1)
    ]
    low = np.array([[interval.low for interval in row] for row in bounds])
    high = np.array([[interval.high for interval in row] for row in bounds])
    for before in np.linspace(0, 1, 26):
        for after in np.linspace(0, 1, 26):
            chances = np.outer(
                stats.binom.pmf(first, sizes[0], before), stats.binom.pmf(second, sizes[1], after)
            )
            covers = (low <= after - before + 1e-12) & (after - before <= high + 1e-12)
            assert chances[covers].sum() >= 0.95


def test_all_against_none_differs_and_three_do_not_suffice() -> None:
    assert proportion_difference((0, 12), (12, 12)).low > 0.3
    assert proportion_difference((0, 3), (2, 3)).low < 0


@pytest.mark.parametrize("events", [0, 1, 7, 250])
def test_a_rate_has_the_bounds_of_the_poisson_distribution(events: int) -> None:
    interval = rate(events, 2.0)
    low, high = interval.low * 2, interval.high * 2
    assert stats.poisson.cdf(events, high) == pytest.approx(0.025)
    if events:
        assert stats.poisson.sf(events - 1, low) == pytest.approx(0.025)
    else:
        assert 0.0 == low


def test_a_ratio_of_rates_counts_the_exposure() -> None:
    assert rate_ratio((10, 1.0), (10, 2.0)).estimate == pytest.approx(0.5)
    interval = rate_ratio((0, 1.0), (8, 1.0))
    assert math.inf == interval.estimate == interval.high
    assert interval.low > 1
    nothing = rate_ratio((0, 1.0), (0, 1.0))
    assert math.isnan(nothing.estimate)
    assert (0.0, math.inf) == (nothing.low, nothing.high)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_ratio_of_rates_turned_round_is_its_reciprocal(a: int, b: int, s: float, t: float) -> None:
    forth, back = rate_ratio((a, s), (b, t)), rate_ratio((b, t), (a, s))
    if forth.low > 0:
        assert back.high == pytest.approx(1 / forth.low, rel=1e-6)
    else:
        assert math.inf == back.high


def test_what_is_no_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="are no rate"):
        rate(1, 0.0)
    with pytest.raises(ValueError, match="are no rates"):
        rate_ratio((-1, 1.0), (1, 1.0))
