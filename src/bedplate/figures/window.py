"""The measured window on the clock: when transactions ran, and which seconds of the course it covers.

A transaction log carries whole seconds of the wall clock, so the course stands on that grid:
its second 0 is the wall-clock second in which `measure` began. The first and the last second are
covered in part only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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
