"""A data directory of MariaDB, read without asking a server: the page size by its files, the settings by option files and a command line.

The command line is that of the server that works there. Without one the option files of the machine count if they name this directory.
Whether pages are written twice no file says: the buffer for it is made with the system tablespace, whatever the setting is (buf_dblwr_t::create).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import PAGE_SIZE, USUAL_PAGE_BYTES
from bedplate.engines.mariadb.option_files import USUAL_FILES, OptionReading
from bedplate.engines.mariadb.settings import setting_name, setting_value, truth
from bedplate.host.plain_file import plain_bytes, plain_text
from bedplate.host.process import PROC
from bedplate.model.data_directory import DataDirectory, KnownFiles
from bedplate.model.engines import MARIADB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROCESSES = frozenset({"mariadbd", "mysqld"})
_SYSTEM = "ibdata1"
# Beside InnoDB's files; MySQL has no Aria.
_ARIA = "aria_log_control"
_VERSIONS = ("mariadb_upgrade_info", "mysql_upgrade_info")
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")
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
    found = _VERSION.match(version)
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
            found = _VERSION.match(plain_text(directory / name))
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


def _in_our_namespace(process: Path, proc: Path) -> bool:
    try:
        return (process / "ns/mnt").readlink() == (proc / "self/ns/mnt").readlink()
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
