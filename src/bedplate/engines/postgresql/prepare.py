"""What must be there before a PostgreSQL is started: a build for each version and its block sizes, or one that somebody else compiled."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bedplate.campaign.preparation import EnginePreparation
from bedplate.engines.postgresql import ready_made
from bedplate.engines.postgresql.builds import (
    STAMP,
    BuildSpec,
    build_requirements,
    builds_directory,
    ensure_build,
    find_build,
    is_current,
    read_build,
)
from bedplate.engines.postgresql.own_data import ClusterLayout, read_archive, read_sizes, restored_bytes
from bedplate.engines.postgresql.pgbench_script import read_script
from bedplate.engines.postgresql.restoring import DATA, LOG, PLACES, RestoringJob
from bedplate.engines.postgresql.settings import (
    CONTROLLED,
    INCLUDES,
    configuration_lines,
    quoted_value,
    refused_library,
    setting_name,
    setting_value,
    truth,
    without_controlled,
)
from bedplate.engines.postgresql.versions import lacking_sentence, major_of
from bedplate.errors import BedplateError, CommandFailed, PlanError, PrintedTooMuch, RequirementMissing
from bedplate.host.account import server_account
from bedplate.host.cache import Unused, make_once, put_in_place, unused_folders
from bedplate.host.command import Account, Commands, started_apart
from bedplate.host.files import cache_directory, plain_text, require_traversable
from bedplate.host.interruption import defer_interruptions
from bedplate.host.native_driver import BuildProgress
from bedplate.host.requirement import Requirement, look
from bedplate.host.shut_in import Confinement, to_read_alone
from bedplate.model import codec
from bedplate.model.cell import BUILT, PACKAGED, BuildLevels, Cell, PlanSources, digest
from bedplate.model.durability import SESSION_SETTINGS
from bedplate.model.engines import POSTGRESQL, DataDirectory, KnownFiles
from bedplate.model.visit import EngineBuild
from bedplate.near_names import did_you_mean
from bedplate.units import KIB, MIB, format_size

if TYPE_CHECKING:
    import subprocess

# About 515 CPU seconds, on two idle cores.
_BUILD_S = 260.0


class PostgresqlPreparation:
    """Builds and unpacked packages in the cache, and servers that are installed."""

    def words(self, build_levels: BuildLevels) -> str:
        """`PostgreSQL 18, 8 kB blocks`; the commit and the patches of somebody's own."""
        if build_levels.server != BUILT:
            return ready_made.words(build_levels)
        return f"{BuildSpec.of(build_levels).words}, {build_levels.block_size_bytes // KIB} kB blocks"

    def is_there(self, build_levels: BuildLevels) -> bool:
        """As a finished build, or with nothing left to be fetched."""
        if build_levels.server != BUILT:
            return ready_made.is_there(build_levels, cache_directory())
        found = find_build(BuildSpec.of(build_levels), cache_directory=cache_directory(), commands=Commands())
        return found is not None

    def seconds(self, build_levels: BuildLevels) -> float:
        """The median of the builds in the cache; of packages what fetching takes."""
        if build_levels.server != BUILT:
            return ready_made.UNPACKED_S
        directory = builds_directory(cache_directory())
        stamps = map(read_build, sorted(directory.iterdir()) if directory.is_dir() else ())
        return median([build.build_seconds for build in stamps if build is not None] or [_BUILD_S])

    def requirements(self, build_levels: Iterable[BuildLevels]) -> tuple[Requirement, ...]:
        """Compilers and generators, which are the version's; of packages the distribution's own tools."""
        kinds = tuple(build_levels)
        specs = dict.fromkeys(
            BuildSpec(each.version, source_commit=each.source_commit, patches=each.patches[:1])
            for each in kinds
            if each.server == BUILT
        )
        tools = look(ready_made.TOOLS) if any(each.server == PACKAGED for each in kinds) else ()
        return (
            *tools,
            *dict.fromkeys(item for spec in specs for item in build_requirements(spec)),
        )

    def ensure(
        self,
        build_levels: BuildLevels,
        progress: Callable[[BuildProgress], None],
        *,
        tarball: Path | None,
        sources: PlanSources | None = None,
    ) -> EngineBuild:
        """Fetched and compiled, minutes each; or fetched and unpacked, or looked at."""
        if build_levels.server != BUILT:
            return ready_made.ensure_server(build_levels, cache_directory(), progress)
        return ensure_build(
            BuildSpec.of(build_levels, tarball),
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=progress,
            sources=sources,
        ).for_visit

    def unused(self, cache: Path, commands: Commands) -> Iterator[Unused]:
        """Half made ones, and those that this bedplate would make in another way now."""
        return unused_folders(builds_directory(cache), STAMP, lambda path: _why_unused(path, commands))


