"""Complaints from MariaDB's log. InnoDB's checkpoints are fuzzy and stand in no log.

A line begins with date and time, in UTC as bedplate starts the server so, a thread's number and the severity in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bedplate.figures.counters import (
    Absent,
    Deltas,
    Divisors,
    FuzzyLog,
    ServerCounters,
    divide,
    per_transaction,
)
from bedplate.figures.server_log import Complaint, ServerLog, ServerLogReader
from bedplate.model.reason import because
from bedplate.units import KIB, MIB

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

_NO_PAGE_ASKED = because("nothing-asked", "the server asked for no page")
_NO_PAGE_SIZE = because("block-size-unknown", "the engine's page size is not in the record")


class MariadbCounters:
    """Names are those of the probe."""

    def formulas(self, deltas: Deltas, divisors: Divisors) -> Mapping[str, Callable[[], float]]:
        """Of the buffer pool, the log and the locks."""

        def grown(name: str) -> float:
            return deltas.growth(f"mariadb.{name}")

        def pages_mib(name: str) -> float:
            size = deltas.after.get("mariadb.page_size_bytes")
            if size is None:
                raise Absent(_NO_PAGE_SIZE)
            return grown(name) * size / MIB

        return {
            "buffer_pool_hit_ratio": lambda: (
                1 - divide(grown("buffer_pool_reads"), grown("buffer_pool_read_requests"), _NO_PAGE_ASKED)
            ),
            "buffer_pool_flushed_mib": lambda: pages_mib("buffer_pool_pages_flushed"),
            "buffer_pool_lru_flushed_mib": lambda: pages_mib("buffer_pool_pages_lru_flushed"),
            "buffer_pool_waits": lambda: grown("buffer_pool_wait_free"),
            "doublewrite_mib": lambda: pages_mib("dblwr_pages_written"),
            "wal_kib_per_transaction": lambda: per_transaction(grown("lsn_current") / KIB, divisors),
            "log_waits": lambda: grown("log_waits"),
            "data_syncs_per_transaction": lambda: per_transaction(grown("data_fsyncs"), divisors),
            "row_lock_waits": lambda: grown("row_lock_waits"),
            "row_lock_s": lambda: grown("row_lock_time") / 1000,
            "deadlocks": lambda: grown("deadlocks"),
        }

    def fuzzy(self, deltas: Deltas | None, samples: Sequence[Mapping[str, float]]) -> FuzzyLog:
        """By the log sequence number, and by the checkpoint age of each second."""
        known = [values for values in samples if values.get("mariadb.checkpoint_max_age")]
        return FuzzyLog(
            None if deltas is None else _turned_over(deltas),
            tuple(values["mariadb.checkpoint_age"] for values in known if "mariadb.checkpoint_age" in values),
            known[-1]["mariadb.checkpoint_max_age"] if known else None,
        )


def _turned_over(deltas: Deltas) -> float | None:
    size = deltas.after.get("mariadb.log_file_size_bytes")
    try:
        return deltas.growth("mariadb.lsn_current") / size if size else None
    except Absent:
        return None


COUNTER_FIGURES: ServerCounters = MariadbCounters()
