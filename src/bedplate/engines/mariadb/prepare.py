"""What must be there before a MariaDB is started: the distribution's packages, unpacked in the cache and never configured.

Nothing of a MariaDB that the machine has is touched: not its data, its option files, its users or its service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import PAGE_SIZE, USUAL_PAGE_BYTES, setting_name, setting_value, truth
from bedplate.errors import BedplateError, RequirementMissing
from bedplate.host.apt import PackageTree, ensure_package_tree, find_package_tree
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory, plain_bytes, plain_text
from bedplate.host.native_driver import BuildProgress
from bedplate.host.process import PROC
from bedplate.host.requirement import Need, Requirement, look
from bedplate.host.shut_in import to_read_alone
from bedplate.model.cell import BuildLevels, Cell, PlanSources
from bedplate.model.engines import MARIADB, DataDirectory, KnownFiles
from bedplate.model.visit import EngineBuild
from bedplate.near_names import did_you_mean

if TYPE_CHECKING:
    from bedplate.campaign.preparation import EnginePreparation
    from bedplate.host.cache import Unused

SERVER = "sbin/mariadbd"

CLIENT = "bin/mariadb"
INSTALL = "bin/mariadb-install-db"
CHECK_PAGES = "bin/innochecksum"


class Programs:
    """Those of one unpacked tree; BedplateError where no build is named."""

    def __init__(self, build: EngineBuild | None) -> None:
        if build is None:
            raise BedplateError("a MariaDB needs its packages, and the request or the job names none")
        self.version = build.version
        self.prefix = build.prefix
        self.root = Path(build.prefix).parent
        libraries = PackageTree(self.root, {}, {}).library_path
        self.environment: Mapping[str, str] = (
            {"LD_LIBRARY_PATH": ":".join(map(str, libraries))} if libraries else {}
        )

    def path(self, program: str) -> str:
        """The path of one of the programs above."""
        return str(Path(self.prefix, program))


SERVER_PACKAGE = "mariadb-server-core"
PACKAGES = (SERVER_PACKAGE, "mariadb-client-core", "mariadb-client")

# The first with the counters that are read (Innodb_checkpoint_age, Innodb_lsn_current).
OLDEST = (10, 6)

_TOOLS = (
    Need("apt-get", "apt", "fetches MariaDB's packages, which stay in the cache of bedplate"),
    Need("dpkg-deb", "dpkg", "unpacks MariaDB's packages"),
)

_VERSION = re.compile(r"(?:\d+:)?((\d+)\.(\d+)[^-+]*)")

# Some 120 MiB from the distribution's mirror, of which most is the network's time.
_UNPACKED_S = 60.0


class MariadbPreparation:
    """One tree of packages for every cell."""

    def words(self, build_levels: BuildLevels) -> str:  # noqa: ARG002 -- there is one
        """`MariaDB`."""
        return "MariaDB"

    def is_there(self, build_levels: BuildLevels) -> bool:  # noqa: ARG002 -- there is one
        """As an unpacked tree."""
        return find_package_tree(PACKAGES, cache_directory=cache_directory()) is not None

    def seconds(self, build_levels: BuildLevels) -> float:  # noqa: ARG002 -- there is one
        """Fetched and unpacked."""
        return _UNPACKED_S

    def requirements(self, build_levels: Iterable[BuildLevels]) -> tuple[Requirement, ...]:  # noqa: ARG002 -- there is one
        """The distribution's own package tools."""
        return look(_TOOLS)

    def ensure(
        self,
        build_levels: BuildLevels,  # noqa: ARG002 -- there is one
        progress: Callable[[BuildProgress], None],
        *,
        tarball: Path | None,  # noqa: ARG002 -- of engines with a source
        sources: PlanSources | None = None,  # noqa: ARG002 -- likewise
    ) -> EngineBuild:
        """Fetched and unpacked, some 120 MiB; RequirementMissing with apt's words, and for a version that is too old."""
        tree = ensure_package_tree(
            PACKAGES,
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=lambda words: progress(BuildProgress(words)),
        )
        return build_of(tree)

    def unused(self, cache: Path, commands: Commands) -> Iterator[Unused]:  # noqa: ARG002 -- there is one
        """None: a study keeps its packages."""
        return iter(())


