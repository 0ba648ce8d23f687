"""Amounts as a person reads them: never a power of ten."""

from __future__ import annotations

import pytest

from bedplate.units import (
    GIB,
    KIB,
    MIB,
    TIB,
    asked_percent,
    format_duration,
    format_milliseconds,
    format_size,
)


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0.2, "0.2 ms"),
        (86.62, "86.6 ms"),
        (999.4, "999 ms"),
        (999.7, "1 s"),
        (1440.0, "1.44 s"),
        (72_000.0, "72 s"),
    ],
)
def test_milliseconds_have_three_digits_and_seconds_above_a_thousand(milliseconds: float, words: str) -> None:
    assert words == format_milliseconds(milliseconds)


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (8 * KIB, "8 KiB"),
        (1.5 * GIB, "1.5 GiB"),
        (999 * MIB, "999 MiB"),
        (1000 * MIB, "1000 MiB"),
        # A machine of 1 TiB says so much.
        (1007.6 * GIB, "1008 GiB"),
        (1023 * KIB, "1023 KiB"),
        (2000 * TIB, "2000 TiB"),
    ],
)
def test_no_size_has_an_exponent(size_bytes: float, words: str) -> None:
    assert words == format_size(size_bytes)


def test_a_share_that_was_asked_for_keeps_its_digits() -> None:
    assert ["2.5 %", "7 %", "0.1 %"] == [asked_percent(share) for share in (0.025, 0.07, 0.001)]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.04, "0.04 s"),
        (0.42, "0.4 s"),
        (0.949, "0.9 s"),
        (0.96, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (245, "4 min 05 s"),
        (3599.6, "1 h 00 min"),
        (7800, "2 h 10 min"),
    ],
)
def test_a_duration_has_the_units_of_the_person_who_reads(seconds: float, shown: str) -> None:
    assert shown == format_duration(seconds)
