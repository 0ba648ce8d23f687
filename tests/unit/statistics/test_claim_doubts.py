"""How sure a claim is: against Student by hand, on randomly drawn parts, and over many simulated studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bedplate.statistics.claims import (
    Doubt,
    SpreadRatio,
    Witness,
    all_of,
    best_is_among,
    opposite,
    p_above,
    p_below,
    spread_within,
    within,
)
from bedplate.statistics.estimation import of_differences

VALUES = st.lists(st.floats(-3, 3), min_size=3, max_size=8).filter(lambda found: np.std(found) > 1e-6)
STUDIES = 1500


def test_p_values_are_those_of_students_test() -> None:
    values = np.array([0.1, 0.15, 0.3, 0.2])
    estimate = of_differences(values)
    for bound in (-0.1, 0.05, 0.19, 0.4):
        one_sided = float(stats.ttest_1samp(values, bound, alternative="greater").pvalue)
        assert min(1.0, 2 * one_sided) == pytest.approx(p_above(estimate, bound))
        assert min(1.0, 2 * (1 - one_sided)) == pytest.approx(p_below(estimate, bound))


@settings(deadline=None)
@given(VALUES, st.floats(-2, 2), st.floats(0.01, 2))
def test_the_interval_at_the_p_value_touches_the_bound(values: list[float], low: float, width: float) -> None:
    doubt = within("x", of_differences(np.array(values)), low, low + width)
    for p, inside in ((doubt.p_holds, True), (doubt.p_fails, False)):
        if not 1e-9 < p < 0.999:
            continue
        ends = doubt.for_holds.estimate.interval(1 - p)
        wider = doubt.for_holds.estimate.interval(1 - p / 2)
        if inside:
            assert low - 1e-6 <= ends[0]
            assert ends[1] <= low + width + 1e-6
            assert wider[0] < low or wider[1] > low + width
        else:
            assert ends[0] >= low + width - 1e-6 or ends[1] <= low + 1e-6


@settings(deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5))
def test_no_claim_of_several_parts_is_surer_than_its_parts(parts: list[list[float]]) -> None:
    doubts = [within(str(at), of_differences(np.array(values)), 0.0, None) for at, values in enumerate(parts)]
    together = all_of(doubts)
    assert together.p_holds == max(doubt.p_holds for doubt in doubts)
    assert together.p_fails >= min(doubt.p_fails for doubt in doubts)
    # Both cannot be sure at once.
    assert max(together.p_holds, together.p_fails) > 0.5


def test_a_claim_without_bounds_or_levels_is_refused() -> None:
    with pytest.raises(ValueError, match="one side"):
        within("x", of_differences(np.array([1.0, 2.0])), None, None)
    with pytest.raises(ValueError, match="both sides"):
        best_is_among(["a"], [], {})
    with pytest.raises(ValueError, match="three repetitions"):
        spread_within("x", np.zeros((2, 3)), np.zeros((2, 3)), 1.0, None)


def test_a_spread_beside_one_that_may_be_none_is_bounded_from_below() -> None:
    ratio = SpreadRatio(np.array([1.0, 1.1, 0.9]), np.array([0.1, -0.1, 0.02]))
    low, high = ratio.interval(0.95)
    assert math.inf == high
    assert p_above(ratio.at(math.exp(low)), 0.0) == pytest.approx(0.05)
    assert (-math.inf, math.inf) == SpreadRatio(np.array([1.0, -1.1, 0.3]), ratio.whole).interval(0.95)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([3, 5]), st.floats(0.5, 0.99))
def test_a_finite_end_of_a_spread_is_where_its_p_value_says(seed: int, n: int, confidence: float) -> None:
    rng = np.random.default_rng(seed)
    ratio = SpreadRatio(1 + rng.normal(scale=0.5, size=n), 1 + rng.normal(scale=0.5, size=n))
    low, high = ratio.interval(confidence)
    assert low <= high
    if math.isfinite(low):
        assert p_above(ratio.at(math.exp(low)), 0.0) == pytest.approx(1 - confidence, abs=1e-6)
    if math.isfinite(high):
        assert p_below(ratio.at(math.exp(high)), 0.0) == pytest.approx(1 - confidence, abs=1e-6)


def _false_share(p_values: list[float]) -> float:
    return float(np.mean([p <= 0.05 for p in p_values]))


@pytest.mark.parametrize("repetitions", [3, 5])
def test_best_is_said_wrongly_no_more_often_than_promised(repetitions: int) -> None:
    """The best of the inside is just as good as the best of the outside: neither word may be said."""
    rng = np.random.default_rng(2)
    truth = np.array([0.0, 0.0, -0.1, 0.0, -0.05, -0.1])
    holds, fails = [], []
    for _ in range(STUDIES):
        doubt = _best(truth + rng.normal(scale=0.04, size=(repetitions, 6)))
        holds.append(doubt.p_holds)
        fails.append(doubt.p_fails)
    assert _false_share(holds) <= 0.05
    assert _false_share(fails) <= 0.05


def test_best_finds_a_clear_best() -> None:
    rng = np.random.default_rng(3)
    truth = np.array([0.0, 0.4, 0.0, 0.0, 0.1, 0.0])
    found = [_best(truth + rng.normal(scale=0.04, size=(5, 6))) for _ in range(200)]
    assert np.mean([doubt.p_holds <= 0.05 for doubt in found]) > 0.9
    assert {"b"} == {doubt.for_holds.words[0] for doubt in found if doubt.p_holds <= 0.05}


def _best(logs: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Doubt:
    names = "abcdef"
    better = {}
    for first in "abc":
        for second in "def":
            estimate = of_differences(logs[:, names.index(first)] - logs[:, names.index(second)])
            witness = Witness(f"{first} beside {second}", float(estimate.mean), estimate)
            better[first, second] = (witness, estimate)
    return best_is_among("abc", "def", better)


@pytest.mark.parametrize("repetitions", [3, 5])
@pytest.mark.parametrize("scatter", [(0.04, 0.04), (0.04, 0.3), (0.3, 0.04)])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_a_spread_is_called_wider_wrongly_no_more_often_than_promised(
    repetitions: int, scatter: tuple[float, float], spread: float
) -> None:
    """Equal spreads, also where one side scatters far more: scatter is no spread."""
    rng = np.random.default_rng(4)
    truth = spread * np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
    wrong = []
    for _ in range(STUDIES):
        sides = [truth + rng.normal(scale=each, size=(repetitions, 5)) for each in scatter]
        doubt = spread_within("x", sides[0], sides[1], 1.0, None)
        wrong.append(doubt.p_value)
    assert _false_share(wrong) <= 0.055


def test_a_spread_that_is_wider_is_found_and_its_ratio_covered() -> None:
    rng = np.random.default_rng(5)
    truth = np.array([-0.15, -0.05, 0.0, 0.05, 0.15])
    covered, found = [], []
    for _ in range(500):
        sides = [each * truth + rng.normal(scale=0.02, size=(5, 5)) for each in (1.0, 3.0)]
        doubt = spread_within("x", sides[0], sides[1], 1.0, None)
        low, high = doubt.for_holds.estimate.interval(0.95)
        covered.append(bool(low <= math.log(3) <= high))
        found.append(doubt.p_holds <= 0.05)
    assert np.mean(covered) >= 0.93
    assert np.mean(found) >= 0.9


@pytest.mark.parametrize("repetitions", [3, 5])
def test_opposite_signs_are_said_wrongly_no_more_often_than_promised(repetitions: int) -> None:
    """One side is far above 0 and the other at 0: every wrong sign of the second would be a wrong word."""
    rng = np.random.default_rng(6)
    found = [
        opposite(
            ("a", of_differences(1 + rng.normal(scale=0.05, size=repetitions))),
            ("b", of_differences(rng.normal(scale=0.05, size=repetitions))),
        )
        for _ in range(STUDIES)
    ]
    assert _false_share([doubt.p_value for doubt in found]) <= 0.06
    sure = opposite(
        ("a", of_differences(np.array([1.0, 1.1, 1.2]))), ("b", of_differences(np.array([-1.0, -1.1, -1.2])))
    )
    assert sure.p_holds < 0.01
    assert sure.p_fails == 1.0
