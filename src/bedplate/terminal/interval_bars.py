"""Intervals as a line of characters: where they lie beside equality, on a scale that all rows of a table share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bedplate.analysis.wording import number
from bedplate.statistics.comparison import EstimateKind

if TYPE_CHECKING:
    from collections.abc import Iterable

_EQUAL = "│"
_POINT = "●"
_LINE = "─"
# Beyond this factor a row is an arrow: one wild cell would press all others into the middle.
_RATIO_MAX = 10.0
_RATIO_MIN = 1.05


class Span(NamedTuple):
    """An estimate with its bounds; one bound is None where that side is open, both where there is no interval."""

    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BarScale:
    """Half of a bar's width on the scale of the arithmetic: natural logarithms for ratios."""

    kind: EstimateKind
    half: float

    @property
    def words(self) -> str:
        """What the ends of a bar are: `1/1.5 to 1.5`."""
        if self.kind is EstimateKind.RATIO:
            return f"1/{math.exp(self.half):.3g} to {math.exp(self.half):.3g}"
        end = f"{self.half:.3g}" if self.half < 999.5 else number(self.half)
        return f"-{end} to {end}"


def bar_scale(kind: EstimateKind, spans: Iterable[Span]) -> BarScale | None:
    """The smallest scale that holds every estimate and bound, up to a factor of 10; None where there is none."""
    found = [span for span in spans if span.estimate is not None]
    if not found:
        return None
    ends = [abs(moved) for span in found for value in span if (moved := _moved(kind, value)) is not None]
    largest = max(ends, default=0.0)
    if kind is EstimateKind.RATIO:
        return BarScale(
            kind,
            math.log(_rounded_up(math.exp(min(max(largest, math.log(_RATIO_MIN)), math.log(_RATIO_MAX))))),
        )
    return BarScale(kind, largest or 1.0)


def interval_bar(span: Span, scale: BarScale, *, columns: int) -> str:
    """`   ──●─│    `: as many characters as `columns`, an odd number; arrows for what lies beyond the scale."""
    middle = columns // 2
    text = [" "] * columns
    text[middle] = _EQUAL
    point = _moved(scale.kind, span.estimate)
    if point is None:
        return "".join(text)
    low, high = (_moved(scale.kind, bound) for bound in (span.low, span.high))
    if low is not None or high is not None:
        first = -scale.half if low is None else low
        last = scale.half if high is None else high
        for at in range(_column(first, scale, middle), _column(last, scale, middle) + 1):
            text[at] = "┼" if at == middle else _LINE
    text[_column(point, scale, middle)] = _POINT
    if point < -scale.half or (low is not None and low < -scale.half * 1.001):
        text[0] = "◂"
    if point > scale.half or (high is not None and high > scale.half * 1.001):
        text[-1] = "▸"
    return "".join(text)


def _moved(kind: EstimateKind, value: float | None) -> float | None:
    if value is None or kind is EstimateKind.DIFFERENCE:
        return value
    return math.log(value) if value > 0 else None


def _column(value: float, scale: BarScale, middle: int) -> int:
    share = min(1.0, max(-1.0, value / scale.half))
    return middle + round(share * middle)


def _rounded_up(ratio: float) -> float:
    """The next ratio that reads well: 1.1, 1.25, 1.5, 2, 3, 5, 10."""
    return next((end for end in (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0) if ratio <= end), _RATIO_MAX)
