"""What is wrong with a plan's settings: as the build's own server says, once there is one, and before that by what PostgreSQL has taken out.

The server reads a file and prints a setting (`postgres -C`): it says at once which lines it refuses, and starts nothing.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.build import find_build
from bedplate.engines.postgresql.builds.build_record import BuildSpec
from bedplate.engines.postgresql.builds.version import major_of
from bedplate.engines.postgresql.configuring.server_settings import (
    configuration_lines,
    quoted_value,
    without_controlled,
)
from bedplate.errors import BedplateError
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.shut_in.building import to_read_alone
from bedplate.model.engines import POSTGRESQL
from bedplate.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bedplate.model.cell import BuildLevels, Cell

# Settings that PostgreSQL has no more: since when, and what takes their place (its release notes, "Migration to Version").
GONE: Mapping[str, tuple[int, str]] = {
    "max_fsm_pages": (8, ""),
    "max_fsm_relations": (8, ""),
    "add_missing_from": (9, ""),
    "custom_variable_classes": (9, ""),
    "regex_flavor": (9, ""),
    "silent_mode": (9, ""),
    "wal_sender_delay": (9, ""),
    "unix_socket_directory": (9, "unix_socket_directories"),
    "replication_timeout": (9, "wal_sender_timeout"),
    "checkpoint_segments": (9, "max_wal_size, which is a size"),
    "min_parallel_relation_size": (10, "min_parallel_table_scan_size"),
    "sql_inheritance": (10, ""),
    "replacement_sort_tuples": (11, ""),
    "default_with_oids": (12, ""),
    "standby_mode": (12, "the file standby.signal"),
    "trigger_file": (12, "pg_promote()"),
    "wal_keep_segments": (13, "wal_keep_size, which is a size"),
    "operator_precedence_warning": (14, ""),
    "vacuum_cleanup_index_scale_factor": (14, ""),
    "stats_temp_directory": (15, ""),
    "force_parallel_mode": (16, "debug_parallel_query"),
    "promote_trigger_file": (16, "pg_promote()"),
    "vacuum_defer_cleanup_age": (16, ""),
    "db_user_namespace": (17, ""),
    "old_snapshot_threshold": (17, ""),
    "trace_recovery_messages": (17, ""),
}
_SAID = re.compile(r"^(?:.* )?(LOG|WARNING|ERROR|FATAL|HINT|DETAIL):  (.*)$")
_SYNTAX = re.compile(r'syntax error in file ".*" line (\d+)')
_UNKNOWN = re.compile(r'unrecognized configuration parameter ".*" in file ".*" line (\d+)')
_ABOUT = re.compile(r'parameter "([^"]+)"')
# First the server says which lines are none and which names it does not know, and only without those which values.
_ROUNDS_MOST = 4
_SHOWN = 300


@dataclass(frozen=True)
class AskedSetting:
    """A setting as a plan has it: `place` is its key, or its line in an own postgresql.conf, `line` what the server reads."""

    place: str
    name: str
    line: str


@dataclass(frozen=True)
class Refusal:
    """A line that the server refuses, by its number from 1, and why; no words for a name that it does not know."""

    number: int
    words: str


def refusals(said: str, names: Sequence[str]) -> tuple[Refusal, ...]:
    """What the server printed of a file with these names in its lines; a value is of the last line of its name."""
    found: list[Refusal] = []
    for line in said.splitlines():
        read = _SAID.match(line)
        if read is None:
            continue
        kind, words = read[1], read[2][:_SHOWN]
        if kind in ("HINT", "DETAIL"):
            if found and found[-1].words:
                found[-1] = Refusal(found[-1].number, f"{found[-1].words}. {words}")
        elif (at := _UNKNOWN.search(words)) is not None:
            found.append(Refusal(int(at[1]), ""))
        elif (at := _SYNTAX.search(words)) is not None:
            found.append(Refusal(int(at[1]), "it is no line of a postgresql.conf"))
        elif (about := _ABOUT.search(words)) is not None and about[1].lower() in names:
            number = max(place for place, name in enumerate(names, start=1) if name == about[1].lower())
            found.append(Refusal(number, words))
    return tuple(found)


def settings_doubts(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Sentences about settings, those in an own postgresql.conf too, with which the server of some cell would not start."""
    asked: dict[BuildLevels, dict[tuple[AskedSetting, ...], None]] = {}
    values: dict[BuildLevels, dict[str, dict[str, None]]] = {}
    for cell in cells:
        if cell.build.engine != POSTGRESQL:
            continue
        files = asked.setdefault(cell.build, {})
        if cell.cluster.configuration is not None:
            files[tuple(_of_configuration(cell.cluster.configuration))] = None
        for name, value in cell.cluster.settings.items():
            values.setdefault(cell.build, {}).setdefault(name, {})[str(value)] = None
    for build, by_name in values.items():
        # Of two values of one name in a file the server looks at the last.
        columns = zip_longest(*([_of_setting(name, value) for value in own] for name, own in by_name.items()))
        asked[build].update({tuple(filter(None, column)): None for column in columns})
    found = [(build, words) for build, files in asked.items() for words in _of_build(build, list(files))]
    several = len(asked) > 1
    return tuple(
        dict.fromkeys(f"{words} (PostgreSQL {build.version})" if several else words for build, words in found)
    )


