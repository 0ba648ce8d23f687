"""Trends, steps and outliers: told where they are, not told where there are none."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bedplate.statistics.drift import Drift, Visited, drift, outliers

POSITIVE = st.floats(min_value=1e-3, max_value=1e6)


def study(
    seed: int,
    *,
    repetitions: int = 5,
    cells: int = 12,
    trend: float = 1.0,
    step: float = 1.0,
    after: float = 0.5,
) -> Iterator[Visited]:
    """Odd cells scatter by 4 %, even ones by 40 %; every cell is another speed."""
    random = np.random.default_rng(seed)
    for repetition in range(repetitions):
        for place, cell in enumerate(random.permutation(cells)):
            position = repetition * cells + place
            passed = (position + 0.5) / (repetitions * cells)
            change = trend**passed * (step if passed > after else 1.0)
            noise = random.normal(0, 0.04 if cell % 2 else 0.4)
            yield Visited(str(cell), position, 100 * (cell + 1) * math.exp(noise) * change)


def canary(*values: float) -> list[Visited]:
    return [Visited("canary", position, value) for position, value in enumerate(values)]


def test_a_trend_of_one_group_is_kendalls_tau_to_the_digit() -> None:
    values = (100.0, 103.0, 99.0, 97.0, 98.0, 94.0, 95.0, 90.0)
    found = drift(canary(*values)).trend
    assert found is not None
    expected = stats.kendalltau(range(8), values, method="exact")
    assert found.p_value == pytest.approx(expected.pvalue)
    slope = stats.theilslopes(np.log(values)).slope
    assert found.ratio == pytest.approx(math.exp(7 * slope))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.ratio < found.high < 1


def test_a_machine_that_slows_halfway_is_found_with_its_place() -> None:
    found = drift(study(1, step=0.8))
    assert found.step is not None
    assert found.step.p_value <= 0.01
    assert 27 <= found.step.position <= 33
    assert 0.75 < found.step.ratio < 0.85


def test_an_even_slowing_is_found_with_its_size() -> None:
    found = drift(study(2, trend=0.7)).trend
    assert found is not None
    assert found.p_value < 0.001
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.7 < found.high < 0.9


@pytest.mark.parametrize("repetitions", [3, 5])
def test_where_time_is_of_no_account_drift_is_seldom_told(repetitions: int) -> None:
    found = [drift(study(seed, repetitions=repetitions)) for seed in range(200)]
    trends = sum(d.trend.p_value <= 0.05 for d in found if d.trend)
    steps = sum(d.step.p_value <= 0.05 for d in found if d.step)
    # 10 of 200 are expected; three and a half standard deviations more are 21.
    assert 200 == sum(d.trend is not None and d.step is not None for d in found)
    assert trends <= 21
    assert steps <= 21
    # A test that never speaks would pass the above.
    assert trends + steps > 0


def test_the_bounds_of_a_trend_hold_it() -> None:
    held = 0
    for seed in range(200):
        found = drift(study(seed, repetitions=3, trend=0.9)).trend
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.9 <= found.high
    assert held >= 190 - 11


def test_three_values_bound_nothing() -> None:
    found = drift(canary(100, 90, 80)).trend
    assert found is not None
    assert (None, None) == (found.low, found.high)
    # All six orders are equally likely, and two are this steep.
    assert found.p_value == pytest.approx(1 / 3)


def test_equal_values_have_no_drift() -> None:
    found = drift(canary(5, 5, 5, 5, 5))
    assert found.trend is not None
    assert found.step is not None
    assert (1.0, 1.0) == pytest.approx((found.trend.ratio, found.trend.p_value))
    assert (1.0, 1.0) == (found.step.ratio, found.step.p_value)


def test_values_alone_and_values_at_once_say_nothing() -> None:
    assert Drift(0, 0) == drift([])
    assert Drift(0, 0) == drift([Visited("a", 1, 1), Visited("b", 2, 1)])
    at_once = drift([Visited("a", 1, 1), Visited("a", 1, 2), Visited("a", 1, 3)])
    assert (3, None, None) == (at_once.values, at_once.trend, at_once.step)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_what_has_no_logarithm_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="drift takes positive values"):
        Visited("a", 1, value)


def test_the_seed_decides_what_is_shuffled() -> None:
    points = list(study(3, step=0.97))
    assert drift(points) == drift(points)
    assert drift(points) == drift(reversed(points))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), POSITIVE), min_size=2, max_size=20),
    st.floats(0.01, 100),
    st.floats(0.1, 10),
)
def test_units_and_clocks_are_of_no_account(
    drawn: list[tuple[str, float]], factor: float, speed: float
) -> None:
    points = [Visited(group, position, value) for position, (group, value) in enumerate(drawn)]
    scaled = [Visited(p.group, 7 + p.position * speed, p.value * factor) for p in points]
    found, again = drift(points), drift(scaled)
    assert (found.values, found.groups) == (again.values, again.groups)
    if found.trend and again.trend:
        assert found.trend.ratio == pytest.approx(again.trend.ratio, rel=1e-6)
        assert 0 <= found.trend.p_value <= 1
        if found.trend.low is not None and found.trend.high is not None:
            assert found.trend.low <= found.trend.ratio * (1 + 1e-9)
            assert found.trend.high >= found.trend.ratio * (1 - 1e-9)


def test_one_wild_value_among_five_is_told_and_kept() -> None:
    points = canary(100, 101, 60, 99, 100)
    (found,) = outliers(points)
    assert (2, 60, 5) == (found.position, found.value, found.n)
    assert found.ratio == pytest.approx(0.6, rel=1e-2)
    assert 5 == drift(points).values


def test_a_value_that_is_strange_but_near_is_no_outlier() -> None:
    assert () == outliers(canary(100, 100.001, 102, 99.999, 100))


def test_of_three_values_only_a_pair_that_coincides_makes_an_outlier() -> None:
    assert () == outliers(canary(100, 101, 60))
    assert 1 == len(outliers(canary(100, 100, 60)))
    assert () == outliers(canary(100, 60))
    assert () == outliers(canary(7, 7, 7))


def test_chance_makes_an_outlier_of_one_group_in_a_hundred_at_most() -> None:
    random = np.random.default_rng(4)
    points = [
        Visited(str(group), position, math.exp(random.normal(0, 0.3)))
        for group in range(3000)
        for position in range(5)
    ]
    # 30 are expected; three and a half standard deviations more are 49.
    assert 5 <= len(outliers(points)) <= 49
