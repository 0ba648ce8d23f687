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
# In quotes: two are one, and a backslash begins what C has (GUC_scanstr); any other character behind it is itself.
_ESCAPE = re.compile(r"''|\\([0-7]{1,3}|.)")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

# What of that the server takes; any other line makes it refuse the whole file. A name and a value are the longest word of the scanner's
# that begins there, so that `1.5GB`, `256 MB` and `postgresql.log` are no values without quotes.
_LETTER = r"[A-Za-z_\x80-\U0010ffff]"
_WORD = re.compile(rf"{_LETTER}(?:{_LETTER}|[0-9._:/-])*")
_ID = re.compile(rf"{_LETTER}(?:{_LETTER}|[0-9])*")
_QUALIFIED_ID = re.compile(rf"{_ID.pattern}\.{_ID.pattern}")
_VALUES = (
    _WORD,
    re.compile(r"'(?:[^'\\\n]|\\.|'')*'"),
    re.compile(r"[-+]?(?:0x[0-9a-fA-F]+|[0-9]+)[a-zA-Z]*"),
    re.compile(r"[-+]?[0-9]*\.[0-9]*(?:[Ee][-+]?[0-9]+)?"),
)
_BLANKS = re.compile(r"[ \t\r]*")

_SHOWN, _QUOTE = 60, "'"


def configuration_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """The number, name in lower case and value of each line that sets something; a newline alone ends a line."""
    for number, line in enumerate(text.split("\n")):
        if found := _LINE.match(line):
            value = _ESCAPE.sub(_unescaped, found[2]) if found[2] is not None else found[3]
            yield number, found[1].lower(), value


def _unescaped(found: re.Match[str]) -> str:
    word = found[1]
    if word is None:
        return "'"
    return chr(int(word, 8) & 0xFF) if word[0] in "01234567" else _ESCAPES.get(word, word)


def syntax_errors(text: str) -> Iterator[str]:
    """A sentence for each line that the server does not take, with the line that it would take where that can be told."""
    for number, line in enumerate(text.split("\n"), start=1):
        if _is_line(line):
            continue
        found, name = _LINE.match(line), _WORD.match(line.lstrip())
        way_out = "a line is a name, =, and a value, in quotes where it has blanks or other signs"
        if found is not None and found[2] is None and name is not None and name[0] == found[1]:
            value = line[found.start(3) :].partition("#")[0].strip().removesuffix(";")
            proposed = f"{name[0]} = '{value.replace(_QUOTE, _QUOTE * 2)}'"
            way_out = f"write {proposed}" if value.isprintable() and value and _is_line(proposed) else way_out
        yield f"line {number}: the server does not take {line.strip()[:_SHOWN]!r}; {way_out}"


def _is_line(line: str) -> bool:
    at = _after_blanks(line, 0)
    if at == len(line) or line[at] == "#":
        return True
    name = _WORD.match(line, at)
    if name is None or not (_ID.fullmatch(name[0]) or _QUALIFIED_ID.fullmatch(name[0])):
        return False
    at = _after_blanks(line, name.end())
    if line.startswith("=", at):
        at = _after_blanks(line, at + 1)
    value = max(
        (found for each in _VALUES if (found := each.match(line, at))),
        key=lambda each: each.end(),
        default=None,
    )
    if value is None or value.end() == at or _QUALIFIED_ID.fullmatch(value[0]):
        return False
    at = _after_blanks(line, value.end())
    return at == len(line) or line[at] == "#"


def _after_blanks(line: str, at: int) -> int:
    found = _BLANKS.match(line, at)
    return at if found is None else found.end()


def quoted_value(value: str) -> str:
    """A value for a single-quoted string of postgresql.conf, which must stay on its line."""
    if any(character in value for character in "\n\r\0"):
        raise ValueError(f"a setting cannot hold a line break: {value!r}")
    return value.replace("\\", "\\\\").replace("'", "''")


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
