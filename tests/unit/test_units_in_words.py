"""Amounts as a person reads them: never a power of ten."""

from __future__ import annotations

import pytest

from bedplate.units import format_milliseconds


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
