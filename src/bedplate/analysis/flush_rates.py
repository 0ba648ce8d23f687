"""How often fsync reaches a device: flushes per call, by device and pattern, over the visits of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.model.visit import VisitRecord

# In the order in which they are shown.
COUNTED = (
    ("data", "appending"),
    ("data", "overwriting"),
    ("journal", "appending"),
    ("journal", "overwriting"),
)


@dataclass(frozen=True)
class FlushRate:
    """Flushes per fsync of one device under one pattern; `smallest` and `largest` are of single visits."""

    device: str
    pattern: str
    calls: int
    flushes: int
    smallest: float
    largest: float

    @property
    def per_call(self) -> float:
        """Of all visits together."""
        return self.flushes / self.calls

    @property
    def text(self) -> str:
        """`1`, `0.98`, or `0–1` where visits disagree in what two digits show."""
        ends = (_short(self.smallest), _short(self.largest))
        return _short(self.per_call) if ends[0] == ends[1] else "–".join(ends)


def flush_rates(records: Iterable[VisitRecord]) -> tuple[FlushRate, ...]:
    """The rates of a cell from its visits; one that counted nothing says nothing."""
    counts = [count for record in records for count in record.flush_counts if count.calls]
    found = []
    for device, pattern in COUNTED:
        here = [count for count in counts if (count.device, count.pattern) == (device, pattern)]
        if here:
            rates = [count.flushes / count.calls for count in here]
            found.append(
                FlushRate(
                    device,
                    pattern,
                    calls=sum(count.calls for count in here),
                    flushes=sum(count.flushes for count in here),
                    smallest=min(rates),
                    largest=max(rates),
                )
            )
    return tuple(found)


def rate_text(rates: Iterable[FlushRate], device: str, pattern: str) -> str:
    """The rate as it is shown; `–` where none was counted, which is not zero."""
    return next((rate.text for rate in rates if (rate.device, rate.pattern) == (device, pattern)), "–")


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
