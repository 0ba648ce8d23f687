from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.figures.counters import cpu_s_per_gib
from bedplate.units import GIB, MIB


def test_is_the_cpu_seconds_for_each_gibibyte() -> None:
    assert 2.0 == cpu_s_per_gib(1.0, 512 * MIB)


def test_nothing_moved_has_no_price_even_where_cpu_was_used() -> None:
    assert cpu_s_per_gib(3.0, 0) is None


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_what_is_no_amount_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="cpu_s"):
        cpu_s_per_gib(wrong, GIB)
    with pytest.raises(ValueError, match="size_bytes"):
        cpu_s_per_gib(1.0, wrong)


@settings(deadline=None)
@given(st.floats(1e-3, 1e6), st.integers(1, 2**50), st.integers(2, 1000))
def test_more_bytes_for_the_same_cpu_cost_less_in_proportion(cpu_s: float, size: int, times: int) -> None:
    one, many = cpu_s_per_gib(cpu_s, size), cpu_s_per_gib(cpu_s, size * times)
    assert one is not None
    assert many is not None
    assert many * times == pytest.approx(one)
