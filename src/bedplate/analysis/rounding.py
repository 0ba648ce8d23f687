"""Figures as short as they can be told apart."""

from __future__ import annotations

import math

# Enough for every difference that repetitions can tell.
_DIGITS = 4


def rounded(value: float | None, digits: int = _DIGITS) -> float | None:
    """The value to so many significant digits; None for what is no finite number."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits - 1}e}")
    if not math.isfinite(short):
        return value
    return int(short) if short == int(short) and abs(short) < 1e15 else short
