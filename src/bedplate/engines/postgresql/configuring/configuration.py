"""postgresql.conf: what bedplate decides, what the plan asks, and whether it is in force."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring.server_settings import (
    CONTROLLED,
    quoted_value,
    without_controlled,
)
from bedplate.model.visit import ReadBack
from bedplate.units import parse_duration_s, parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.cell import BuildLevels, ClusterLevels
    from bedplate.model.levels import Scalar

DEFAULT_BLOCK_SIZE_BYTES = 8192

# PostgreSQL's own defaults of settings that are counted in blocks (src/backend/utils/misc/guc_tables.c
# and src/include/storage/bufmgr.h): at 1 kB blocks they are an eighth of the bytes that they are at 8 kB.
_COUNTED_IN_BLOCKS: Mapping[str, int] = {
    "bgwriter_lru_maxpages": 100,
    "bgwriter_flush_after": 64,
    "checkpoint_flush_after": 32,
    "effective_cache_size": 524288,
    "temp_buffers": 1024,
}
_COUNTED_IN_WAL_BLOCKS: Mapping[str, int] = {"wal_writer_flush_after": 128}
# The server refuses more (guc_tables.c: WRITEBACK_MAX_PENDING_FLUSHES).
_LARGEST: Mapping[str, int] = {"bgwriter_flush_after": 256, "checkpoint_flush_after": 256}

# Costs of a page, not of a byte (guc_tables.c); cpu_*_cost count tuples and stay.
_PAGE_COSTS: Mapping[str, str] = {"seq_page_cost": "1", "random_page_cost": "4"}

# They frame the plan's own postgresql.conf within the server's, so that its lines are known again.
_OWN_BEGINS = "# the plan's own postgresql.conf begins"
_OWN_ENDS = "# the plan's own postgresql.conf ends"

BLOCK_SETTINGS = (*_COUNTED_IN_BLOCKS, *_COUNTED_IN_WAL_BLOCKS)


def own_settings(socket_directory: str) -> dict[str, str]:
    """Settings that bedplate must control: no network, no program, and a log that figures are made from.

    Every one of CONTROLLED that has a value of its own; of the places of files the server's defaults hold, which
    move with the data directory, and what is compiled in cannot be set.
    """
    return {
        "unix_socket_group": "",
        "bonjour": "off",
        "bonjour_name": "",
        "ssl": "off",
        "log_directory": "log",
        "log_filename": "postgresql.log",
        "log_min_messages": "warning",
        "syslog_facility": "local0",
        "syslog_ident": "postgres",
        "archive_command": "",
        "archive_library": "",
        "archive_cleanup_command": "",
        "recovery_end_command": "",
        "restore_command": "",
        "ssl_passphrase_command": "",
        "listen_addresses": "",
        "unix_socket_directories": socket_directory,
        "unix_socket_permissions": "0700",
        "port": "5432",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_checkpoints": "on",
        "log_line_prefix": "%n %p %b ",
        "log_timezone": "UTC",
        "lc_messages": "C",
    }


def scaled_block_settings(levels: ClusterLevels, build: BuildLevels) -> dict[str, str]:
    """The defaults that are counted in blocks, so that they stand for as many bytes as at 8 kB.

    One that the plan sets itself is left as it is set; one of its own postgresql.conf wins there.
    """
    scaled = {}
    for counted, block_size_bytes in (
        (_COUNTED_IN_BLOCKS, build.block_size_bytes),
        (_COUNTED_IN_WAL_BLOCKS, build.wal_block_size_bytes),
    ):
        for name, blocks in counted.items():
            if name in levels.settings:
                continue
            wanted = max(1, blocks * DEFAULT_BLOCK_SIZE_BYTES // block_size_bytes)
            scaled[name] = str(min(wanted, _LARGEST.get(name, wanted)))
    return scaled


def scaled_page_costs(levels: ClusterLevels, build: BuildLevels) -> dict[str, str]:
    """The planner's costs of reading a page, in proportion to the block size: a byte costs as at 8 kB.

    What is scaled is what `settings` ask for, else PostgreSQL's own default.
    """
    costs = {name: str(levels.settings.get(name, default)) for name, default in _PAGE_COSTS.items()}
    share = Fraction(build.block_size_bytes, DEFAULT_BLOCK_SIZE_BYTES)
    return {name: f"{float(Fraction(cost) * share):.15g}" for name, cost in costs.items()}


def configuration_text(levels: ClusterLevels, build: BuildLevels, socket_directory: str) -> str:
    """The text that is appended to what initdb wrote; later lines win over earlier ones."""
    lines = []
    if levels.scaled_block_settings:
        # First, as what is scaled are PostgreSQL's defaults: what the plan says itself, in either way, wins.
        lines += ["# scaled_block_settings"]
        lines += _assignments(scaled_block_settings(levels, build))
    if levels.configuration is not None:
        lines += [_OWN_BEGINS, without_controlled(levels.configuration.rstrip("\n")), _OWN_ENDS]
    lines += ["# the plan's settings", *_assignments({name: str(v) for name, v in levels.settings.items()})]
    if levels.scaled_page_costs:
        # Last but one, as what the plan asks for is what is scaled.
        lines += ["# scaled_page_costs", *_assignments(scaled_page_costs(levels, build))]
    lines += ["# what bedplate needs", *_assignments(own_settings(socket_directory))]
    return "\n".join(lines) + "\n"


def settings_of_own_file(text: str, rows: Sequence[Sequence[str | None]]) -> dict[str, str]:
    """What the plan's own postgresql.conf asks for, as the server has read it; `text` is the whole file.

    `rows` are (name, setting, sourceline) of pg_file_settings in the order of the file. A later line wins, and
    what bedplate sets itself is not the file's to ask for.
    """
    lines = text.split("\n")
    if _OWN_BEGINS not in lines:
        return {}
    first, last = lines.index(_OWN_BEGINS) + 1, len(lines) - lines[::-1].index(_OWN_ENDS)
    found = {
        str(name).lower(): str(setting)
        for name, setting, line in rows
        if name is not None and setting is not None and first < int(line or 0) < last
    }
    return {name: setting for name, setting in found.items() if name not in CONTROLLED}


def compare_settings(
    asked: Mapping[str, str], rows: Sequence[Sequence[str | None]], *, source: str = "pg_settings"
) -> tuple[ReadBack, ...]:
    """Asked settings against rows of (name, setting, unit, vartype, shown, pending_restart)."""
    effective = {str(row[0]): row for row in rows}
    comparisons = []
    for name, value in sorted(asked.items()):
        row = effective.get(name)
        if row is None:
            comparisons.append(ReadBack(f"setting {name}", value, None, source, matches=False))
            continue
        _, setting, unit, vartype, shown, pending = row
        matches = pending != "t" and same_value(value, str(setting), unit, str(vartype))
        comparisons.append(ReadBack(f"setting {name}", value, shown, source, matches=matches))
    return tuple(comparisons)


def same_value(asked: str, setting: str, unit: str | None, vartype: str) -> bool:
    """Whether an asked text means what the server has in force, in the server's own unit."""
    if vartype == "bool":
        return truth(asked) == truth(setting)
    if vartype in ("integer", "real"):
        number = _in_unit(asked, unit)
        if number is None:
            return asked.strip().lower() == setting.strip().lower()
        # A size that is no multiple of the unit is rounded by the server to the nearest one.
        tolerance = 0.5 if vartype == "integer" else 1e-9
        return abs(number - float(setting)) <= tolerance
    if vartype == "enum":
        # Enums have spellings that mean the same: on/true/yes, off/false/no.
        return asked.strip().lower() == setting.lower() or (
            truth(asked) is not None and truth(asked) == truth(setting)
        )
    return asked == setting


def truth(text: str) -> bool | None:
    """What a text means where a switch is asked for; None where it means neither."""
    lowered = text.strip().lower()
    if lowered in ("on", "true", "yes", "1", "t", "y"):
        return True
    if lowered in ("off", "false", "no", "0", "f", "n"):
        return False
    return None


_UNIT = re.compile(r"(\d+)?(B|kB|MB|us|ms|s|min)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


def _in_unit(asked: str, unit: str | None) -> float | None:
    """The asked number in the server's unit, None if it is no number."""
    text = asked.strip()
    try:
        return float(text)
    except ValueError:
        pass
    found = _UNIT.fullmatch(unit or "")
    if found is None:
        return None
    factor, name = int(found[1] or 1), found[2]
    try:
        if name in _SECONDS:
            return parse_duration_s(text) / (factor * _SECONDS[name])
        return parse_size(text) / (factor * {"B": 1, "kB": 1024, "MB": 1024**2}[name])
    except ValueError:
        return None


def _assignments(settings: Mapping[str, Scalar]) -> list[str]:
    return [f"{name} = '{quoted_value(str(value))}'" for name, value in sorted(settings.items())]
