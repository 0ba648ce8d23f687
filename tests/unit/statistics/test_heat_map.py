from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.model.figure import Scale
from bedplate.statistics.heat_map import CommonScale, average_map, common_scale

SQUARES = [("1 KiB", "8 KiB"), ("4 KiB", "8 KiB")]


def test_only_complete_variants_are_averaged() -> None:
    maps = {
        "ext4": {SQUARES[0]: 100.0, SQUARES[1]: 400.0},
        "xfs": {SQUARES[0]: 400.0, SQUARES[1]: 100.0},
        "btrfs": {SQUARES[1]: 9_000.0},
    }
    average = average_map(maps, SQUARES, Scale.RATIO)
    assert (2, ("ext4", "xfs"), ("btrfs",)) == (average.n, average.used, average.left_out)
    assert [pytest.approx(200.0), pytest.approx(200.0)] == list(average.values.values())


def test_without_a_complete_variant_there_is_no_average() -> None:
    maps = {"ext4": {SQUARES[0]: 1.0}, "xfs": {SQUARES[1]: 1.0}}
    average = average_map(maps, SQUARES, Scale.RATIO)
    assert (0, {}, ("ext4", "xfs")) == (average.n, average.values, average.left_out)


def test_zeros_and_proportions_are_averaged_by_their_mean() -> None:
    maps = {"a": {SQUARES[0]: 0.0}, "b": {SQUARES[0]: 1.0}}
    for scale in (Scale.RATIO, Scale.PROPORTION):
        assert {SQUARES[0]: 0.5} == average_map(maps, SQUARES[:1], scale).values


def test_far_spread_ratios_share_a_logarithmic_scale() -> None:
    assert CommonScale(1.0, 100.0, logarithmic=True) == common_scale([100.0, 1.0], Scale.RATIO)
    assert CommonScale(50.0, 100.0, logarithmic=False) == common_scale([100.0, 50.0], Scale.RATIO)
    assert CommonScale(0.0, 100.0, logarithmic=False) == common_scale([100.0, 0.0], Scale.RATIO)
    assert common_scale([], Scale.RATIO) is None


@given(st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=1, max_size=9))
def test_every_value_lies_on_the_scale(values: list[float]) -> None:
    scale = common_scale(values, Scale.RATIO)
    assert scale is not None
    assert all(scale.low <= value <= scale.high for value in values)