def _server_program(build_levels: BuildLevels) -> Path | None:
    """The server of these levels, where nothing has to be made for it."""
    if build_levels.server != BUILT:
        ready = ready_made.find_server(build_levels, cache_directory())
        return None if ready is None else Path(ready.prefix) / "bin" / "postgres"
    build = find_build(BuildSpec.of(build_levels), cache_directory=cache_directory(), commands=Commands())
    return None if build is None else build.program("postgres")


def _why_unused(path: Path, commands: Commands) -> str | None:
    if not path.name.startswith("postgresql-"):
        return None
    build = read_build(path)
    if build is None:
        return "not a whole build"
    if is_current(build, commands=commands):
        return None
    return f"another compiler, other options or another recipe would be used now; it is by {build.compiler}"


PREPARATION: EnginePreparation = PostgresqlPreparation()

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


def refusals(output: str, names: Sequence[str]) -> tuple[Refusal, ...]:
    """What the server printed of a file with these names in its lines; a value is of the last line of its name."""
    found: list[Refusal] = []
    for line in output.splitlines():
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


def _of_build(build_levels: BuildLevels, alternatives: Sequence[Sequence[AskedSetting]]) -> Iterator[str]:
    try:
        # A build may be somebody's own.
        program = _server_program(build_levels)
        if program is not None:
            server = AskedServer(program)
            for asked in alternatives:
                yield from server.doubts(asked)
            return
    except (BedplateError, OSError):
        # It does not answer: then no more is known of it than of one that has yet to be made.
        pass
    major = major_of(build_levels.version)
    for asked in alternatives:
        for each in asked:
            if each.name in GONE and GONE[each.name][0] <= major:
                yield f"{each.place}: {_gone(each.name)}"


def _gone(name: str) -> str:
    since, instead = GONE[name]
    what = f"write {instead}" if instead else "take it out"
    return f"PostgreSQL has had no such setting since version {since}; {what}"


class AskedServer:
    """A build's server, that is asked about files and started for none."""

    def __init__(self, executable: Path) -> None:
        self._program = executable
        self._commands = Commands()

    def doubts(self, assignments: Sequence[AskedSetting]) -> tuple[str, ...]:
        """A sentence for each that it refuses, in their order."""
        left = dict(enumerate(assignments, start=1))
        found: dict[int, str] = {}
        for _ in range(_ROUNDS_MOST):
            names = [one.name if number in left else "" for number, one in enumerate(assignments, start=1)]
            refused = [
                each for each in refusals(self._check_output(assignments, left), names) if each.number in left
            ]
            for each in refused:
                one = assignments[each.number - 1]
                found[each.number] = f"{one.place}: {each.words or self._unknown(one.name)}"
                left.pop(each.number, None)
            if not refused:
                break
        return tuple(found[number] for number in sorted(found))

    def _check_output(
        self, assignments: Sequence[AskedSetting], remaining: Mapping[int, AskedSetting]
    ) -> str:
        """What it says of a file that has these lines, and is empty where others were."""
        with tempfile.TemporaryDirectory(prefix="bedplate-settings-") as folder:
            place = Path(folder)
            place.chmod(0o755)
            file = place / "postgresql.conf"
            lines = (
                one.line if number in remaining else "" for number, one in enumerate(assignments, start=1)
            )
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

# Of PostgreSQL on Linux (guc_tables.c).
_DEFAULTS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "wal_sync_method": "fdatasync",
}

# guc-file.l: CONF_FILE_MAX_DEPTH.
_DEPTH_MOST = 10

_FILES_MOST = 1000

_UNTOLD = (
    "settings of roles and databases (ALTER ROLE … SET, ALTER DATABASE … SET) are in tables, which cannot be read from files; "
    "a session can set synchronous_commit as well"
)

# Where Debian and Ubuntu have the configuration of a cluster: in a folder of its version and name, outside of its data.
_ELSEWHERE = Path("/etc/postgresql")

_CONFIGURATION = "postgresql.conf"
_USUAL_BLOCK, _USUAL_SEGMENT = 8 * KIB, 16 * MIB

