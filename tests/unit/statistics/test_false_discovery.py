"""Many comparisons: Benjamini & Hochberg against scipy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bedplate.statistics.false_discovery import discoveries, joint_confidence


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_discoveries_are_those_of_scipy(p_values: list[float]) -> None:
    adjusted = stats.false_discovery_control(p_values)
    # Exactly at the rate the two may round apart.
    if all(abs(p - 0.05) > 1e-9 for p in adjusted):
        assert sum(p <= 0.05 for p in adjusted) == int(discoveries(p_values))


def test_one_comparison_keeps_its_confidence() -> None:
    assert float(joint_confidence([0.3])) == pytest.approx(0.95)
    assert float(joint_confidence([0.001])) == pytest.approx(0.95)


def test_a_late_p_value_carries_the_earlier_ones_with_it() -> None:
    # 0.03 is above 2/4 x 5 %, but 0.035 is below 3/4 x 5 %.
    assert 3 == int(discoveries([0.03, 0.01, 0.035, 0.9]))
    assert 0 == int(discoveries([0.02, 0.2, 0.3, 0.9]))


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        discoveries([0.5, wrong])