def build_of(package_tree: PackageTree) -> EngineBuild:
    """The tree as a visit needs it; its digest covers every package."""
    found = _VERSION.match(package_tree.packages.get(SERVER_PACKAGE, ""))
    if found is None or (int(found[2]), int(found[3])) < OLDEST:
        version = "an unknown version" if found is None else found[1]
        oldest = ".".join(map(str, OLDEST))
        raise RequirementMissing(
            f"this distribution's {SERVER_PACKAGE} is {version}; bedplate reads counters that came with {oldest}: "
            "use a distribution that has it"
        )
    prefix = package_tree.root / "usr"
    lacking = [name for name in (SERVER, CLIENT, INSTALL, CHECK_PAGES) if not (prefix / name).is_file()]
    if lacking:
        raise RequirementMissing(
            f"the packages {', '.join(PACKAGES)} were unpacked and lack {', '.join(lacking)}"
        )
    digest = package_tree.digest
    return EngineBuild(
        prefix=str(prefix),
        version=found[1],
        block_size_bytes=0,
        wal_block_size_bytes=0,
        source_sha256=digest,
        source_origin=f"the distribution's packages {package_tree.name_versions(PACKAGES)}",
        compiler="the distribution's",
        configure_options=(),
        digest=digest[:16],
    )


PREPARATION: EnginePreparation = MariadbPreparation()

_LISTED = re.compile(r"^([a-z][a-z0-9-]+) +\S", re.MULTILINE)
_FROM_HERE = "Variables (--variable-name=value)"


def settings_doubts(cells: Iterable[Cell]) -> tuple[str, ...]:
    """A sentence for each setting that this MariaDB does not list; nothing while its packages are not there."""
    of_engine = [cell for cell in cells if cell.build.engine == MARIADB]
    names = dict.fromkeys(name for cell in of_engine for name in cell.cluster.settings if name != PAGE_SIZE)
    known = _setting_names() if names else frozenset()
    return tuple(doubt(name, known) for name in names if known and name not in known)


def doubt(name: str, names: frozenset[str]) -> str:
    """Of a setting that is not listed."""
    return f"mariadb.settings.{name}: this MariaDB lists no such setting; {did_you_mean(name, names)}"


def listed(text: str) -> frozenset[str]:
    """The names in what `--verbose --help` prints, as `SHOW VARIABLES` spells them."""
    return frozenset(name.replace("-", "_") for name in _LISTED.findall(text.partition(_FROM_HERE)[2]))


def _setting_names() -> frozenset[str]:
    tree = find_package_tree(PACKAGES, cache_directory=cache_directory())
    if tree is None:
        return frozenset()
    try:
        programs = Programs(build_of(tree))
        argv = [programs.path(SERVER), "--no-defaults", "--verbose", "--help"]
        done = Commands().run(
            argv,
            timeout_s=30,
            extra_environment=programs.environment,
            confinement=to_read_alone(tree.root, is_own=False),
        )
        return listed(done.stdout)
    except BedplateError:
        return frozenset()


SETTINGS_CHECK = settings_doubts

# Where a server of the distribution looks first; then comes `.my.cnf` in its account's home.
USUAL_FILES = (Path("/etc/my.cnf"), Path("/etc/mysql/my.cnf"))

_GROUPS = ("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera")

# mysqld.cc, load_default_groups: a version may stand behind these (`mariadb-11.4`), and behind no other.
_VERSIONED = ("mysqld", "mariadb", "mariadbd")

_OF_A_VERSION = re.compile(rf"({'|'.join(_VERSIONED)})-\d+\.\d+")
_OFF, _ON = ("skip_", "disable_"), "enable_"

# my_default.c: MAX_INCLUDE_DEPTH.
_DEPTH_MOST = 10

_FILES_MOST = 1000


