"""What a running MariaDB says of what was asked: its variables, how its files are open, whether pages are written twice."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import PAGE_SIZE
from bedplate.engines.mariadb.settings import same_value
from bedplate.model.visit import ReadBack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.engines.mariadb.session import MariadbSession
    from bedplate.model.levels import Scalar

_VARIABLES = "SHOW GLOBAL VARIABLES"
_PROC = Path("/proc")
_DATA_FILE = "ibdata1"
_FLAGS = re.compile(r"^flags:\s+([0-7]+)$", re.MULTILINE)
# A page of each kind is changed, and a checkpoint writes them: what is written twice is counted then.
_MAKES_DIRTY = (
    "CREATE TABLE bedplate_read_back (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO bedplate_read_back VALUES (1)",
    "SET GLOBAL innodb_log_checkpoint_now = ON",
    "DROP TABLE bedplate_read_back",
)
_WRITTEN, _TWICE = "Innodb_buffer_pool_pages_flushed", "Innodb_dblwr_pages_written"
# What decides a result and is worth reading even where nobody asked for it.
_WORTH_READING = (
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_log_buffer_size",
    "innodb_log_file_buffering",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_log_at_timeout",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_doublewrite",
    "innodb_use_atomic_writes",
    "innodb_use_native_aio",
    "innodb_checksum_algorithm",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_max_dirty_pages_pct",
    "log_bin",
    "sync_binlog",
    "performance_schema",
)


def read_back(session: MariadbSession, asked: Mapping[str, Scalar], pid: int) -> tuple[ReadBack, ...]:
    """Every asked setting, what decides a result, how data files are open, and double writes."""
    shown = effective_settings(session)
    found = [_setting(name, str(value), shown.get(name)) for name, value in sorted(asked.items())]
    found += [
        ReadBack(f"setting {name}", None, shown[name], _VARIABLES, matches=None)
        for name in (PAGE_SIZE, *_WORTH_READING)
        if name in shown and name not in asked
    ]
    method = shown.get("innodb_flush_method", "")
    direct = opened_directly(pid)
    # Where the file system takes no O_DIRECT, InnoDB goes on without it.
    wanted = "innodb_flush_method" in asked and direct is not None
    found.append(
        ReadBack(
            f"{_DATA_FILE} open with O_DIRECT",
            method if wanted else None,
            direct,
            "/proc/PID/fdinfo",
            matches=(direct is method.upper().startswith("O_DIRECT")) if wanted else None,
        )
    )
    return (*found, double_writes(session, shown))


def effective_settings(session: MariadbSession) -> dict[str, str]:
    """Every variable of the server by name, as it shows it."""
    return {str(name): str(value or "") for name, value in session.rows(_VARIABLES)}


def status(session: MariadbSession, *names: str) -> dict[str, float]:
    """Counters of the server by name."""
    listed = ", ".join(f"'{name}'" for name in names)
    rows = session.rows(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({listed})")
    return {str(name): float(value) for name, value in rows if value is not None}


def double_writes(session: MariadbSession, shown: Mapping[str, str]) -> ReadBack:
    """Whether pages are written twice, by the server's own count.

    With `innodb_use_atomic_writes` the server leaves them out by itself where the device claims that it writes a page whole:
    then they are said, and not judged.
    """
    for statement in _MAKES_DIRTY:
        session.execute(statement)
    counted = status(session, _WRITTEN, _TWICE)
    pages, twice = counted.get(_WRITTEN, 0.0), counted.get(_TWICE, 0.0)
    asked = shown.get("innodb_doublewrite", "ON")
    source = f"{_TWICE}, {_WRITTEN}"
    if pages == 0:
        return ReadBack("double writes", asked, None, source, matches=None)
    is_off = asked.upper() == "OFF"
    by_device = shown.get("innodb_use_atomic_writes", "").upper() == "ON"
    matches = (twice == 0) if is_off else True if twice > 0 else None if by_device else False
    return ReadBack("double writes", asked, "ON" if twice > 0 else "OFF", source, matches=matches)


def opened_directly(pid: int, proc: Path = _PROC) -> bool | None:
    """Whether a process has InnoDB's system tablespace open with O_DIRECT; None where that cannot be seen."""
    try:
        for link in (proc / str(pid) / "fd").iterdir():
            if link.readlink().name == _DATA_FILE:
                flags = _FLAGS.search((proc / str(pid) / "fdinfo" / link.name).read_text())
                return None if flags is None else bool(int(flags[1], 8) & os.O_DIRECT)
    except OSError:
        return None
    return None


def _setting(name: str, asked: str, shown: str | None) -> ReadBack:
    matches = shown is not None and same_value(asked, shown)
    return ReadBack(f"setting {name}", asked, shown, _VARIABLES, matches=matches)
