from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.figures.samples import arrange, clock_step_s, levels, rates, read_samples

counters = st.lists(st.tuples(st.floats(0.05, 2.5), st.floats(0, 1e6)), min_size=2, max_size=60)


@given(counters, st.floats(0, 1))
def test_resampling_onto_seconds_conserves_the_total(steps: list[tuple[float, float]], start: float) -> None:
    moments = start + np.cumsum([wait for wait, _ in steps])
    counts = np.cumsum([growth for _, growth in steps])
    edges = np.arange(np.floor(moments[0]), np.ceil(moments[-1]) + 1)
    covered = np.clip(edges[1:], None, moments[-1]) - np.clip(edges[:-1], moments[0], None)
    found = rates(moments, counts, edges)
    known = ~np.isnan(found)
    # What the two edge seconds keep for themselves is what they are covered too little to say.
    lost = np.interp(edges[1:], moments, counts) - np.interp(edges[:-1], moments, counts)
    total = float((found * covered)[known].sum() + lost[~known].sum())
    assert total == pytest.approx(counts[-1] - counts[0], rel=1e-9, abs=1e-6)
    assert (~known)[1:-1].sum() == 0


def test_a_constant_rate_stays_constant_whatever_moments_it_was_sampled_at() -> None:
    moments = np.array([0.2, 1.1, 2.4, 3.0, 4.9, 6.0])
    found = rates(moments, 7 * moments, np.arange(0.0, 7.0))
    np.testing.assert_allclose(found, 7.0)


def test_seconds_outside_of_the_samples_are_not_known() -> None:
    moments = np.array([2.0, 3.0, 4.4])
    found = rates(moments, moments, np.arange(0.0, 6.0))
    assert [True, True, False, False, True] == np.isnan(found).tolist()


def test_a_gap_is_not_filled_with_its_average() -> None:
    moments = np.array([0.0, 1.0, 2.0, 8.0, 9.0, 10.0])
    found = rates(moments, moments, np.arange(0.0, 11.0))
    assert [False, False, *[True] * 6, False, False] == np.isnan(found).tolist()


def test_a_counter_that_ran_backwards_is_not_a_negative_rate() -> None:
    moments = np.arange(5.0)
    found = rates(moments, np.array([10.0, 20.0, 3.0, 5.0, 7.0]), moments)
    assert [False, True, False, False] == np.isnan(found).tolist()


def test_a_counter_that_comes_up_later_is_unknown_before() -> None:
    moments = np.arange(5.0)
    found = rates(moments, np.array([np.nan, np.nan, 1.0, 2.0, 3.0]), moments)
    assert [True, True, False, False] == np.isnan(found).tolist()


@given(st.integers(0, 1))
def test_fewer_than_two_samples_give_nothing(count: int) -> None:
    moments = np.arange(float(count))
    assert np.isnan(rates(moments, moments, np.arange(4.0))).all()


def test_a_gauge_is_taken_at_the_middle_of_a_second() -> None:
    moments = np.arange(4.0)
    found = levels(moments, 10 * moments, np.arange(-1.0, 5.0))
    np.testing.assert_array_equal(found, [np.nan, 5.0, 15.0, 25.0, np.nan])


@given(
    st.lists(st.floats(0.9, 1.1), min_size=2, max_size=40),
    st.floats(0.11, 3600),
    st.sampled_from((-1, 1)),
    st.integers(0, 1000),
)
def test_a_step_of_the_wall_clock_is_found_and_measured(
    waits: list[float], size: float, sign: int, place: int
) -> None:
    step, at = size * sign, place % (len(waits) - 1)
    moments = np.cumsum(waits)
    rows = [(m, 1e9 + m + (step if i > at else 0), {"x": 0.0}) for i, m in enumerate(moments.tolist())]
    assert clock_step_s(arrange(rows)) == pytest.approx(step, abs=1e-4)


def test_slewing_is_no_step() -> None:
    rows = [(float(i), 1e9 + i * (1 + 500e-6), {"x": 0.0}) for i in range(600)]
    assert clock_step_s(arrange(rows)) is None


def sample(at: float, **values: float) -> str:
    return json.dumps({"monotonic_s": at, "wall_s": 1e9 + at, "phase": "measure", "values": values}) + "\n"


def test_a_line_cut_off_by_a_kill_is_left_out(tmp_path: Path) -> None:
    course = tmp_path / "course.jsonl"
    course.write_text(sample(1, x=1) + sample(2, x=2) + sample(3, x=3)[:-20])
    assert [1.0, 2.0] == read_samples(course).monotonic_s.tolist()


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    course = tmp_path / "course.jsonl"
    course.write_text(sample(1, x=1) + "{}\n" + sample(3, x=3))
    with pytest.raises(ValueError, match="line 2 is not a sample"):
        read_samples(course)


def test_a_name_that_is_absent_in_one_sample_is_not_zero_there() -> None:
    found = arrange([(1.0, 1.0, {"a": 1.0}), (2.0, 2.0, {"a": 2.0, "b": 5.0})])
    np.testing.assert_array_equal(found.values["b"], [np.nan, 5.0])