def groups(version: str) -> frozenset[str]:
    """The groups that a server of a version (`10.11`, or empty) reads."""
    return frozenset({*_GROUPS, *(f"{name}-{version}" for name in _VERSIONED if version)})


def option(word: str) -> tuple[str, str]:
    """Name and value of a line or an argument without its `--`; one without a value is ON."""
    name, equals, value = word.partition("=")
    name = name.strip().lower().replace("-", "_").removeprefix("loose_")
    for begin in _OFF:
        if name.startswith(begin):
            return name.removeprefix(begin), "OFF"
    return name.removeprefix(_ON), _value(value.strip()) if equals else "ON"


def _value(text: str) -> str:
    """Without quotes, or without a comment behind it."""
    if text[:1] in {"'", '"'}:
        return text[1:].partition(text[0])[0]
    return text.partition("#")[0].strip()


class OptionReading:
    """What was found of the options `names` so far, by their names; `said_by` has where, `unread` what could not be read, `others` the other options.

    `version` is the server's (`10.11`), or empty where it is not known: whether it reads a group of one version is open then.
    """

    def __init__(self, names: Collection[str], version: str) -> None:
        self.values: dict[str, str] = {}
        self.said_by: dict[str, str] = {}
        self.others: dict[str, str] = {}
        self.unread: list[str] = []
        self._names, self._groups, self._version = names, groups(version), version
        self._files = 0

    def arguments(self, words: Iterable[str]) -> None:
        """Those of a command line; a value may be a word of its own."""
        every = list(words)
        for word, following in zip(every, [*every[1:], "--"], strict=True):
            if word.startswith("--"):
                is_apart = "=" not in word and not following.startswith("-") and following
                self._take(*option(f"{word[2:]}={following}" if is_apart else word[2:]), "its command line")

    def file(self, path: Path, *, may_lack: bool = False, depth: int = 0) -> None:
        """One file, with those that it includes."""
        self._files += 1
        if depth > _DEPTH_MOST or self._files > _FILES_MOST:
            self.unread.append(f"{path}: included too deeply, as the server would say")
            return
        try:
            text = plain_text(path)
        except OSError as error:
            if not (may_lack and isinstance(error, FileNotFoundError)):
                self.unread.append(f"{path}: {error.strerror or error}")
            return
        group = ""
        for line in map(str.strip, text.splitlines()):
            if line.startswith("["):
                group = line[1:].partition("]")[0].strip()
            elif line.startswith("!"):
                for included in self._included(line, path.parent):
                    self.file(included, depth=depth + 1)
            elif line and line[0] not in "#;" and group in self._groups:
                self._take(*option(line), str(path))
            elif line and line[0] not in "#;" and not self._version and _OF_A_VERSION.fullmatch(group):
                self.unread.extend(
                    f"{name} in [{group}] of {path}: the server's version is not known, and another one passes over that group"
                    for name in self._meant(option(line)[0])
                )

    def _included(self, line: str, base: Path) -> Iterator[Path]:
        what, _, target = line.partition(" ")
        if what == "!include":
            yield base / target.strip()
        elif what == "!includedir":
            try:
                found = sorted((base / target.strip()).iterdir())
            except OSError as error:
                self.unread.append(f"{base / target.strip()}: {error.strerror or error}")
                return
            yield from (path for path in found if path.suffix == ".cnf")

    def _take(self, name: str, value: str, source: str) -> None:
        meant = self._meant(name)
        if not meant:
            self.others[name] = value
        for each in meant:
            self.values[each] = value
            self.said_by[each] = source

    def _meant(self, name: str) -> list[str]:
        """The one option that a name, or the beginning of one, stands for."""
        meant = [name] if name in self._names else [each for each in self._names if each.startswith(name)]
        return meant if len(meant) == 1 else []


PROCESSES = frozenset({"mariadbd", "mysqld"})

_SYSTEM = "ibdata1"

# Beside InnoDB's files; MySQL has no Aria.
_ARIA = "aria_log_control"

_VERSIONS = ("mariadb_upgrade_info", "mysql_upgrade_info")
_UPGRADE_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")

