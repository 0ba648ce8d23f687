"""Checkpoints of the server's log as windows on the clock of a run, and as figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.server_log import TIMED
from bedplate.model.figure import Window
from bedplate.model.metrics import figure
from bedplate.model.reason import because

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.figures.server_log import Complaint, ServerLog
    from bedplate.model.figure import Figure

SERVER_LOG_UNREADABLE = because("server-log-unreadable", "the server's log could not be read")
_COUNTS = ("checkpoints_timed", "checkpoints_requested", "checkpoints_complete")


def checkpoint_windows(log: ServerLog, zero_wall_s: float, from_s: float, to_s: float) -> tuple[Window, ...]:
    """Checkpoints that overlap [`from_s`, `to_s`], both in seconds since `zero_wall_s`.

    One that ended after `to_s` has no end: it had not ended when the run did.
    """
    windows = []
    for checkpoint in log.checkpoints:
        start_s = checkpoint.start_wall_s - zero_wall_s
        end_s = None if checkpoint.end_wall_s is None else checkpoint.end_wall_s - zero_wall_s
        if start_s < to_s and (end_s is None or end_s > from_s):
            ended = end_s is not None and end_s <= to_s
            windows.append(Window(checkpoint.kind, start_s, end_s if ended else None))
    return tuple(windows)


def complaints_between(log: ServerLog, from_wall_s: float, to_wall_s: float) -> tuple[Complaint, ...]:
    """The server's errors in a stretch of wall-clock time."""
    return tuple(found for found in log.complaints if from_wall_s <= found.wall_s <= to_wall_s)


def checkpoint_figures(windows: tuple[Window, ...] | None, duration_s: float) -> Iterator[Figure]:
    """Checkpoints begun in the measured window by cause, and timed ones wholly inside it."""
    if windows is None:
        for metric in _COUNTS:
            yield figure(metric, None, reason=SERVER_LOG_UNREADABLE)
        return
    begun = [window for window in windows if 0 <= window.start_s < duration_s]
    timed = [window for window in begun if window.kind == TIMED]
    yield figure("checkpoints_timed", len(timed))
    yield figure("checkpoints_requested", len(begun) - len(timed))
    yield figure("checkpoints_complete", len(complete_timed(windows, duration_s)))


def complete_timed(windows: tuple[Window, ...], duration_s: float) -> tuple[Window, ...]:
    """Timed checkpoints that began and ended within the measured window."""
    return tuple(
        window
        for window in windows
        if window.kind == TIMED
        and window.start_s >= 0
        and window.end_s is not None
        and window.end_s <= duration_s
    )
