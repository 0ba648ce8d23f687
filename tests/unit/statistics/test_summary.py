from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bedplate.model.figure import Scale, Status
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.summary import (
    ARITHMETIC_MEAN,
    GEOMETRIC_MEAN,
    MEAN,
    SUSPECT,
    TRUSTED,
    Observation,
    Summaries,
    Summary,
    SummaryKey,
    coefficient_of_variation,
    log_interval,
    summarise,
)

POSITIVE = st.floats(min_value=1e-6, max_value=1e9)


def observed(*values: float | None) -> list[Observation]:
    return [Observation(value, Status.ABSENT if value is None else Status.MEASURED) for value in values]


def test_describes_two_repetitions_without_an_interval() -> None:
    summary = summarise(observed(100.0, 400.0), Scale.RATIO)
    assert (2, 100.0, 400.0) == (summary.n, summary.minimum, summary.maximum)
    assert summary.centre == pytest.approx(200.0)
    assert summary.centre_kind == GEOMETRIC_MEAN
    assert summary.low is None
    assert summary.high is None


def test_interval_of_three_is_students_on_logarithms() -> None:
    values = [90.0, 100.0, 125.0]
    logarithms = [math.log(value) for value in values]
    low, high = stats.t.interval(0.95, 2, loc=sum(logarithms) / 3, scale=stats.sem(logarithms))
    summary = summarise(observed(*values), Scale.RATIO)
    assert (summary.low, summary.high) == pytest.approx((math.exp(low), math.exp(high)))


def test_a_zero_has_no_logarithm() -> None:
    summary = summarise(observed(0.0, 1.0, 2.0), Scale.RATIO)
    assert summary.centre_kind == ARITHMETIC_MEAN
    assert summary.centre == pytest.approx(1.0)
    assert summary.low is None


@pytest.mark.parametrize("scale", [Scale.PROPORTION, Scale.SHARE, Scale.COUNT])
def test_other_scales_have_a_mean_and_no_interval_of_ratios(scale: Scale) -> None:
    summary = summarise(observed(0.2, 0.4, 0.6), scale)
    assert summary.centre_kind == MEAN
    assert summary.centre == pytest.approx(0.4)
    assert summary.low is None


def test_absent_is_not_zero() -> None:
    summary = summarise(observed(10.0, None), Scale.RATIO)
    assert (1, 1, 10.0) == (summary.n, summary.absent, summary.minimum)


def test_nothing_measured_has_no_figures() -> None:
    summary = summarise(observed(None, None), Scale.RATIO)
    assert (0, 2, None, None) == (summary.n, summary.absent, summary.centre, summary.basis)


def test_suspect_runs_are_left_out_where_one_is_trusted() -> None:
    found = [Observation(100.0), Observation(900.0, validity=Validity.SUSPECT)]
    summary = summarise(found, Scale.RATIO)
    assert (1, 1, TRUSTED, 100.0) == (summary.n, summary.suspect, summary.basis, summary.centre)


def test_only_suspect_runs_are_shown_as_such() -> None:
    summary = summarise([Observation(900.0, validity=Validity.SUSPECT)], Scale.RATIO)
    assert (1, 1, SUSPECT, 900.0) == (summary.n, summary.suspect, summary.basis, summary.centre)


def test_failed_censored_and_missing_runs_are_counted_apart() -> None:
    found = [
        Observation(5.0, outcome=Outcome.FAILED),
        Observation(None, outcome=Outcome.NOT_RUN),
        Observation(7.0, status=Status.CENSORED),
        Observation(math.nan),
        Observation(3.0),
    ]
    summary = summarise(found, Scale.RATIO)
    counts = (summary.n, summary.failed, summary.not_run, summary.censored, summary.absent)
    assert (1, 1, 1, 1, 1) == counts
    assert summary.centre == pytest.approx(3.0)


def test_a_summary_is_made_once_when_it_is_asked_for() -> None:
    second, first = SummaryKey("b", "d", "r", "tps"), SummaryKey("a", "d", "r", "tps")
    made: list[SummaryKey] = []

    def make(key: SummaryKey) -> Summary:
        made.append(key)
        return summarise(observed(1.0, 2.0), Scale.RATIO)

    found = Summaries((second, first), make)
    assert [second, first] == list(found)
    assert (2, True, []) == (len(found), first in found, made)
    assert found[first] is found[first]
    assert [first] == made
    assert found.get(SummaryKey("c", "d", "r", "tps")) is None


@given(st.lists(POSITIVE, min_size=1, max_size=8))
def test_the_mean_lies_between_the_extremes(values: list[float]) -> None:
    summary = summarise(observed(*values), Scale.RATIO)
    assert summary.minimum is not None
    assert summary.maximum is not None
    assert summary.centre is not None
    assert summary.minimum <= summary.centre <= summary.maximum


@given(st.lists(POSITIVE, min_size=3, max_size=8), st.floats(min_value=1e-3, max_value=1e3))
def test_interval_scales_with_the_unit(values: list[float], factor: float) -> None:
    low, high = log_interval(values)
    scaled_low, scaled_high = log_interval([value * factor for value in values])
    if low is None or high is None or scaled_low is None or scaled_high is None:
        return
    assert scaled_low == pytest.approx(low * factor, rel=1e-6)
    assert scaled_high == pytest.approx(high * factor, rel=1e-6)


@given(st.lists(POSITIVE, min_size=3, max_size=8))
def test_interval_holds_the_geometric_mean(values: list[float]) -> None:
    low, high = log_interval(values)
    centre = summarise(observed(*values), Scale.RATIO).centre
    assert centre is not None
    if low is not None and high is not None:
        assert low <= centre * (1 + 1e-9)
        assert centre <= high * (1 + 1e-9)


@given(st.permutations([1.0, 2.0, 3.0, 50.0]))
def test_order_of_repetitions_does_not_matter(values: list[float]) -> None:
    assert (
        summarise(observed(1.0, 2.0, 3.0, 50.0), Scale.RATIO).centre
        == summarise(observed(*values), Scale.RATIO).centre
    )


@given(st.lists(st.floats(-1e100, 1e100) | st.sampled_from([math.nan, math.inf]), max_size=6))
def test_no_values_whatever_raise(values: list[float]) -> None:
    for scale in Scale:
        summary = summarise(observed(*values), scale)
        assert len(values) == summary.n + summary.absent


def test_variation_of_constant_runs_is_zero_and_around_zero_unknown() -> None:
    assert coefficient_of_variation([4.0, 4.0]) == 0.0
    assert coefficient_of_variation([-1.0, 1.0]) is None
    assert coefficient_of_variation([4.0]) is None
