"""The measured window on the clock: when transactions ran, and which seconds of the course it covers.

pgbench's transaction log carries whole seconds of the wall clock, so the course stands on that grid:
its second 0 is the wall-clock second in which `measure` began. The first and the last second are
covered in part only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.figures.pgbench_output import PgbenchSummary
    from bedplate.model.visit import Phase


@dataclass(frozen=True)
class MeasuredWindow:
    """When transactions ran, in wall-clock seconds since the epoch.

    `origin` is the wall-clock second that is second 0 of the course.
    """

    start_wall_s: float
    end_wall_s: float

    @property
    def duration_s(self) -> float:
        """Its length in seconds."""
        return self.end_wall_s - self.start_wall_s

    @property
    def origin(self) -> int:
        """Second 0 of the course, as a second of the wall clock."""
        return math.floor(self.start_wall_s)

    @property
    def whole_seconds(self) -> range:
        """The seconds of the course that lie wholly inside."""
        return range(math.ceil(self.start_wall_s) - self.origin, math.floor(self.end_wall_s) - self.origin)

    def coverage(self, second: int) -> float:
        """Which share of a second of the course lies inside, from 0 to 1."""
        start = self.origin + second
        return max(0.0, min(self.end_wall_s, start + 1) - max(self.start_wall_s, start))


def phase_named(phases: Iterable[Phase], name: str) -> Phase | None:
    """The phase of that name, None where the run did not come to it."""
    return next((phase for phase in phases if phase.name == name), None)


def measured_window(phase: Phase, summary: PgbenchSummary | None) -> MeasuredWindow:
    """The window in which transactions ran.

    The phase also holds pgbench's start, its connecting, and the reading of the log's tail. pgbench
    knows better: it ran for transactions / tps after its connections stood. That is taken where it
    fits into the phase, else the whole phase. The length is of the monotonic clock either way, so
    that a stepped wall clock cannot stretch it.
    """
    length_s = phase.end_monotonic_s - phase.start_monotonic_s
    ran_s = summary.duration_s if summary is not None else None
    if ran_s is None or not 0 < ran_s <= length_s:
        return MeasuredWindow(phase.start_wall_s, phase.start_wall_s + length_s)
    connecting_ms = (summary.initial_connection_ms or 0.0) if summary is not None else 0.0
    start_s = phase.start_wall_s + min(connecting_ms / 1000, length_s - ran_s)
    return MeasuredWindow(start_s, start_s + ran_s)
