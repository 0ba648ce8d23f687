"""One progress display: what runs, live tps, done and left, and when it will be over.

On a terminal it is redrawn in place; elsewhere each visit is one line, fit for a log.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol, Self

from bedplate.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

    from rich.console import RenderableType

    from bedplate.model.levels import Scalar

_BARS = " ▁▂▃▄▅▆▇█"


class Display(Protocol):
    """What the study tells whoever watches."""

    def note(self, text: str) -> None:
        """Something worth a line of its own."""
        ...

    def preparing(self, what: str, done: int, total: int) -> None:
        """A build or a download on the way."""
        ...

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:
        """A visit starts; `seconds_left` is the estimate for the whole study."""
        ...

    def event(self, event: Mapping[str, Scalar]) -> None:
        """What the visit says while it lives (visit/events.py)."""
        ...

    def visit_ends(self, outcome: str, seconds: float, summary: str) -> None:
        """A visit is in the study; `summary` has its figures or its reasons."""
        ...


class LineDisplay:
    """One line for each thing that happened: for logs and pipes."""

    def note(self, text: str) -> None:
        """A line."""
        print(text, flush=True)

    def preparing(self, what: str, done: int, total: int) -> None:
        """Only the end is worth a line."""
        if done >= total:
            print(f"{what}: done", flush=True)

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:
        """A line with the time left."""
        print(f"[{number}/{of}] {label} … about {format_duration(seconds_left)} left in all", flush=True)

    def event(self, event: Mapping[str, Scalar]) -> None:
        """Steps and seconds are for a terminal."""

    def visit_ends(self, outcome: str, seconds: float, summary: str) -> None:
        """A line with the outcome."""
        print(f"        {outcome} in {format_duration(seconds)}  {summary}", flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None


class LiveDisplay:
    """A few lines at the bottom of a terminal, redrawn in place; finished visits scroll above them."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        self._console = Console(highlight=False)
        self._live = Live(
            console=self._console, get_renderable=self._draw, refresh_per_second=4, transient=True
        )
        self._label = ""
        self._number = self._of = 0
        self._left_until: float | None = None
        self._what = ""
        self._fraction: float | None = None
        self._tps: deque[int] = deque(maxlen=40)
        self._latency = ""
        self._second = 0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def note(self, text: str) -> None:
        """A line above the display."""
        self._console.print(text, markup=False)

    def preparing(self, what: str, done: int, total: int) -> None:
        """A bar for a build or a download."""
        self._what = what
        self._fraction = done / total if total else None

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:
        """A new visit under the bar."""
        self._label, self._number, self._of = label, number, of
        self._left_until = time.monotonic() + seconds_left
        self._tps.clear()
        self._latency, self._what, self._fraction, self._second = "", "", None, 0

    def event(self, event: Mapping[str, Scalar]) -> None:
        """What happens now, and how fast."""
        kind = event.get("event")
        if kind == "step":
            self._what, self._fraction, self._second = str(event["step"]), None, 0
        elif kind == "image":
            done, of = float(event["done_bytes"]), float(event["of_bytes"])
            self._what = f"writing the image ({format_size(of)})"
            self._fraction = done / of if of else None
        elif kind == "second":
            self._second += 1
            phase_s = float(event["phase_s"])
            self._what = f"{event['run']}, {'warm-up' if event['phase'] == 'warmup' else 'measuring'}"
            self._fraction = min(1.0, self._second / phase_s) if phase_s else None
            self._tps.append(int(event["transactions"]))
            latency = event.get("latency_ms_mean")
            self._latency = "" if latency is None else f"{float(latency):.2f} ms"

    def visit_ends(self, outcome: str, seconds: float, summary: str) -> None:
        """One line that stays."""
        mark = "✓" if outcome == "completed" else "✗"
        self._console.print(
            f"{mark} {self._number:>3}/{self._of} {self._label}  {format_duration(seconds)}  {summary}",
            markup=False,
        )

    def _draw(self) -> RenderableType:
        from rich.text import Text  # noqa: PLC0415

        text = Text()
        if self._of:
            left = "" if self._left_until is None else self._left(self._left_until)
            text.append(f"visit {self._number} of {self._of}  {bar((self._number - 1) / self._of)}  {left}\n")
            text.append(f"  {self._label}\n", style="bold")
        text.append(f"  {self._what}")
        if self._fraction is not None:
            text.append(f"  {bar(self._fraction)}")
        if self._tps:
            text.append(f"\n  {self._tps[-1]:>8} tps  {self._latency:>10}  {sparkline(self._tps)}")
        return text

    @staticmethod
    def _left(until: float) -> str:
        seconds = until - time.monotonic()
        return f"about {format_duration(seconds)} left" if seconds > 0 else "longer than expected"


def display_for_terminal() -> AbstractContextManager[Display]:
    """The live one where a person watches."""
    return LiveDisplay() if sys.stdout.isatty() else LineDisplay()


def bar(fraction: float, width: int = 24) -> str:
    """A bar of fixed width: `━━━━━━╌╌╌╌`."""
    done = round(max(0.0, min(1.0, fraction)) * width)
    return "━" * done + "╌" * (width - done)


def sparkline(values: deque[int]) -> str:
    """The course of the last seconds, scaled to its own maximum."""
    top = max(values, default=0)
    if top == 0:
        return ""
    return "".join(_BARS[round(value / top * (len(_BARS) - 1))] for value in values)