# fil0fil.h, fsp0fsp.h: of a tablespace's first page its type, and the flags behind the header of the page (38 bytes).
_TYPE_AT, _FIRST_PAGE = 24, 8

_FLAGS_AT, _FLAGS_BYTES = 38 + 16, 4

# fsp0types.h: the page size is 512 << n, 0 the usual. Where the marker of full_crc32 is, n stands in the lowest bits, else above six others.
_FULL_CRC32, _SIZE_BITS, _SIZE_AT = 1 << 4, 15, 6

_FLUSHED = "innodb_flush_log_at_trx_commit"
_METHOD = "innodb_flush_method"
_TWICE = "innodb_doublewrite"

# By their numbers, which an option may have too (ha_innodb.cc: innodb_flush_method_names).
_METHODS = ("fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC")

# O_DIRECT is the default since then (MDEV-24854).
_DIRECT_SINCE = (10, 6)

_DATA, _USUAL_PLACE = "datadir", "/var/lib/mysql"
_PLACES = {"innodb_log_group_home_dir": "log", "innodb_undo_directory": "undo"}

_UNTOLD = (
    "what SET GLOBAL, or somebody who edited an option file, changed since the server's start, and a .my.cnf in its account's home: "
    "SHOW GLOBAL VARIABLES tells"
)


