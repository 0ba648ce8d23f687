"""One progress display: what runs, live tps, done and left, and when it will be over.

On a terminal it is redrawn in place; elsewhere each visit is one line, fit for a log.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, Self

from bedplate.units import format_duration

if TYPE_CHECKING:
    from bedplate.model.levels import Scalar


class Display(Protocol):
    """What the study tells whoever watches."""

    def note(self, text: str) -> None:
        """Something worth a line of its own."""

    def preparing(self, step: str, current: int, total: int) -> None:
        """A build or a download on the way."""

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:
        """A visit starts; `seconds_left` is the estimate for the whole study."""

    def event(self, event: Mapping[str, Scalar]) -> None:
        """What the visit says while it lives (visit/life.py)."""

    def visit_ends(self, outcome: str, seconds: float, result_line: str) -> None:
        """A visit is in the study; `result_line` has its figures or its reasons."""


class LineDisplay:
    """One line for each thing that happened: for logs and pipes.

    A reader that went away (`bedplate run … | head`) is no reason to stop a study of days.
    """

    def __init__(self) -> None:
        self._prepared = ""
        self._fifths = 0

    def note(self, text: str) -> None:
        """A line."""
        self._say(text)

    def preparing(self, step: str, current: int, total: int) -> None:
        """The beginning of each step is a line, and each fifth of a long one: minutes without a word look like a program that hangs."""
        fifths = 5 * current // total if total else 0
        if step != self._prepared:
            self._prepared, self._fifths = step, fifths
            self._say(step)
        elif self._fifths < fifths < 5:
            self._fifths = fifths
            self._say(f"{step}: {100 * current // total} %")

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:
        """A line with the time left."""
        self._say(f"[{number}/{of}] {label} … about {format_duration(seconds_left)} left in all")

    def event(self, event: Mapping[str, Scalar]) -> None:
        """Steps and seconds are for a terminal."""

    def visit_ends(self, outcome: str, seconds: float, result_line: str) -> None:
        """A line with the outcome."""
        self._say(f"        {outcome} in {format_duration(seconds)}  {result_line}".rstrip())

    def _say(self, text: str) -> None:
        try:
            print(printable(text), flush=True)
        except BrokenPipeError:
            silence_standard_output()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def display_for_terminal() -> AbstractContextManager[Display]:
    """The live one where a person watches."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return LineDisplay()
    from bedplate.campaign.live_display import LiveDisplay  # noqa: PLC0415

    return LiveDisplay(clock=time.monotonic)


def printable(text: str) -> str:
    """One line of text without what a terminal would obey; tools' messages come from outside."""
    return "".join(c if c.isprintable() else " " for c in text).rstrip()


def silence_standard_output() -> None:
    """Its reader is gone; what is still said must neither fail nor be reported as lost at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class SearchDisplay:
    """Shows the visits of one step on the display of the whole search.

    `offset` visits were scheduled before it, `seconds_left` of the budget are left when it begins.
    """

    def __init__(
        self,
        display: Display,
        *,
        offset: int,
        seconds_left: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._display = display
        self._begun = offset
        self._clock = clock
        self._ends_s = clock() + seconds_left

    def note(self, text: str) -> None:
        """A line of its own."""
        self._display.note(text)

    def preparing(self, step: str, current: int, total: int) -> None:
        """A build or a download on the way."""
        self._display.preparing(step, current, total)

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:  # noqa: ARG002 -- of one step
        """A visit starts; a search takes its budget at most, and often less."""
        left_s = max(self._ends_s - self._clock(), 0.0)
        self._display.visit_begins(
            label, number=self._begun + number, of=self._begun + of, seconds_left=left_s
        )

    def event(self, event: Mapping[str, Scalar]) -> None:
        """What the visit says while it runs."""
        self._display.event(event)

    def visit_ends(self, outcome: str, seconds: float, result_line: str) -> None:
        """A visit is in the study."""
        self._display.visit_ends(outcome, seconds, result_line)
