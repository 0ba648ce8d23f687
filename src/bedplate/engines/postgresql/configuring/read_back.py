"""What a running server and its files say of what was asked: block sizes, checksums, every setting."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring import configuration
from bedplate.errors import OutputNotUnderstood
from bedplate.model.visit import ReadBack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.engines.postgresql.cluster import Cluster
    from bedplate.engines.postgresql.session import Session
    from bedplate.model.cell import BuildLevels, ClusterLevels

_CONTROL_DATA = re.compile(r"^([^:]+):\s+(.*)$", re.MULTILINE)


def read_back(
    cluster: Cluster, session: Session, levels: ClusterLevels, build_levels: BuildLevels
) -> tuple[ReadBack, ...]:
    """Block sizes, checksums and every asked setting, as the running server and its files have them."""
    output = cluster.run("pg_controldata", str(cluster.data_directory), timeout_s=60).stdout
    control = dict(_CONTROL_DATA.findall(output))
    try:
        block_size = int(control["Database block size"])
        wal_block_size = int(control["WAL block size"])
        checksums = int(control["Data page checksum version"]) != 0
        segment_bytes = int(control["Bytes per WAL segment"])
    except (KeyError, ValueError) as error:
        raise OutputNotUnderstood("pg_controldata", expected=f"a line for {error}", found=output) from error
    shown = int(session.value("SHOW block_size"))
    shown_wal = int(session.value("SHOW wal_block_size"))
    rows = session.rows(
        "SELECT name, setting, unit, vartype, current_setting(name), pending_restart FROM pg_settings"
    )
    asked = _asked_settings(cluster, session, levels, build_levels)
    wanted_checksums = levels.data_checksums
    return (
        _equal("database block size", build_levels.block_size_bytes, block_size, "pg_controldata"),
        _equal("database block size", build_levels.block_size_bytes, shown, "SHOW block_size"),
        _equal("WAL block size", build_levels.wal_block_size_bytes, wal_block_size, "pg_controldata"),
        _equal("WAL block size", build_levels.wal_block_size_bytes, shown_wal, "SHOW wal_block_size"),
        ReadBack(
            "data checksums",
            wanted_checksums,
            checksums,
            "pg_controldata",
            matches=None if wanted_checksums is None else wanted_checksums == checksums,
        ),
        ReadBack(
            "WAL segment size",
            levels.wal_segment_bytes,
            segment_bytes,
            "pg_controldata",
            matches=None if levels.wal_segment_bytes is None else levels.wal_segment_bytes == segment_bytes,
        ),
        *huge_pages_shown(rows, asked),
        *configuration.compare_settings(asked, rows),
        *_reported_anyway(rows, asked),
    )


def huge_pages_shown(rows: list[list[str | None]], asked: Mapping[str, str]) -> Iterator[ReadBack]:
    """`huge_pages = try` and a small pool leave a server without them, and say so in `huge_pages_status` alone (since 17)."""
    shown = {str(row[0]): row[4] for row in rows}
    wanted = asked.get("huge_pages", "").lower()
    if wanted in ("on", "off") and "huge_pages_status" in shown:
        found = shown["huge_pages_status"]
        yield ReadBack("huge pages", wanted, found, "SHOW huge_pages_status", matches=wanted == found)


def _asked_settings(
    cluster: Cluster, session: Session, levels: ClusterLevels, build_levels: BuildLevels
) -> dict[str, str]:
    """Every setting that the plan asks for, in the order in which one wins over another."""
    asked: dict[str, str] = {}
    if levels.scaled_block_settings:
        asked |= configuration.scaled_block_settings(levels, build_levels)
    if levels.configuration is not None:
        text = (cluster.data_directory / "postgresql.conf").read_text(encoding="utf-8")
        rows = session.rows("SELECT name, setting, sourceline FROM pg_file_settings ORDER BY seqno")
        asked |= configuration.settings_of_own_file(text, rows)
    asked |= {name: str(value) for name, value in levels.settings.items()}
    if levels.scaled_page_costs:
        asked |= configuration.scaled_page_costs(levels, build_levels)
    return asked


def effective_settings(session: Session) -> dict[str, str]:
    """Every setting of the server by name, as it shows it."""
    rows = session.rows("SELECT name, current_setting(name) FROM pg_settings")
    return {str(row[0]): str(row[1]) for row in rows}


def _equal(name: str, asked: int, found: int, source: str) -> ReadBack:
    return ReadBack(name, asked, found, source, matches=asked == found)


# What decides a result and is worth reading even where nobody asked for it.
_WORTH_READING = (
    "shared_buffers",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "max_wal_size",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_compression",
    "wal_init_zero",
    "wal_recycle",
    "seq_page_cost",
    "random_page_cost",
    "max_parallel_workers_per_gather",
    "jit",
    "io_method",
    "huge_pages_status",
    "autovacuum",
    "jit",
    *configuration.BLOCK_SETTINGS,
)


def _reported_anyway(rows: list[list[str | None]], asked: dict[str, str]) -> tuple[ReadBack, ...]:
    shown = {str(row[0]): row[4] for row in rows}
    return tuple(
        ReadBack(f"setting {name}", None, shown[name], "pg_settings", matches=None)
        for name in _WORTH_READING
        if name in shown and name not in asked
    )
