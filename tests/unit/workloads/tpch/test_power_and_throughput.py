"""Power, throughput and the composite of clause 5.4, and the notes that they are shown with."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.model.reason import sentences
from bedplate.workloads.tpch.figures import (
    NOT_AUDITED,
    WITHOUT_REFRESH,
    composite,
    power,
    rounded_interval_s,
    throughput,
)

EVEN = dict.fromkeys(range(1, 23), 10.0)


@pytest.mark.parametrize(
    ("seconds", "rounded"),
    [
        (23.74, 23.7),
        (23.75, 23.8),
        (0.049, 0.1),
        (0.05, 0.1),
        (0.001, 0.1),
        (0.14, 0.1),
        (0.15, 0.2),
        (7, 7.0),
    ],
)
def test_intervals_are_rounded_as_the_clause_shows(seconds: float, rounded: float) -> None:
    assert rounded == rounded_interval_s(seconds)


def test_power_is_the_inverse_of_the_geometric_mean() -> None:
    assert 360.0 == power(EVEN, 1).value
    assert 36.0 == power(EVEN, 0.1).value
    assert 3600.0 == power(EVEN, 10).value


def test_power_raises_intervals_below_a_thousandth_of_the_longest() -> None:
    figure = power(EVEN | {1: 5000.0, 2: 0.5}, 1)
    expected = 3600 / math.exp((20 * math.log(10) + math.log(5000) + math.log(5)) / 22)
    assert figure.value == pytest.approx(expected, abs=0.05)
    assert "raised to a thousandth of the longest query: 2" in sentences(figure.notes)
    assert sentences(power(EVEN | {1: 500.0, 2: 0.5}, 1).notes[2:]) == (
        "queries under 1 s count to the nearest 0.1 s, which is coarse for them",
    )


def test_power_is_absent_where_a_query_has_no_time() -> None:
    some = {query: seconds for query, seconds in EVEN.items() if query not in {3, 21}}
    figure = power(some, 1)
    assert (None, ("query 3 has no time", "query 21 has no time")) == (
        figure.value,
        sentences(figure.reasons),
    )
    figure = power(some, 1, stopped_s={21: 0.5})
    assert ("query 3 has no time", "query 21 was stopped at its limit of 0.5 s") == sentences(figure.reasons)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_what_is_not_positive_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="timing interval is"):
        power(EVEN | {4: wrong}, 1)
    with pytest.raises(ValueError, match="scale factor is"):
        power(EVEN, wrong)
    with pytest.raises(ValueError, match="measurement interval is"):
        throughput(2, wrong, 1)
    with pytest.raises(ValueError, match="scale factor is"):
        throughput(2, 1, wrong)
    with pytest.raises(ValueError, match="number of streams is 0"):
        throughput(0, 1, 1)


def test_throughput() -> None:
    figure = throughput(2, 1000.0, 1)
    assert (158.4, (NOT_AUDITED, WITHOUT_REFRESH)) == (figure.value, figure.notes)
    assert 15.8 == throughput(2, 1000.0, 0.1).value


@pytest.mark.parametrize(
    ("scale_factor", "least"), [(0.1, 2), (1, 2), (10, 3), (29, 3), (100, 5), (100_000, 11)]
)
def test_too_few_streams_are_noted(scale_factor: float, least: int) -> None:
    assert (NOT_AUDITED, WITHOUT_REFRESH) == throughput(least, 10, scale_factor).notes
    note = throughput(least - 1, 10, scale_factor).notes[2]
    assert f"the specification asks for {least} at this scale factor" in note.sentence


def test_the_composite_is_the_geometric_mean_with_every_note_once() -> None:
    figure = composite(power(EVEN, 1), throughput(1, 220.0, 1))
    assert figure.value == pytest.approx(360.0)
    assert (NOT_AUDITED, WITHOUT_REFRESH) == figure.notes[:2]
    assert 3 == len(figure.notes)
    absent = composite(power({}, 1), throughput(2, 220.0, 1))
    assert (None, 22) == (absent.value, len(absent.reasons))


@settings(deadline=None)
@given(st.lists(st.floats(0.1, 1000), min_size=22, max_size=22), st.floats(0.01, 1000))
def test_power_lies_between_those_of_the_fastest_and_the_slowest_query(
    times: list[float], scale_factor: float
) -> None:
    figure = power(dict(enumerate(times, 1)), scale_factor).value
    assert figure is not None
    slowest = 3600 * scale_factor / rounded_interval_s(max(times))
    fastest = 3600 * scale_factor / rounded_interval_s(min(times))
    assert slowest - 0.051 <= figure <= fastest + 0.051
