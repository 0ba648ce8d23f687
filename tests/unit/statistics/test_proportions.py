"""k of n: exact bounds against scipy's and against every outcome there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from bedplate.statistics.comparison import p_difference, p_same, proportion, proportion_difference


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


_TABLES = st.tuples(st.integers(1, 40), st.integers(1, 40)).flatmap(
    lambda sizes: st.tuples(
        st.tuples(st.integers(0, sizes[0]), st.just(sizes[0])),
        st.tuples(st.integers(0, sizes[1]), st.just(sizes[1])),
    )
)
Counted = tuple[int, int]


@settings(deadline=None)
@given(_TABLES)
@example(table=((7, 8), (8, 8)))
def test_a_p_value_is_where_the_interval_touches_zero(table: tuple[Counted, Counted]) -> None:
    found = p_difference(*table)
    assert found == pytest.approx(p_difference(table[1], table[0]), rel=1e-9)
    # Of 1, or a rounding less, no larger chance is left to be told.
    if 1e-10 < found < 0.998:
        for chance, told in ((found * 1.001, True), (found * 0.999, False)):
            interval = proportion_difference(*table, confidence=1 - min(chance, 0.999999))
            assert told == (interval.low > 0 or interval.high < 0)


@settings(deadline=None)
@given(_TABLES, st.sampled_from((0.01, 0.05, 0.3)))
def test_a_p_value_is_where_the_interval_reaches_the_margin(
    table: tuple[Counted, Counted], margin: float
) -> None:
    found = p_same(*table, margin)
    assert found == pytest.approx(p_same(table[1], table[0], margin), rel=1e-9)
    if 1e-10 < found < 0.999:
        for chance, same in ((found * 1.001, True), (found * 0.999, False)):
            interval = proportion_difference(*table, confidence=1 - chance)
            assert same == (interval.low >= -margin and interval.high <= margin)


@settings(deadline=None)
@given(_TABLES)
def test_what_differs_differs_by_fishers_exact_test_as_well(table: tuple[Counted, Counted]) -> None:
    found = p_difference(*table)
    (a, m), (b, n) = table
    fisher = float(stats.fisher_exact([[a, m - a], [b, n - b]]).pvalue)
    assert found >= min(fisher, 0.5) - 1e-12


def test_ten_bad_cuts_beside_none_are_told_of_thirty_as_of_two_hundred() -> None:
    for cuts in (30, 45, 112, 200):
        assert p_difference((0, cuts), (10, cuts)) <= 0.05 < p_difference((0, cuts), (9, cuts))
    # Every cut bad beside none, so many that a chance computed as 1 - x would be 0.
    assert 0 < p_difference((0, 112), (112, 112)) < 1e-30


def test_none_beside_none_is_the_same_only_of_many() -> None:
    assert p_same((0, 45), (0, 45), 0.05) > 0.05 > p_same((0, 112), (0, 112), 0.05)
    assert 1.0 == p_same((0, 45), (45, 45), 0.05)
    assert 0.0 == p_same((0, 45), (45, 45), 1.0)
