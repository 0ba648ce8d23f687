"""SQLite's amalgamation as a plan names it: what it is called in cells, and the two files that a driver is compiled with.

A study keeps a note of it (`plan/amalgamations/….txt`) in the place of the source, which is read where the plan is the one that a
study keeps.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.host.plain_file import bytes_below
from bedplate.model.source_commit import SOURCE
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Levels, Scalar

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


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    found = [each for each in archive.infolist() if each.filename.rpartition("/")[2] == name]
    if len(found) != 1:
        raise ValueError(f"{path} has {len(found)} files {name}; one is needed")
    if found[0].file_size > _MOST_BYTES:
        raise ValueError(f"{name} in {path} is too large to be SQLite's")
    return archive.read(found[0])
