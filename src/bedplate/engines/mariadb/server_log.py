"""Complaints from MariaDB's log. InnoDB's checkpoints are fuzzy and stand in no log.

A line begins with date and time, in UTC as bedplate starts the server so, a thread's number and the severity in brackets.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bedplate.figures.server_log import Complaint, ServerLog

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bedplate.figures.server_log import ServerLogReader

_LINE = re.compile(r"(\d{4}-\d\d-\d\d) +(\d{1,2}:\d\d:\d\d) (?:\d+ )?\[(\w+)\] (.*)")
# `261123 14:35:35 [ERROR] mysqld got signal 11 ;` is what the handler of a crash says, in an older form.
_CRASH = re.compile(r"(\d{6}) +(\d{1,2}:\d\d:\d\d) \[ERROR\] (.*got signal \d+.*)")
_COMPLAINTS_MAX = 1000


def read_server_log(path: Path) -> ServerLog:
    """Read a log line by line; OSError if it cannot be read. Foreign lines are passed over."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return parse_server_log(file)


def parse_server_log(lines: Iterable[str]) -> ServerLog:
    """The errors in the lines of a log."""
    found = (complaint for line in lines if (complaint := _complaint(line.rstrip("\n"))) is not None)
    return ServerLog(
        (), tuple(complaint for _, complaint in zip(range(_COMPLAINTS_MAX), found, strict=False))
    )


def _complaint(line: str) -> Complaint | None:
    crash = _CRASH.match(line)
    if crash:
        return Complaint(_wall_s(crash[1], "%y%m%d", crash[2]), "CRASH", crash[3])
    found = _LINE.match(line)
    if found and found[3].upper() == "ERROR":
        return Complaint(_wall_s(found[1], "%Y-%m-%d", found[2]), "ERROR", found[4])
    return None


def _wall_s(day: str, form: str, time: str) -> float:
    return datetime.strptime(f"{day} {time}", f"{form} %H:%M:%S").replace(tzinfo=UTC).timestamp()


SERVER_LOG: ServerLogReader = read_server_log
