"""PostgreSQL settings in a plan: their names, their values, and those that bedplate itself decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.levels import Scalar
from bedplate.model.visit import ReadBack
from bedplate.plan.words import joined
from bedplate.units import parse_duration_s, parse_size

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


def _unescaped(match: re.Match[str]) -> str:
    word = match[1]
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


def _after_blanks(line: str, position: int) -> int:
    found = _BLANKS.match(line, position)
    return position if found is None else found.end()


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


# PostgreSQL folds names to lower case; an extension's have one dot. 63 is NAMEDATALEN - 1.
_SETTING_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_$]{0,62})?")

# What `scaled_page_costs` makes follow the block size.
PAGE_COSTS = ("seq_page_cost", "random_page_cost")

# PostgreSQL's own defaults, and what it takes (guc_tables.c); the target's default holds since 14.
CHECKPOINT_TIMEOUT_S = 300.0

_CHECKPOINT_TIMEOUTS_S = (30.0, 86400.0)

CHECKPOINT_COMPLETION_TARGET = 0.9

# Of one file.
_REASONS_MOST = 20


def setting_name(text: str) -> str:
    """The name in PostgreSQL's own spelling (lower case); ValueError says why it is refused."""
    name = text.lower()
    if _SETTING_NAME.fullmatch(name) is None:
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


def refused_settings(settings: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Why some settings may not have the values that a plan gives them."""
    found = [refused_library(name, value) for name, values in settings.items() for value in values]
    return tuple(dict.fromkeys(reason for reason in found if reason))


def own_configuration_text(text: str) -> str:
    """An own postgresql.conf, checked for what cannot be followed; ValueError names the lines."""
    if "\0" in text:
        raise ValueError("it has a NUL character")
    lines = list(configuration_lines(text))
    found = [name for _, name, _ in lines if name in INCLUDES]
    if found:
        raise ValueError(f"it has {', '.join(sorted(set(found)))}: includes are not followed, write one file")
    refused = [reason for _, name, value in lines if (reason := refused_library(name, value))]
    # What bedplate decides is no line of the server's.
    refused += syntax_errors(without_controlled(text))
    if refused:
        raise ValueError(joined(dict.fromkeys(refused), most=_REASONS_MOST))
    return text


def controlled_in(text: str) -> tuple[str, ...]:
    """The settings of an own postgresql.conf over which bedplate's own values win."""
    return tuple(sorted({name for name, _ in _configuration(text) if name in CONTROLLED}))


def page_costs_in(text: str) -> tuple[str, ...]:
    """The costs of a page that an own postgresql.conf sets, and `scaled_page_costs` does not see."""
    return tuple(sorted({name for name, _ in _configuration(text) if name in PAGE_COSTS}))


def names_in(text: str) -> frozenset[str]:
    """Every setting of an own postgresql.conf."""
    return frozenset(name for name, _ in _configuration(text))


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
    for _, name, value in configuration_lines(text):
        yield name, value


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


def scaled_block_settings(cluster_levels: ClusterLevels, build: BuildLevels) -> dict[str, str]:
    """The defaults that are counted in blocks, so that they stand for as many bytes as at 8 kB.

    One that the plan sets itself is left as it is set; one of its own postgresql.conf wins there.
    """
    scaled = {}
    for counted, block_size_bytes in (
        (_COUNTED_IN_BLOCKS, build.block_size_bytes),
        (_COUNTED_IN_WAL_BLOCKS, build.wal_block_size_bytes),
    ):
        for name, blocks in counted.items():
            if name in cluster_levels.settings:
                continue
            wanted = max(1, blocks * DEFAULT_BLOCK_SIZE_BYTES // block_size_bytes)
            scaled[name] = str(min(wanted, _LARGEST.get(name, wanted)))
    return scaled


def scaled_page_costs(cluster_levels: ClusterLevels, build: BuildLevels) -> dict[str, str]:
    """The planner's costs of reading a page, in proportion to the block size: a byte costs as at 8 kB.

    What is scaled is what `settings` ask for, else PostgreSQL's own default.
    """
    costs = {name: str(cluster_levels.settings.get(name, default)) for name, default in _PAGE_COSTS.items()}
    share = Fraction(build.block_size_bytes, DEFAULT_BLOCK_SIZE_BYTES)
    return {name: f"{float(Fraction(cost) * share):.15g}" for name, cost in costs.items()}


def configuration_text(cluster_levels: ClusterLevels, build: BuildLevels, socket_directory: str) -> str:
    """The text that is appended to what initdb wrote; later lines win over earlier ones."""
    lines = []
    if cluster_levels.scaled_block_settings:
        # First, as what is scaled are PostgreSQL's defaults: what the plan says itself, in either way, wins.
        lines += ["# scaled_block_settings"]
        lines += _assignments(scaled_block_settings(cluster_levels, build))
    if cluster_levels.configuration is not None:
        lines += [_OWN_BEGINS, without_controlled(cluster_levels.configuration.rstrip("\n")), _OWN_ENDS]
    lines += [
        "# the plan's settings",
        *_assignments({name: str(v) for name, v in cluster_levels.settings.items()}),
    ]
    if cluster_levels.scaled_page_costs:
        # Last but one, as what the plan asks for is what is scaled.
        lines += ["# scaled_page_costs", *_assignments(scaled_page_costs(cluster_levels, build))]
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
    settings: Mapping[str, str], rows: Sequence[Sequence[str | None]], *, source: str = "pg_settings"
) -> tuple[ReadBack, ...]:
    """Asked settings against rows of (name, setting, unit, vartype, shown, pending_restart)."""
    effective = {str(row[0]): row for row in rows}
    comparisons = []
    for name, value in sorted(settings.items()):
        row = effective.get(name)
        if row is None:
            comparisons.append(ReadBack(f"setting {name}", value, None, source, matches=False))
            continue
        _, setting, unit, vartype, shown, pending = row
        matches = pending != "t" and same_value(value, str(setting), unit, str(vartype))
        comparisons.append(ReadBack(f"setting {name}", value, shown, source, matches=matches))
    return tuple(comparisons)


def same_value(level: str, setting: str, unit: str | None, vartype: str) -> bool:
    """Whether an asked text means what the server has in force, in the server's own unit."""
    if vartype == "bool":
        return truth(level) == truth(setting)
    if vartype in ("integer", "real"):
        number = _in_unit(level, unit)
        if number is None:
            return level.strip().lower() == setting.strip().lower()
        # A size that is no multiple of the unit is rounded by the server to the nearest one.
        tolerance = 0.5 if vartype == "integer" else 1e-9
        return abs(number - float(setting)) <= tolerance
    if vartype == "enum":
        # Enums have spellings that mean the same: on/true/yes, off/false/no.
        return level.strip().lower() == setting.lower() or (
            truth(level) is not None and truth(level) == truth(setting)
        )
    return level == setting


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


def _in_unit(value: str, unit: str | None) -> float | None:
    """The asked number in the server's unit, None if it is no number."""
    text = value.strip()
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
