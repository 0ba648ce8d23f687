"""What TPC-H takes on a disk is never less than what was measured, and not much more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.workloads.tpch.model import database_bytes, temporary_bytes, tpch_data_bytes

KIB = 1024
SCALE_FACTORS = st.floats(0.01, 3000)


@pytest.mark.parametrize(
    ("scale_factor", "measured"),
    [(0.01, 10_670_284), (0.1, 108_727_010), (1, 1_109_675_030), (3, 3_366_102_646)],
)
def test_files_take_what_the_generator_made(scale_factor: float, measured: int) -> None:
    assert measured <= tpch_data_bytes(scale_factor) <= 1.05 * measured


# pg_database_size of PostgreSQL 18.6 with all keys and indexes.
@pytest.mark.parametrize(
    ("scale_factor", "block_size_bytes", "measured"),
    [
        (0.01, 8 * KIB, 27_981_503),
        (0.1, 8 * KIB, 194_655_935),
        (0.1, 4 * KIB, 195_700_415),
        (1, 8 * KIB, 1_855_493_823),
    ],
)
def test_a_database_takes_what_the_server_said(
    scale_factor: float, block_size_bytes: int, measured: int
) -> None:
    assert measured <= database_bytes(scale_factor, block_size_bytes) <= 1.05 * measured


def test_smaller_pages_take_more() -> None:
    sizes = [database_bytes(1, kib * KIB) for kib in (32, 16, 8, 4, 2, 1)]
    assert sorted(sizes) == sizes
    assert 1.05 < sizes[-1] / sizes[2] < 1.3


def test_wide_identifiers_are_reckoned_above_scale_factor_300() -> None:
    integers, wide = (database_bytes(scale, 8 * KIB) / scale for scale in (300, 301))
    assert 1.05 < wide / integers < 1.3


@given(SCALE_FACTORS, st.floats(1.001, 10))
@settings(deadline=None)
def test_more_data_take_more_room(scale_factor: float, times: float) -> None:
    assert tpch_data_bytes(scale_factor) < tpch_data_bytes(scale_factor * times)
    assert database_bytes(scale_factor, 8 * KIB) < database_bytes(scale_factor * times, 8 * KIB)
    assert temporary_bytes(scale_factor) < temporary_bytes(scale_factor * times)


@pytest.mark.parametrize("scale_factor", [0, -1, float("inf"), float("nan")])
def test_no_scale_factor_is_an_error_that_says_so(scale_factor: float) -> None:
    for question in (tpch_data_bytes, temporary_bytes):
        with pytest.raises(ValueError, match="is not a positive number"):
            question(scale_factor)
    with pytest.raises(ValueError, match="is not a positive number"):
        database_bytes(scale_factor, 8 * KIB)