def recognise(directory: Path, *, proc: Path = PROC) -> DataDirectory | None:
    """The server's directory; None where it is none of MariaDB's with InnoDB in it."""
    try:
        if not (directory / _ARIA).exists():
            return None
    except OSError:
        return None  # the directory is its owner's alone
    page_bytes, unread = None, []
    try:
        page_bytes = page_size(plain_bytes(directory / _SYSTEM, _FLAGS_AT + _FLAGS_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        unread.append(f"{directory / _SYSTEM}: {error.strerror or error}")
    else:
        if page_bytes is None:
            return None
    version = _version(directory)
    found = _UPGRADE_VERSION.match(version)
    release = (int(found[1]), int(found[2])) if found else _DIRECT_SINCE
    reading = OptionReading(
        (_FLUSHED, _METHOD, _TWICE, _DATA, *_PLACES), ".".join(map(str, release)) if found else ""
    )
    unread += _read_options(directory, reading, proc)
    settings = {
        PAGE_SIZE: str(page_bytes or USUAL_PAGE_BYTES),
        _FLUSHED: "1",
        _METHOD: "O_DIRECT" if release >= _DIRECT_SINCE else "fsync",
        _TWICE: "ON",
    }
    said = dict(reading.said_by)
    if page_bytes not in {None, USUAL_PAGE_BYTES}:
        said[PAGE_SIZE] = _SYSTEM
    said_by = {name: said[name] for name in settings if name in said}
    more, left_out = _as_in_a_plan(reading.others)
    return DataDirectory(
        engine=MARIADB,
        version=version,
        settings=settings
        | {name: _as_shown(name, value) for name, value in reading.values.items() if name in settings},
        said_by=said_by,
        places=dict(_places(directory, reading.values)),
        unread=tuple(unread),
        knows_settings=not unread,
        untold=(_UNTOLD,),
        more=more,
        left_out=tuple(left_out),
        measured_by="sysbench",
    )


def _as_in_a_plan(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """InnoDB's settings, which `[mariadb.settings]` can have, and sentences about the other options."""
    more, others, refused = {}, [], []
    for name, value in options.items():
        try:
            if not name.startswith("innodb_"):
                others.append(name)
            else:
                setting_value(value)
                more[setting_name(name)] = value
        except ValueError as error:
            refused.append(f"{name}: {error}")
    if others:
        refused.append(
            f"{', '.join(others)}: none of InnoDB's; write those that matter into [mariadb.settings]"
        )
    return more, refused


def page_size(head: bytes) -> int | None:
    """InnoDB's page size by the first bytes of a tablespace; None where they are none."""
    if len(head) < _FLAGS_AT + _FLAGS_BYTES or int.from_bytes(head[_TYPE_AT : _TYPE_AT + 2]) != _FIRST_PAGE:
        return None
    flags = int.from_bytes(head[_FLAGS_AT : _FLAGS_AT + _FLAGS_BYTES])
    size = flags & _SIZE_BITS if flags & _FULL_CRC32 else flags >> _SIZE_AT & _SIZE_BITS
    return 512 << size if size else USUAL_PAGE_BYTES


def _version(directory: Path) -> str:
    """As the last mariadb-upgrade left it; empty where it never ran."""
    for name in _VERSIONS:
        try:
            found = _UPGRADE_VERSION.match(plain_text(directory / name))
        except OSError:
            continue
        if found:
            return found[0]
    return ""


def _read_options(directory: Path, reading: OptionReading, proc: Path) -> Iterator[str]:
    """Read what a server has there, or would have; sentences of what is not known."""
    server = _server_of(directory, proc)
    if server is None:
        for path in USUAL_FILES:
            reading.file(path, may_lack=True)
        if not _is_same(Path(reading.values.get(_DATA, _USUAL_PLACE)), directory):
            reading.values.clear()
            reading.said_by.clear()
            reading.others.clear()
            files = " and ".join(map(str, USUAL_FILES))
            yield f"how its server is set: none runs on it, and {files} do not name this directory"
            return
    else:
        process, words = server
        if not _in_our_namespace(process, proc):
            yield (
                f"which option files its server has read, process {process.name}: it is in another mount namespace (a container), "
                "or only root may look"
            )
        else:
            for path, may_lack in _files_of(words):
                reading.file(path, may_lack=may_lack)
        for word in words:
            if word.startswith("--defaults-group-suffix"):
                yield f"what its own groups of options say: {word} is not followed here"
        reading.arguments(words)
    yield from reading.unread


def _server_of(directory: Path, proc: Path) -> tuple[Path, list[str]] | None:
    """The process that works in the directory, and its arguments."""
    for process in proc.glob("[0-9]*"):
        try:
            if (process / "comm").read_text(errors="replace").strip() not in PROCESSES:
                continue
            words = (process / "cmdline").read_text(errors="replace").split("\0")[1:]
        except OSError:
            continue  # it has ended
        if _is_same(process / "cwd", directory):
            return process, words
    return None


def _is_same(path: Path, directory: Path) -> bool:
    try:
        return path.samefile(directory)
    except OSError:
        return False


def _in_our_namespace(proc_folder: Path, proc: Path) -> bool:
    try:
        return (proc_folder / "ns/mnt").readlink() == (proc / "self/ns/mnt").readlink()
    except OSError:
        return False


def _files_of(words: list[str]) -> Iterator[tuple[Path, bool]]:
    """The option files that a command line has read, and whether each may lack."""
    told = dict(word.split("=", 1) for word in words if word.startswith("--defaults-") and "=" in word)
    if "--no-defaults" in words:
        return
    if "--defaults-file" in told:
        yield Path(told["--defaults-file"]), False
        return
    yield from ((path, True) for path in USUAL_FILES)
    if "--defaults-extra-file" in told:
        yield Path(told["--defaults-extra-file"]), False


def _as_shown(name: str, value: str) -> str:
    """As `SHOW GLOBAL VARIABLES` has it."""
    if name == _TWICE:
        meant = truth(value)
        return value.upper() if meant is None else "ON" if meant else "OFF"
    if name == _METHOD and value.isdecimal() and int(value) < len(_METHODS):
        return _METHODS[int(value)]
    return value


def _places(directory: Path, options: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The directory, and where its log, its databases and its tablespaces are elsewhere."""
    yield "data", str(directory)
    for name, what in _PLACES.items():
        if options.get(name) and not _is_same(directory / options[name], directory):
            yield what, str(directory / options[name])
    for path in sorted(directory.iterdir()):
        if path.is_symlink() and path.is_dir():
            yield f"database {path.name}", str(path.resolve())
    for path in sorted(directory.glob("*/*.isl")):
        yield f"table {path.parent.name}/{path.stem}", plain_text(path).strip()


DATA_DIRECTORY = KnownFiles(recognise, PROCESSES)
