"""What records say of SQLite."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bedplate.host.files import bytes_below
from bedplate.model.cell import SOURCE, EngineModel
from bedplate.model.levels import Levels, Scalar
from bedplate.units import MIB

OFF, NORMAL, FULL, EXTRA = SYNCHRONOUS = ("off", "normal", "full", "extra")

DELETE, TRUNCATE, PERSIST, MEMORY, WAL, NO_JOURNAL = JOURNAL_MODES = (
    *("delete", "truncate", "persist", "memory", "wal"),
    OFF,
)

LOCKING_MODES = ("normal", "exclusive")
EXCLUSIVE = LOCKING_MODES[1]
BEGIN = "begin"
BEGINS = ("immediate", "deferred")
BUSY_TIMEOUT = "busy_timeout"
LONGEST_BUSY_MS = 600_000
AUTO_VACUUMS = ("none", "full", "incremental")
PAGE_SIZE = "page_size"
PAGE_SIZES = tuple(512 << step for step in range(8))

# The setting of a cell, and what a driver is told of it.
AMALGAMATION = "amalgamation"

LIBRARY = "library"

# Either of them says in cells which library it is.
LIBRARY_SETTINGS = (AMALGAMATION, SOURCE)

# The level of cells that take the distribution's.
SYSTEM = "system"

FILES = ("sqlite3.c", "sqlite3.h")

_MOST_BYTES = 64 * MIB
_LONGEST = 500
_DIGITS = 10
_VERSION = re.compile(rb'^#define SQLITE_VERSION\s+"([0-9.]{1,20})"', re.MULTILINE)

_SOURCE_ID = re.compile(
    rb'^#define SQLITE_SOURCE_ID\s+"[-0-9]+ [:0-9]+ ([0-9a-f]{10})[0-9a-z]*"', re.MULTILINE
)


def read_amalgamation(path: Path) -> tuple[str, Mapping[str, bytes]]:
    """The level of cells, and the files by their names, of a folder or a zip; ValueError in a sentence, OSError.

    The level is the version, the first digits of its check-in (`sqlite3_sourceid`) and those of the SHA-256 of both files:
    `3.54.1-0123456789-0123456789`.
    """
    files = _of_folder(path) if path.is_dir() else _of_zip(path)
    header = files[FILES[1]]
    version, source = _VERSION.search(header), _SOURCE_ID.search(header)
    if version is None or source is None:
        raise ValueError(
            f"{FILES[1]} in {path} says no SQLITE_VERSION and SQLITE_SOURCE_ID: it is no amalgamation"
        )
    found = hashlib.sha256()
    for name in FILES:
        found.update(len(files[name]).to_bytes(8, "little") + files[name])
    return f"{version[1].decode()}-{source[1].decode()}-{found.hexdigest()[:_DIGITS]}", files


def told_of_library(settings: Levels) -> Mapping[str, Scalar]:
    """Settings as drivers take them: of an amalgamation its version and check-in, which the library itself has to answer."""
    level = settings.text(AMALGAMATION)
    rest = {name: value for name, value in settings.items() if name not in LIBRARY_SETTINGS}
    return rest if level is None else {**rest, LIBRARY: level.rpartition("-")[0]}


def amalgamation(value: Any, context: Mapping[str, Any]) -> str | None:
    """The level of a key's value, None for the distribution's library; ValueError says what is allowed.

    `context` is that of a plan that is read: its directory, and what it names.
    """
    if value == SYSTEM:
        return None
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _LONGEST:
        raise ValueError(f'allowed is "{SYSTEM}", or the path of a folder or zip with {" and ".join(FILES)}')
    directory = Path(context["directory"])
    note = f"amalgamations/{hashlib.sha256(value.encode()).hexdigest()[:16]}.txt"
    kept = directory / note
    path = directory / value
    try:
        level = kept.read_text(encoding="utf-8").strip() if kept.is_file() else read_amalgamation(path)[0]
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    context["files"][note] = f"{level}\n"
    context["archives"][level] = str(path.absolute())
    return level


def _of_folder(path: Path) -> Mapping[str, bytes]:
    missing = [name for name in FILES if not (path / name).is_file()]
    if missing:
        raise ValueError(f"{path} has no {' and no '.join(missing)}; unpack SQLite's amalgamation there")
    return {name: bytes_below(path, name, _MOST_BYTES) for name in FILES}


def _of_zip(path: Path) -> Mapping[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: _member(archive, name, path) for name in FILES}
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is neither a folder nor a whole zip: {error}") from None


def _member(zip_file: zipfile.ZipFile, name: str, path: Path) -> bytes:
    found = [each for each in zip_file.infolist() if each.filename.rpartition("/")[2] == name]
    if len(found) != 1:
        raise ValueError(f"{path} has {len(found)} files {name}; one is needed")
    if found[0].file_size > _MOST_BYTES:
        raise ValueError(f"{name} in {path} is too large to be SQLite's")
    return zip_file.read(found[0])


class SqliteModel(EngineModel):
    """Its page size is chosen when the file is made."""

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:
        """By `synchronous`; in WAL mode `normal` syncs at checkpoints alone."""
        mode = in_force.get("sqlite.synchronous") or self.commit_mode(settings)
        journal = in_force.get("sqlite.journal_mode") or settings.text("journal_mode")
        return mode != OFF and not (mode == NORMAL and journal == WAL)

    def lets_one_in(self, settings: Levels) -> str | None:
        """By its locking mode."""
        return f"locking_mode = {EXCLUSIVE}" if settings.text("locking_mode") == EXCLUSIVE else None


MODEL = SqliteModel(
    "SQLite",
    {"cluster.settings.": "sqlite."},
    block_level=f"cluster.settings.{PAGE_SIZE}",
    cuts_per_s=400 / 60,
    commit_setting="synchronous",
    commit_modes=(FULL, OFF),
    more_tests=("tpcb",),
    library_settings=(AMALGAMATION, SOURCE),
)
