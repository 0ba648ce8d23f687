from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.figures.transactions import divide, settled_after_s, steadiness, trend_share, two_speeds
from bedplate.model.figure import Window

windows = st.lists(
    st.tuples(st.floats(-20, 100), st.one_of(st.none(), st.floats(0, 40))).map(
        lambda pair: Window("timed", pair[0], None if pair[1] is None else pair[0] + pair[1])
    ),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-3, 1e6), st.integers(10, 700))
def test_the_trend_of_a_constant_is_zero(level: float, seconds: int) -> None:
    assert trend_share(np.full(seconds, level)) == pytest.approx(0.0, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.floats(-0.9, 5.0), st.integers(20, 700))
def test_the_trend_of_a_line_is_its_growth_over_its_mean(growth: float, seconds: int) -> None:
    values = 100 * (1 + growth * np.arange(seconds) / seconds)
    expected = 100 * growth / values.mean()
    assert trend_share(values) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_dips_of_checkpoints_are_no_trend() -> None:
    tps = np.full(300, 1000.0)
    tps[240:270] = 400.0
    found = trend_share(tps)
    assert found is not None
    assert abs(found) < 0.01


def test_too_few_seconds_have_no_trend() -> None:
    assert trend_share(np.full(9, 10.0)) is None
    assert trend_share(np.zeros(100)) is None


@given(windows, st.integers(1, 120))
def test_every_second_is_of_exactly_one_kind(found: list[Window], seconds: int) -> None:
    division = divide(np.arange(float(seconds)) + 0.5, found)
    kinds = np.array([division.in_checkpoint, division.settling, division.outside]).sum(axis=0)
    assert (kinds == 1).all()


def test_seconds_are_sorted_by_their_middle() -> None:
    division = divide(np.arange(20.0) + 0.5, (Window("timed", 1.4, 4.6), Window("timed", 18.0, None)))
    assert [1, 2, 3, 4] == np.flatnonzero(division.in_checkpoint)[:4].tolist()
    assert [18, 19] == np.flatnonzero(division.in_checkpoint)[4:].tolist()
    assert list(range(5, 15)) == np.flatnonzero(division.settling).tolist()


def test_a_checkpoint_that_follows_at_once_ends_the_settling() -> None:
    division = divide(np.arange(10.0) + 0.5, (Window("timed", 0.0, 2.0), Window("timed", 4.0, 6.0)))
    assert [2, 3, 6, 7, 8, 9] == np.flatnonzero(division.settling).tolist()


def test_variation_is_the_sample_deviation_over_the_mean() -> None:
    found = steadiness(np.array([90.0, 110.0]))
    assert (2, 100.0) == (found.seconds, found.tps_mean)
    assert found.tps_cv == pytest.approx(np.std([90, 110], ddof=1) / 100)


@pytest.mark.parametrize(("values", "mean"), [([], None), ([5.0], 5.0), ([0.0, 0.0], 0.0)])
def test_variation_of_too_little_is_absent(values: list[float], mean: float | None) -> None:
    found = steadiness(np.array(values))
    assert (mean, None) == (found.tps_mean, found.tps_cv)


def test_a_climb_settles_where_it_reaches_the_level() -> None:
    warmup = np.concatenate([np.linspace(100, 1000, 60), np.full(60, 1000.0)])
    assert 60.0 == settled_after_s(warmup, np.full(120, 1000.0))


def test_a_run_that_was_steady_from_the_start_settled_at_once() -> None:
    assert 0.0 == settled_after_s(np.full(30, 500.0), np.full(60, 505.0))


def test_a_measurement_that_climbs_settles_late_or_never() -> None:
    found = settled_after_s(np.full(60, 100.0), np.linspace(100, 1000, 300))
    assert found is None or found > 60


def test_too_short_a_measurement_says_nothing() -> None:
    assert settled_after_s(np.full(100, 10.0), np.full(29, 10.0)) is None


def test_a_run_without_transactions_never_settles() -> None:
    assert settled_after_s(np.zeros(60), np.zeros(60)) is None


@given(st.lists(st.floats(0, 1e6), min_size=30, max_size=200), st.lists(st.floats(0, 1e6), max_size=100))
def test_settling_lies_within_the_run(measure: list[float], warmup: list[float]) -> None:
    found = settled_after_s(np.array(warmup), np.array(measure))
    assert found is None or 0 <= found <= len(warmup) + len(measure) - 30


@pytest.mark.parametrize(
    ("tps", "expected"),
    [
        ([100.0] * 10, None),
        ([70.0] * 5 + [110.0] * 5, (70.0, 110.0, 5)),
        ([110.0] * 7 + [70.0] * 3, (110.0, 70.0, 7)),
        # Two seconds are no stretch, a slope and what comes and goes are no two speeds.
        ([110.0] * 8 + [70.0] * 2, None),
        ([100.0, 112.0] * 5, None),
        ([70.0, 110.0] * 5, None),
        ([60.0 + 2 * at for at in range(40)], None),
        ([100.0] * 5 + [114.0] * 5, None),
        ([70.0] * 5, None),
        ([], None),
    ],
)
def test_two_speeds_are_two_stretches_of_unlike_level(
    tps: list[float], expected: tuple[float, float, int] | None
) -> None:
    found = two_speeds(np.array(tps))
    assert expected == (found and (found.first_tps, found.second_tps, found.at_s))


def test_seconds_that_scatter_around_one_level_are_one_speed() -> None:
    draws = np.random.default_rng(1).normal(1.0, 0.05, (500, 10))
    assert 0 == sum(two_speeds(row) is not None for row in draws)
