"""Checkpoints and complaints from PostgreSQL's log.

The log is written with `log_checkpoints = on` and `log_line_prefix = '%n %p %b '`: seconds since the
epoch with milliseconds, process id, backend type. A line that does not begin so continues the one
before it. Texts: LogCheckpointStart and LogCheckpointEnd of src/backend/access/transam/xlog.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bedplate.figures.server_log import (
    END_OF_RECOVERY,
    REQUESTED,
    TIMED,
    Checkpoint,
    Complaint,
    ServerLog,
    ServerLogReader,
)

_LINE = re.compile(r"(\d{9,}\.\d{3}) (\d+) ([a-z][a-z ]*?) (LOG|WARNING|ERROR|FATAL|PANIC):  (.*)")
_STARTING = re.compile(r"(?:checkpoint|restartpoint) starting:(.*)")
_COMPLETE = re.compile(r"(?:checkpoint|restartpoint) complete: ")
_COMPLAINTS = frozenset({"ERROR", "FATAL", "PANIC"})

# A run with failing transactions logs one error for each; the first ones say it all.
_COMPLAINTS_MAX = 1000

# The severity is LOG, yet it is the end of every session: a crash of any server process.
_CRASH = re.compile(r".* was terminated by signal \d+|terminating any other active server processes")


def read_server_log(path: Path) -> ServerLog:
    """Read a log line by line; OSError if it cannot be read. Foreign lines are passed over."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return parse_server_log(file)


def parse_server_log(lines: Iterable[str]) -> ServerLog:
    """The checkpoints and complaints in the lines of a log."""
    checkpoints: list[Checkpoint] = []
    complaints: list[Complaint] = []
    for wall_s, severity, text in _entries(lines):
        starting = _STARTING.match(text)
        if starting:
            checkpoints.append(Checkpoint(_kind(starting[1]), wall_s, None))
        elif _COMPLETE.match(text):
            _close(checkpoints, wall_s)
        elif len(complaints) < _COMPLAINTS_MAX and (severity in _COMPLAINTS or _CRASH.match(text)):
            complaints.append(Complaint(wall_s, severity if severity in _COMPLAINTS else "CRASH", text))
    return ServerLog(tuple(checkpoints), tuple(complaints))


def _entries(lines: Iterable[str]) -> Iterator[tuple[float, str, str]]:
    for line in lines:
        found = _LINE.match(line.rstrip("\n"))
        if found:
            yield float(found[1]), found[4], found[5]


def _kind(flags: str) -> str:
    words = flags.split()
    if "end-of-recovery" in words:
        return END_OF_RECOVERY
    # `wal` is a checkpoint because max_wal_size was near: asked for by volume, not by the clock.
    return TIMED if "time" in words else REQUESTED


def _close(checkpoints: list[Checkpoint], wall_s: float) -> None:
    """One checkpoint runs at a time, so an end belongs to the last start; one without is not counted."""
    if checkpoints and checkpoints[-1].end_wall_s is None:
        last = checkpoints.pop()
        checkpoints.append(Checkpoint(last.kind, last.start_wall_s, wall_s))


SERVER_LOG: ServerLogReader = read_server_log