# Settings that a plan could have and a visit should not, by their names, and why.
_NOT_OF_A_VISIT = (
    (
        re.compile(
            r"archive_\w+|primary_\w+|recovery_\w+|promote_\w+|hot_standby\w*|synchron\w+_standby_\w+"
        ),
        "a visit has no archive and no standby",
    ),
    (
        re.compile(r"ssl\w*|krb_\w+|gss_\w+|tcp_\w+|pam_\w+|ldap\w*"),
        "nobody reaches a visit's server by a network",
    ),
    (re.compile(r"default_tablespace|temp_tablespaces"), "a visit has no tablespaces"),
    (
        re.compile(
            r"lc_\w+|datestyle|timezone|default_text_search_config|dynamic_shared_memory_type|cluster_name|stats_temp_directory"
        ),
        "initdb and the server set them for each cluster",
    ),
)


class _Reading:
    """The settings found so far, those that decide apart from the others; a later one wins."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.others: dict[str, str] = {}
        self.said_by: dict[str, str] = {}
        self.unread: list[str] = []
        self.files = 0

    def take(self, name: str, value: str, source: str) -> None:
        if name in SESSION_SETTINGS:
            meant = truth(value)
            # In synchronous_commit and full_page_writes any spelling of a truth; a method of syncing is a word.
            self.settings[name] = value if meant is None else "on" if meant else "off"
            self.said_by[name] = source
        else:
            self.others[name] = value

    def file(self, path: Path, depth: int = 0, *, may_lack: bool = False) -> None:
        self.files += 1
        if depth > _DEPTH_MOST or self.files > _FILES_MOST:
            self.unread.append(f"{path}: included too deeply, as the server would say")
            return
        try:
            text = plain_text(path)
        except FileNotFoundError:
            if not may_lack:
                self.unread.append(f"{path}: it is not there")
            return
        except OSError as error:
            self.unread.append(f"{path}: {error.strerror or error}")
            return
        for _, name, value in configuration_lines(text):
            if name in INCLUDES:
                self._included(path.parent / value, name, depth)
            else:
                self.take(name, value, str(path))

    def _included(self, path: Path, directive: str, depth: int) -> None:
        if directive != "include_dir":
            self.file(path, depth + 1, may_lack=directive == "include_if_exists")
            return
        try:
            names = sorted(os.listdir(path))  # noqa: PTH208 -- in the order of the server: by bytes
        except OSError as error:
            self.unread.append(f"{path}: {error.strerror or error}")
            return
        for name in names:
            if name.endswith(".conf") and not name.startswith("."):
                self.file(path / name, depth + 1)


def _started_with(directory: Path, reading: _Reading) -> list[tuple[str, str]]:
    """The settings on the command line of the last start, or of the one that runs; none before the first."""
    try:
        words = shlex.split(plain_text(directory / "postmaster.opts"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        reading.unread.append(f"{directory / 'postmaster.opts'}: {error}")
        return []
    return list(_options(words))


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """`-c name=value`, `--name=value` and `-F` (postgres(1))."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        pair = following if word == "-c" else word[2:] if word.startswith(("-c", "--")) else ""
        name, equals, value = pair.partition("=")
        if equals:
            yield name.lower().replace("-", "_"), value
        elif word == "-F":
            yield "fsync", "off"


def recognise(directory: Path) -> DataDirectory | None:
    """The cluster in a directory; None where there is none. Where that cannot be told, one with what could not be read."""
    try:
        version = plain_text(directory / "PG_VERSION").strip()[:20]
    except PermissionError:
        # The directory is its owner's alone. That it is a cluster's is known by its lock file, or not at all.
        return None
    except (FileNotFoundError, NotADirectoryError):
        return None
    reading = _Reading()
    options = _started_with(directory, reading)
    named = dict(options).get("config_file")
    # The other way may begin with the directory already, which may be a relative one.
    reading.file(directory / named if named else _configuration_of(directory))
    reading.file(directory / "postgresql.auto.conf", may_lack=True)
    for name, value in options:
        reading.take(name, value, "its command line")
    more, left_out = _as_in_a_plan(reading.others)
    made_with, unmade = _made_with(directory)
    return DataDirectory(
        engine=POSTGRESQL,
        version=version,
        settings={**_DEFAULTS, **reading.settings},
        said_by=reading.said_by,
        places=_places(directory, reading),
        unread=tuple(reading.unread),
        knows_settings=not reading.unread,
        untold=(_UNTOLD,),
        made_with=made_with,
        more=more,
        left_out=(*left_out, *unmade),
    )