def _of_setting(name: str, value: str) -> AskedSetting:
    return AskedSetting(f"postgresql.settings.{name}", name, f"{name} = '{quoted_value(value)}'")


def _of_configuration(text: str) -> Iterator[AskedSetting]:
    # What bedplate decides is a comment there.
    text = without_controlled(text)
    lines = text.split("\n")
    for number, name, _ in configuration_lines(text):
        yield AskedSetting(f"postgresql.configuration: line {number + 1}: {name}", name, lines[number])


def _of_build(levels: BuildLevels, files: Sequence[Sequence[AskedSetting]]) -> Iterator[str]:
    try:
        # A build may be somebody's own.
        build = find_build(BuildSpec.of(levels), cache_directory=cache_directory(), commands=Commands())
        if build is not None:
            server = AskedServer(build.program("postgres"))
            for asked in files:
                yield from server.doubts(asked)
            return
    except (BedplateError, OSError):
        # It does not answer: then no more is known of it than of one that has yet to be made.
        pass
    major = major_of(levels.version)
    for asked in files:
        for each in asked:
            if each.name in GONE and GONE[each.name][0] <= major:
                yield f"{each.place}: {_gone(each.name)}"


def _gone(name: str) -> str:
    since, instead = GONE[name]
    what = f"write {instead}" if instead else "take it out"
    return f"PostgreSQL has had no such setting since version {since}; {what}"


class AskedServer:
    """A build's server, that is asked about files and started for none."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._commands = Commands()

    def doubts(self, asked: Sequence[AskedSetting]) -> tuple[str, ...]:
        """A sentence for each that it refuses, in their order."""
        left = dict(enumerate(asked, start=1))
        found: dict[int, str] = {}
        for _ in range(_ROUNDS_MOST):
            names = [one.name if number in left else "" for number, one in enumerate(asked, start=1)]
            refused = [each for each in refusals(self._said(asked, left), names) if each.number in left]
            for each in refused:
                one = asked[each.number - 1]
                found[each.number] = f"{one.place}: {each.words or self._unknown(one.name)}"
                left.pop(each.number, None)
            if not refused:
                break
        return tuple(found[number] for number in sorted(found))

    def _said(self, asked: Sequence[AskedSetting], left: Mapping[int, AskedSetting]) -> str:
        """What it says of a file that has these lines, and is empty where others were."""
        with tempfile.TemporaryDirectory(prefix="bedplate-settings-") as folder:
            place = Path(folder)
            place.chmod(0o755)
            file = place / "postgresql.conf"
            lines = (one.line if number in left else "" for number, one in enumerate(asked, start=1))
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            file.chmod(0o644)
            return self._run(
                "-D", folder, "-c", f"config_file={file}", "-C", "data_directory", reads=(place,)
            )

    def _unknown(self, name: str) -> str:
        if name in GONE:
            return _gone(name)
        known = (line.partition("\t")[0] for line in self._run("--describe-config").splitlines())
        near = did_you_mean(name, list(known), otherwise="take it out")
        return f"this build lists no such setting; {near}"

    def _run(self, *options: str, reads: tuple[Path, ...] = ()) -> str:
        # It may be somebody's own.
        done = self._commands.run(
            [str(self._program), *options],
            timeout_s=30,
            confinement=to_read_alone(self._program.parent.parent, *reads),
            check=False,
        )
        return done.output


SETTINGS_CHECK = settings_doubts
