"""PostgreSQL settings in a plan: their names, their values, and those that bedplate itself decides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from bedplate.model.cell import ClusterLevels
from bedplate.units import parse_duration_s

# PostgreSQL folds names to lower case; an extension's have one dot. 63 is NAMEDATALEN - 1.
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_$]{0,62})?")
_CONFIGURATION_LINE = re.compile(r"\s*([A-Za-z_][\w.$]*)\s*(?:=\s*|\s+)(?:'((?:[^'\\]|''|\\.)*)'|([^\s#]+))")

_NETWORK = "the server listens on a private Unix socket only"
_PLACES = "bedplate decides where the cluster and its files are"
_LOG = "checkpoints are read from the server's log, which bedplate directs"
_BUILT = "it is compiled in or fixed by initdb"
_COMMAND = "it would start a program of its own"

CONTROLLED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "listen_addresses",
            "port",
            "unix_socket_directories",
            "unix_socket_group",
            "unix_socket_permissions",
            "bonjour",
            "bonjour_name",
            "ssl",
        ),
        _NETWORK,
    ),
    **dict.fromkeys(
        ("data_directory", "config_file", "hba_file", "ident_file", "external_pid_file"),
        _PLACES,
    ),
    **dict.fromkeys(
        (
            "logging_collector",
            "log_destination",
            "log_directory",
            "log_filename",
            "log_line_prefix",
            "log_checkpoints",
            "log_timezone",
            "log_min_messages",
            "lc_messages",
            "syslog_facility",
            "syslog_ident",
        ),
        _LOG,
    ),
    "block_size": f"{_BUILT}; write block_size in [postgresql]",
    "wal_block_size": f"{_BUILT}; write wal_block_size in [postgresql]",
    "data_checksums": f"{_BUILT}; write data_checksums in [postgresql]",
    **dict.fromkeys(("segment_size", "wal_segment_size", "server_version", "server_version_num"), _BUILT),
    **dict.fromkeys(
        (
            "archive_command",
            "archive_library",
            "archive_cleanup_command",
            "recovery_end_command",
            "restore_command",
            "ssl_passphrase_command",
        ),
        _COMMAND,
    ),
    **dict.fromkeys(
        ("include", "include_dir", "include_if_exists"), "includes are not followed; write it into one file"
    ),
}
_INCLUDES = ("include", "include_dir", "include_if_exists")

# What `scaled_page_costs` makes follow the block size.
PAGE_COSTS = ("seq_page_cost", "random_page_cost")

# PostgreSQL's own defaults, and what it takes (guc_tables.c); the target's default holds since 14.
CHECKPOINT_TIMEOUT_S = 300.0
_CHECKPOINT_TIMEOUTS_S = (30.0, 86400.0)
CHECKPOINT_COMPLETION_TARGET = 0.9


def setting_name(text: str) -> str:
    """The name in PostgreSQL's own spelling (lower case); ValueError says why it is refused."""
    name = text.lower()
    if _NAME.fullmatch(name) is None:
        raise ValueError("a setting's name has letters, digits and underscores, and at most one dot")
    if name in CONTROLLED:
        raise ValueError(f"bedplate sets {name} itself: {CONTROLLED[name]}")
    return name


def setting_value(value: object) -> str:
    """The value as postgresql.conf has it: booleans become on and off, numbers their digits."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and abs(value) < 2**63:
        return str(value)
    if isinstance(value, float) and abs(value) < float("inf"):
        return f"{value:.15g}"
    if isinstance(value, str) and len(value) <= 1000 and value.isprintable():
        return value
    raise ValueError("allowed are true, false, a number, or a text of at most 1000 printable characters")


def configuration_text(text: str) -> str:
    """An own postgresql.conf, checked for what cannot be followed; ValueError names the lines."""
    if "\0" in text:
        raise ValueError("it has a NUL character")
    found = [name for name, _ in _configuration(text) if name in _INCLUDES]
    if found:
        raise ValueError(f"it has {', '.join(sorted(set(found)))}: includes are not followed, write one file")
    return text


def controlled_in(text: str) -> tuple[str, ...]:
    """The settings of an own postgresql.conf over which bedplate's own values win."""
    return tuple(sorted({name for name, _ in _configuration(text) if name in CONTROLLED}))


def page_costs_in(text: str) -> tuple[str, ...]:
    """The costs of a page that an own postgresql.conf sets, and `scaled_page_costs` does not see."""
    return tuple(sorted({name for name, _ in _configuration(text) if name in PAGE_COSTS}))


def in_force(cluster: ClusterLevels, name: str) -> str | None:
    """A setting as the plan asks for it: from `settings`, else from the own postgresql.conf, else None."""
    if name in cluster.settings:
        return str(cluster.settings[name])
    found = None
    for key, value in _configuration(cluster.configuration or ""):
        if key == name:  # the last one wins, as in the server
            found = value
    return found


def checkpoint_timeout_s(cluster: ClusterLevels) -> float:
    """The time between timed checkpoints; a value that the server would refuse counts as the default."""
    value = in_force(cluster, "checkpoint_timeout")
    try:
        found = CHECKPOINT_TIMEOUT_S if value is None else parse_duration_s(value)
    except ValueError:
        return CHECKPOINT_TIMEOUT_S
    least, most = _CHECKPOINT_TIMEOUTS_S
    return found if least <= found <= most else CHECKPOINT_TIMEOUT_S


def checkpoint_completion_target(cluster: ClusterLevels) -> float:
    """The share of the time between checkpoints over which one is spread; understood as the one above."""
    value = in_force(cluster, "checkpoint_completion_target")
    try:
        found = CHECKPOINT_COMPLETION_TARGET if value is None else float(value)
    except ValueError:
        return CHECKPOINT_COMPLETION_TARGET
    return found if 0 <= found <= 1 else CHECKPOINT_COMPLETION_TARGET


def _configuration(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if found := _CONFIGURATION_LINE.match(line):
            value = found[2].replace("''", "'") if found[2] is not None else found[3]
            yield found[1].lower(), value