def _configuration_of(directory: Path) -> Path:
    """Its postgresql.conf, where the last start names none: in it, or where Debian has the one that names this directory."""
    inside = directory / _CONFIGURATION
    if inside.exists():
        return inside
    for file in sorted(_ELSEWHERE.glob(f"*/*/{_CONFIGURATION}")):
        try:
            places = [
                value for _, name, value in configuration_lines(plain_text(file)) if name == "data_directory"
            ]
            if places and Path(places[-1]).samefile(directory):
                return file
        except OSError:
            continue
    return inside


def _made_with(directory: Path) -> tuple[dict[str, str | bool], tuple[str, ...]]:
    """By its control file, as `[postgresql]` of a plan has it, or why that is not known; sizes that a cluster has unless it is asked are left out."""
    try:
        sizes = read_sizes(directory)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        return {}, (
            f"block sizes, data_checksums, wal_segment_size: global/pg_control cannot be read ({why})",
        )
    found: dict[str, str | bool] = {"data_checksums": sizes.data_checksums}
    for key, size_bytes, usual in (
        ("block_size", sizes.block_size_bytes, _USUAL_BLOCK),
        ("wal_block_size", sizes.wal_block_size_bytes, _USUAL_BLOCK),
        ("wal_segment_size", sizes.wal_segment_bytes, _USUAL_SEGMENT),
    ):
        if size_bytes != usual:
            found[key] = f"{size_bytes // MIB} MB" if size_bytes % MIB == 0 else f"{size_bytes // KIB} kB"
    return found, ()


