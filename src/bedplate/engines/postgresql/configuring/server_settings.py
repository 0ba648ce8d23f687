"""Settings of PostgreSQL: how its own file is read, which of them bedplate decides, which libraries may be loaded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NETWORK = "the server listens on a private Unix socket only"
_PLACES = "bedplate decides where the cluster and its files are"
_LOG = "checkpoints are read from the server's log, which bedplate directs"
_BUILT = "it is compiled in or fixed by initdb"
_COMMAND = "it would start a program of its own"

INCLUDES = ("include", "include_dir", "include_if_exists")
# Read from the log by figures, or what would start a program, listen on a network, or stand elsewhere.
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
    "wal_segment_size": f"{_BUILT}; write wal_segment_size in [postgresql]",
    **dict.fromkeys(("segment_size", "server_version", "server_version_num"), _BUILT),
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
    **dict.fromkeys(INCLUDES, "includes are not followed; write it into one file"),
}

# contrib/ of PostgreSQL's own source: what of it means anything when a server or a session begins.
_PRELOADABLE = frozenset({"auto_explain", "pg_prewarm", "pg_stat_statements"})
# A library runs in the server before anybody is asked for a right: by setting, what may stand there.
_LIBRARIES: Mapping[str, frozenset[str]] = {
    "shared_preload_libraries": _PRELOADABLE,
    "session_preload_libraries": _PRELOADABLE,
    "local_preload_libraries": frozenset(),
    "jit_provider": frozenset({"llvmjit"}),
    "dynamic_library_path": frozenset({"$libdir"}),
    "extension_control_path": frozenset({"$system"}),
}
_ANY_LIBRARY = re.compile(r"(.*_)?librar(y|ies)(_path)?")

# One line as the server reads it (src/backend/utils/misc/guc-file.l): a name, perhaps an equals sign, a value.
# Nothing needs to stand between them: include'x' and archive_command'x' are whole lines.
_NAME = r"[A-Za-z_\x80-\U0010ffff][A-Za-z_0-9$.\x80-\U0010ffff]*"
_LINE = re.compile(rf"[ \t\r\f\v]*({_NAME})[ \t\r\f\v]*=?[ \t\r\f\v]*(?:'((?:[^'\\]|''|\\.)*)'?|([^\s#']*))")


def configuration_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """The number, name in lower case and value of each line that sets something; a newline alone ends a line."""
    for number, line in enumerate(text.split("\n")):
        if found := _LINE.match(line):
            value = found[2].replace("''", "'") if found[2] is not None else found[3]
            yield number, found[1].lower(), value


def without_controlled(text: str) -> str:
    """An own postgresql.conf whose lines about what bedplate decides are comments; no other line moves."""
    lines = text.split("\n")
    for number, name, _ in configuration_lines(text):
        if name in CONTROLLED:
            lines[number] = f"# bedplate decides: {lines[number]}"
    return "\n".join(lines)


def refused_library(name: str, value: str) -> str | None:
    """Why this setting may not load that; None if it may, or loads nothing."""
    if _ANY_LIBRARY.fullmatch(name) is None and name not in _LIBRARIES:
        return None
    allowed = _LIBRARIES.get(name, frozenset())
    words = [word.strip().strip('"').removeprefix("$libdir/") for word in re.split("[,:]", value)]
    if all(word in allowed for word in words if word):
        return None
    known = ", ".join(sorted(allowed)) or "nothing"
    return f"{name} loads code into the server; allowed there: {known}"
