"""The progress of a search: its visits are counted on from block to block, and what is left is its budget."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.campaign.display import Display
    from bedplate.model.levels import Scalar


class SearchDisplay:
    """Shows the visits of one step on the display of the whole search.

    `begun` visits were scheduled before it, `seconds_left` of the budget are left when it begins.
    """

    def __init__(
        self,
        display: Display,
        *,
        begun: int,
        seconds_left: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._display = display
        self._begun = begun
        self._clock = clock
        self._ends_s = clock() + seconds_left

    def note(self, text: str) -> None:
        """A line of its own."""
        self._display.note(text)

    def preparing(self, what: str, done: int, total: int) -> None:
        """A build or a download on the way."""
        self._display.preparing(what, done, total)

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:  # noqa: ARG002 -- of one step
        """A visit starts; a search takes its budget at most, and often less."""
        left_s = max(self._ends_s - self._clock(), 0.0)
        self._display.visit_begins(
            label, number=self._begun + number, of=self._begun + of, seconds_left=left_s
        )

    def event(self, event: Mapping[str, Scalar]) -> None:
        """What the visit says while it runs."""
        self._display.event(event)

    def visit_ends(self, outcome: str, seconds: float, summary: str) -> None:
        """A visit is in the study."""
        self._display.visit_ends(outcome, seconds, summary)