def _as_in_a_plan(settings: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Those that `[postgresql.settings]` can have, and sentences about the others."""
    kept: dict[str, str] = {}
    others: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in settings.items():
        why = _why_not_in_a_plan(name, value)
        if why is None:
            kept[name] = value
        elif name.isprintable():
            others[why].append(name)
    return kept, tuple(f"{', '.join(names)}: {why}" for why, names in others.items())


def _why_not_in_a_plan(name: str, value: str) -> str | None:
    why = next((why for names, why in _NOT_OF_A_VISIT if names.fullmatch(name)), None)
    if name in CONTROLLED or why is not None:
        return why or CONTROLLED[name]
    try:
        setting_name(name)
        setting_value(value)
    except ValueError as error:
        return str(error)
    refused = refused_library(name, value)
    return None if refused is None else refused.removeprefix(f"{name} ")


def _places(directory: Path, reading: _Reading) -> dict[str, str]:
    """The directory, and where its WAL and its tablespaces are elsewhere."""
    found = {"data": str(directory)}
    links = {"WAL": directory / "pg_wal"}
    try:
        links |= {f"tablespace {each.name}": each for each in sorted((directory / "pg_tblspc").iterdir())}
    except OSError as error:
        reading.unread.append(f"{directory / 'pg_tblspc'}: {error.strerror or error}")
    for what, link in links.items():
        if link.is_symlink():
            found[what] = str(link.resolve())
    return found


DATA_DIRECTORY = KnownFiles(recognise, frozenset({"postgres", "postmaster"}))
RECORD = "restored.json"

# Raised when the way changes in which one is made.
_VERSION = 1

_JOBS_MAX = 4

# `12; 3079 16386 EXTENSION - pg_trgm` (pg_restore --list); a name has no blank where it needs no quotes.
_EXTENSION = re.compile(r"^\d+; \d+ \d+ EXTENSION - (\S+)", re.MULTILINE)

_TRUSTED = re.compile(r"^\s*trusted\s*=\s*'?(true|on|yes|1)", re.MULTILINE)

# Some 100 bytes are an entry.
_LIST_LIMIT_S, _LIST_BYTES_MOST = 600.0, 64 * MIB

_SAID_LINES = 6


@dataclass(frozen=True)
class DatabaseSource:
    """What is restored: an archive by its checksum, and the scripts that run behind it, texts by what they are for."""

    name: str
    sha256: str
    scripts: Mapping[str, str]


def databases_directory(cache_directory: Path) -> Path:
    """Where they lie in a cache."""
    return cache_directory / "databases"


def ensure_restored(
    database: DatabaseSource,
    layout: ClusterLayout,
    *,
    archive: Path | None,
    cache_directory: Path,
    tell: Callable[[str], None],
) -> Path:
    """The data directory to be copied, made now where the cache lacks it.

    `archive` is where it was last seen. PlanError where it is another one by now, or needs an extension that the build does
    not have; RequirementMissing without room or root; else BedplateError with the words of pg_restore or of a script.
    """
    # They may come from a study that somebody else wrote, and no plan.
    if problems := [
        f"{name}: {problem}"
        for name, text in database.scripts.items()
        for problem in read_script(text).problems
    ]:
        raise PlanError(*problems)
    folder = _folder(database, layout, cache_directory)
    make_once(
        folder,
        lambda: folder if is_whole_database(folder) else None,
        lambda work: _make(folder, work, database, layout, archive=archive, tell=tell),
        on_wait=lambda: tell("waits for another start that restores it"),
    )
    # When it was last asked for.
    os.utime(folder / RECORD)
    return folder / "data"


def is_whole_database(folder: Path) -> bool:
    """Whether a folder of the cache is a restored database."""
    return (folder / RECORD).is_file() and (folder / "data" / "PG_VERSION").is_file()


def needs_root(name: str) -> str | None:
    """Why this process cannot restore an archive of that name; None for root."""
    if os.geteuid() == 0:
        return None
    return f"restoring {name} needs root: what a dump says runs in a server of an account without rights; run bedplate as root"


def needed_extensions(archive: Path, build: EngineBuild, account: Account) -> tuple[str, ...]:
    """The extensions that an archive names in its list; PlanError where pg_restore does not take it for one.

    pg_restore is confined to the archive's folder: it reads what somebody else wrote, byte by byte.
    """
    program = str(Path(build.prefix) / "bin" / "pg_restore")
    confined = Confinement((program, "--list", str(archive)), archive.parent, Path(build.prefix), account)
    try:
        listed = Commands().run(
            confined.argv, timeout_s=_LIST_LIMIT_S, most_bytes=_LIST_BYTES_MOST, confinement=confined
        )
    except PrintedTooMuch as error:
        raise PlanError(
            f"its list has more than {format_size(_LIST_BYTES_MOST)}: it is damaged, or dump fewer objects (pg_dump --schema)"
        ) from error
    except CommandFailed as error:
        said = " ".join(error.output.split())[-500:] or error.reasons[0]
        raise PlanError(f"pg_restore of PostgreSQL {build.version} cannot read it: {said}") from error
    return tuple(dict.fromkeys(_EXTENSION.findall(listed.stdout)))


def missing_extensions(names: tuple[str, ...], build: EngineBuild) -> tuple[str, ...]:
    """Those of them that a build does not have."""
    return tuple(name for name in names if not _control_file(name, build).is_file())


def made_by_a_superuser(names: tuple[str, ...], build: EngineBuild) -> tuple[str, ...]:
    """Those that the owner of a database may not make: not marked as trusted."""
    texts = {name: _control_file(name, build).read_text(encoding="utf-8") for name in names}
    return tuple(name for name, text in texts.items() if not _TRUSTED.search(text))


def _control_file(name: str, build: EngineBuild) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name):
        raise PlanError(f"it names an extension {name!r:.80}, which is no name of one")
    return ready_made.shared_files(Path(build.prefix)) / "extension" / f"{name}.control"


def _folder(database: DatabaseSource, layout: ClusterLayout, cache_directory: Path) -> Path:
    made_of = {
        "version": _VERSION,
        "sha256": database.sha256,
        "scripts": dict(database.scripts),
        "build": layout.build.digest,
        "data_checksums": layout.data_checksums,
    }
    return databases_directory(cache_directory) / digest(made_of)


def _make(
    folder: Path,
    work: Path,
    database: DatabaseSource,
    layout: ClusterLayout,
    *,
    archive: Path | None,
    tell: Callable[[str], None],
) -> Path:
    if reason := needs_root(database.name):
        raise RequirementMissing(reason)
    if archive is None or not archive.exists():
        raise PlanError(
            f"{database.name} is needed to restore it, and is not there; begin with the plan beside it: bedplate run PLAN"
        )
    require_traversable(folder.parent, base=folder.parent.parent)
    account, build = server_account(), layout.build
    # Its names are nobody's to list: the archive and the data are the account's for now, and others run as it.
    folder.parent.chmod(0o711)
    # Root's: whoever owns a folder may put a link in the place of one that root then follows.
    work.chmod(0o711)
    for name in (*PLACES, LOG):
        (work / name).mkdir(mode=0o700)
    for name in PLACES:
        os.chown(work / name, account.uid, account.gid)
    tell("copies the archive")
    found = _copied(archive, work / "archive", database, work)
    _give(work / "archive", account)
    names = needed_extensions(work / "archive", build, account)
    missing = missing_extensions(names, build)
    if missing:
        raise PlanError(lacking_sentence(database.name, missing))
    scripts = []
    for name, text in database.scripts.items():
        scripts.append(str(work / f"{name}.sql"))
        Path(scripts[-1]).write_text(text, encoding="utf-8")
        _give(Path(scripts[-1]), account)
    job = RestoringJob(
        work=str(work),
        archive=str(work / "archive"),
        build=build,
        data_checksums=layout.data_checksums,
        extensions=made_by_a_superuser(names, build),
        scripts=tuple(scripts),
        jobs=min(_JOBS_MAX, os.cpu_count() or 1),
    )
    codec.write(work / "job.json", job)
    _run(work / "job.json", database.name, tell)
    size_bytes = _own_alone(work / DATA)
    fresh = work / "fresh"
    fresh.mkdir(mode=0o700)
    (work / DATA).rename(fresh / "data")
    record = {**asdict(database), "archive_bytes": found, "size_bytes": size_bytes, "build": build.digest}
    (fresh / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    tell("brings it to the disk")
    put_in_place(fresh, folder)
    return folder


def _copied(archive: Path, target: Path, database: DatabaseSource, work: Path) -> int:
    """A copy that nobody changes meanwhile, and only the server's account reads; the bytes of it."""
    try:
        before = read_archive(archive)
    except ValueError as error:
        raise PlanError(f"{database.name}: {error}") from None
    wanted = before.size_bytes + restored_bytes(before.size_bytes, before.compression)
    free = shutil.disk_usage(work).free
    if free < wanted:
        raise RequirementMissing(
            f"restoring {database.name} may take {format_size(round(wanted))} in {work.parent}, which has {format_size(free)} "
            "free; make room (`bedplate release --cache` tells what can go), or set BEDPLATE_CACHE to a larger disk"
        )
    if archive.is_dir():
        shutil.copytree(archive, target, symlinks=True)
    else:
        shutil.copyfile(archive, target)
    # Of the copy: what was read may have been another file by then.
    if read_archive(target).sha256 != database.sha256:
        raise PlanError(
            f"{database.name} is not what it was when the plan was read (SHA-256 {database.sha256[:16]}…)"
        )
    return before.size_bytes


def _give(path: Path, account: Account) -> None:
    for each in (path, *(path.iterdir() if path.is_dir() else ())):
        os.chown(each, account.uid, account.gid)
        each.chmod(0o700 if each.is_dir() else 0o600)


def _own_alone(tree: Path) -> int:
    """Give it to root, for nobody else to read; the bytes of it."""
    size = 0
    for place, folders, names in os.walk(tree):
        for name in (*folders, *names):
            path = Path(place, name)
            os.chown(path, 0, 0, follow_symlinks=False)
            size += path.lstat().st_size
    os.chown(tree, 0, 0)
    return size


def _run(job_file: Path, name: str, tell: Callable[[str], None]) -> None:
    """The worker to its end; its steps are told. It dies with this process, and all that it started with it."""
    argv = [
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--pid", "--ipc", "--mount", "--mount-proc", "--fork", "--kill-child"),
        *(sys.executable, "-S", "-m", "bedplate.engines.postgresql.restoring", str(job_file)),
    ]
    errors = job_file.with_suffix(".err")
    process: subprocess.Popen[bytes] | None = None
    try:
        with errors.open("wb") as said, defer_interruptions():
            process = started_apart(argv, said)
        for line in _lines(process):
            tell(line)
        status = process.wait()
    finally:
        if process is not None:
            _end(process)
    if status != 0:
        raise BedplateError(f"{name} cannot be restored: {_last_words(errors) or f'status {status}'}")


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    assert process.stdout is not None  # noqa: S101 -- Popen was given a pipe
    for line in process.stdout:
        yield line.decode(errors="replace").strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _last_words(errors: Path) -> str:
    with errors.open(encoding="utf-8", errors="replace") as file:
        return " | ".join(line.strip() for line in deque(file, maxlen=_SAID_LINES) if line.strip())
