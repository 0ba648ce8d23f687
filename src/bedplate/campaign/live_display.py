"""The progress display on a terminal: a few lines at its bottom, finished visits scroll above them.

✓   1/8  ext4 barrier · repetition 1     58 s  read-only 21,334 tps, read-write 812 tps

visit 2 of 8  ━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  about 6 min 40 s left
xfs · repetition 1
read-write: measuring  ━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌  20 of 40 s
   1,204 tps   3.32 ms  ▅▅▆▆▅▅▂▁▂▅▆▆▆▇▆▆▆█▆▆
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from bedplate.campaign.display import printable
from bedplate.campaign.terminal_console import TerminalConsole
from bedplate.units import format_duration, format_size

if TYPE_CHECKING:
    from bedplate.model.levels import Scalar

_BARS = "▁▂▃▄▅▆▇█"
_COURSE_SECONDS = 40

# A step shows its age from here on, so that a person sees that it is alive.
_AGE_SHOWN_S = 2.0

# What a visit calls its steps, and what it is doing then.
_STEPS = {
    "disks": "writing the guest's disks",
    "boot": "booting the guest",
    "hand-over": "handing the visit over to the guest",
    "preflight": "looking whether all is there",
    "scratch device": "preparing the scratch device",
    "control group": "making the control group",
    "mkfs": "making the file system",
    "read back": "reading back every option, counting flushes",
    "initdb": "initdb",
    "server start": "starting the server",
    "server read back": "reading back the server's settings",
    "load": "loading the data",
    "cold": "dropping what is cached: unmounting, mounting, starting the server",
    "stop": "stopping the server",
    "unmount": "unmounting",
    "leave": "interrupted: giving everything back",
    "check": "checking the file system (fsck)",
}

# How the items of a phase are shown (TPC-H's): `loading lineitem`, `query 14`; others by the phase's name.
_ITEMS = {
    "load": "loading {item}",
    "primary keys": "primary key {item}",
    "foreign keys": "foreign key {item}",
    "indexes": "index {item}",
    "analyze": "ANALYZE",
    "checkpoint": "CHECKPOINT",
    "queries": "query {item}",
}

_STYLES = {"completed": ("✓", "green"), "failed": ("✗", "red")}


class LiveDisplay:
    """Redrawn four times a second by a thread of its own; everything it shows is behind one lock."""

    def __init__(self, *, clock: Callable[[], float], console: Console | None = None) -> None:
        self._clock = clock
        self._console = console or TerminalConsole()
        self._lock = threading.Lock()
        self._started_s = clock()
        self._label = ""
        self._number = self._of = 0
        self._left_until_s: float | None = None
        self._tps: deque[int] = deque(maxlen=_COURSE_SECONDS)
        self._latency = ""
        self._fraction: float | None = None
        self._begin_step("")
        # Last, as it draws at once.
        self._live = Live(
            console=self._console, get_renderable=self.draw, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def note(self, text: str) -> None:
        """A line above the display."""
        self._console.print(printable(text), markup=False)

    def preparing(self, step: str, current: int, total: int) -> None:
        """A bar for a build or a download."""
        with self._lock:
            if step != self._what:
                self._begin_step(step)
            self._fraction = current / total if total else None

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:
        """A new visit under the bar."""
        with self._lock:
            if self._number == 0:
                # What was prepared before has no part in the share that is done.
                self._started_s = self._clock()
            self._label, self._number, self._of = printable(label), number, of
            self._left_until_s = self._clock() + seconds_left
            self._tps.clear()
            self._latency = ""
            self._begin_step("starting")

    def event(self, event: Mapping[str, Scalar]) -> None:
        """What happens now, and how fast."""
        with self._lock:
            kind = event.get("event")
            if kind == "step":
                self._step(str(event["step"]))
            elif kind == "image":
                done, of = float(event["done_bytes"]), float(event["of_bytes"])
                self._what = f"writing the image ({format_size(of)})"
                self._fraction = done / of if of else None
            elif kind == "second":
                self._second_of_run(event)
            elif kind == "item":
                self._item_of_run(event)

    def visit_ends(self, outcome: str, seconds: float, result_line: str) -> None:
        """One line that stays."""
        mark, style = _STYLES.get(outcome, ("·", "yellow"))
        width = len(str(self._of))
        line = Text(f"{mark} ", style=style)
        line.append(f"{self._number:>{width}}/{self._of}  ", style="dim")
        line.append(f"{self._label}  ", style="default")
        line.append(f"{format_duration(seconds)}  ", style="dim")
        line.append(printable(result_line), style="default" if outcome == "completed" else style)
        self._console.print(line)

    def draw(self) -> Group:
        """What stands at the bottom now; no line of it is longer than the terminal is wide."""
        with self._lock:
            lines = [*self._draw_study(), *self._draw_step(), *self._draw_course()]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _begin_step(self, step: str) -> None:
        self._what = printable(step)
        self._since_s = self._clock()
        self._fraction = None
        self._count = ""
        self._ages = False
        self._second, self._phase = 0, ""

    def _step(self, name: str) -> None:
        if name.startswith("run "):
            self._begin_step(f"{name.removeprefix('run ')}: getting ready")
        else:
            self._begin_step(_STEPS.get(name, name))
            self._tps.clear()

    def _second_of_run(self, event: Mapping[str, Scalar]) -> None:
        phase = f"{event['run']}: {'warm-up' if event['phase'] == 'warmup' else 'measuring'}"
        if phase != self._phase:
            self._begin_step(phase)
            self._phase = phase
        self._second += 1
        phase_s = float(event["phase_s"])
        self._fraction = self._second / phase_s if phase_s else None
        self._count = f"{self._second} of {format_duration(phase_s)}" if phase_s else f"{self._second} s"
        self._tps.append(int(event["transactions"]))
        latency = event.get("latency_ms_mean")
        self._latency = "" if latency is None else f"{float(latency):.2f} ms"

    def _item_of_run(self, event: Mapping[str, Scalar]) -> None:
        phase, item = str(event["phase"]), str(event["item"])
        if phase in _ITEMS:
            told = _ITEMS[phase].format(item=item)
        else:
            told = f"{phase}, query {item}" if item.isdigit() else f"{phase} {item}"
        self._begin_step(f"{event['run']}: {told}".rstrip())
        done, of = int(event["done"]), int(event["of"])
        # The one that is under way is not done yet.
        self._fraction = max(0, done - 1) / of if of else None
        self._count = f"{done} of {of}"
        self._ages = True

    def _draw_study(self) -> list[Text]:
        if not self._of:
            return []
        now_s = self._clock()
        line = Text(f"visit {self._number} of {self._of}  ")
        until_s = self._left_until_s
        if until_s is None or until_s <= now_s:
            done, left = (self._number - 1) / self._of, "longer than expected"
        else:
            spent_s = now_s - self._started_s
            done = spent_s / (spent_s + until_s - now_s)
            left = f"about {format_duration(until_s - now_s)} left"
        line.append(bar(done), style="cyan").append(f"  {left}")
        # Apart from the visits that stand above.
        return [Text(), line, Text(self._label, style="bold")]

    def _draw_step(self) -> list[Text]:
        if not self._what:
            return []
        line = Text(self._what)
        age_s = self._clock() - self._since_s
        if self._fraction is not None:
            line.append("  ").append(bar(self._fraction), style="cyan").append(f"  {self._count}".rstrip())
        # A second of a run tells that it is alive by its own count.
        if age_s >= _AGE_SHOWN_S and (self._fraction is None or self._ages):
            line.append(f"  {format_duration(age_s)}", style="dim")
        return [line]

    def _draw_course(self) -> list[Text]:
        if not self._tps:
            return []
        line = Text(f"{self._tps[-1]:>9,} tps  {self._latency:>10}  ")
        return [line.append(sparkline(self._tps), style="green")]


def bar(fraction: float, width: int = 24) -> str:
    """A bar of fixed width: `━━━━━━╌╌╌╌`; full only when all is done, empty only when nothing is."""
    done = round(max(0.0, min(1.0, fraction)) * width)
    if 0.0 < fraction < 1.0:
        done = max(1, min(width - 1, done))
    return "━" * done + "╌" * (width - done)


def sparkline(values: Sequence[float]) -> str:
    """The course of the last seconds from zero to its own maximum; a second at zero is a gap."""
    top = max(values, default=0)
    if top <= 0:
        return " " * len(values)
    return "".join(
        " " if value <= 0 else _BARS[min(len(_BARS) - 1, int(value / top * len(_BARS)))] for value in values
    )
