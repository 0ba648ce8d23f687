"""What the head of an archive of pg_dump says of it, read without a program of PostgreSQL's.

The layout is that of `ReadHead` and `ReadToc` in src/bin/pg_dump/pg_backup_archiver.c (PostgreSQL 9.5 to 18). Everything in it is
somebody else's bytes: it is read with bounds, and believed only as far as it decides what is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from bedplate.host.files import sha256_of
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAGIC = b"PGDMP"
_TABLE_OF_CONTENTS = "toc.dat"
_CUSTOM, _TAR = 1, 3
# K_VERS_1_12 (PostgreSQL 9.0); the first that is read, as its date and versions stand where they do today.
_OLDEST = (1, 12)
# From K_VERS_1_15 (PostgreSQL 16) on an algorithm by its number (pg_compress_algorithm, common/compression.h), before a level.
_ALGORITHMS_SINCE = (1, 15)
_ALGORITHMS = ("none", "gzip", "lz4", "zstd")
# With a method of access of each table (12), with a kind of each relation (17), and the last whose list is known.
_WITH_ACCESS, _WITH_KIND = (1, 14), (1, 16)
_TEXT_BYTES_MAX = 1000
# Of the list: of a text in it, and of all together. What lies beyond, a restore says.
_LIST_TEXT_BYTES_MAX, _LIST_BYTES_MAX = 4 * MIB, 64 * MIB
_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
_NEEDED = ("EXTENSION", "PROCEDURAL LANGUAGE")
_DATE_NUMBERS = 7
_MAJOR = re.compile(r"(\d{1,2})(?:\.|devel|beta|rc|$| )", re.ASCII)
_HOW_TO = "make one with `pg_dump --format=custom` or `--format=directory`"


@dataclass(frozen=True)
class Archive:
    """An archive in custom or directory format. `dump_version` is pg_dump's, `server_version` that of the server it read.

    `extensions` are those, and procedural languages, that its list names, as far as the list is of a form that is known.
    """

    path: Path
    sha256: str
    size_bytes: int
    compression: str
    dump_version: str
    server_version: str
    extensions: tuple[str, ...] = ()

    @property
    def major(self) -> int:
        """The oldest major version that is sure to restore it: that of the pg_dump that wrote it."""
        found = _MAJOR.match(self.dump_version)
        return int(found[1]) if found else 0


def read_archive(path: Path) -> Archive:
    """The archive at `path`, a file or a directory; ValueError says in a sentence what it is instead.

    All of it is read once, for its checksum.
    """
    is_directory = path.is_dir()
    if is_directory and not (path / _TABLE_OF_CONTENTS).is_file():
        raise ValueError(f"the directory has no {_TABLE_OF_CONTENTS}, so it is no archive; {_HOW_TO}")
    if not is_directory and not path.is_file():
        raise ValueError("there is no such file or directory")
    files = _files_of(path) if is_directory else (path,)
    try:
        with (path / _TABLE_OF_CONTENTS if is_directory else path).open("rb") as file:
            compression, server, dump, extensions = _head(file, is_directory=is_directory)
        size_bytes = sum(each.stat().st_size for each in files)
        sha256 = _sha256_of_all(path, files) if is_directory else sha256_of(path)
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    return Archive(path, sha256, size_bytes, compression, dump, server, extensions)


def _files_of(directory: Path) -> tuple[Path, ...]:
    """Its files, which lie flat; ValueError for anything else in it."""
    found = sorted(directory.iterdir())
    strange = [each.name for each in found if each.is_symlink() or not each.is_file()]
    if strange:
        raise ValueError(f"{strange[0]!r:.80} in it is no regular file, and an archive has nothing else")
    return tuple(found)


def _sha256_of_all(directory: Path, files: tuple[Path, ...]) -> str:
    """Of the names and checksums of the files, in the order of their names."""
    lines = (f"{sha256_of(each)}  {each.relative_to(directory)}\n" for each in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _head(file: BinaryIO, *, is_directory: bool) -> tuple[str, str, str, tuple[str, ...]]:
    """Compression, the server's version and pg_dump's, and the extensions that the list behind the head names."""
    start = _exactly(file, len(_MAGIC))
    if start != _MAGIC:
        raise ValueError(_what_else(start + file.read(512)))
    version = (_byte(file), _byte(file))
    _byte(file)  # revision
    if version < _OLDEST:
        raise ValueError(f"its format {version[0]}.{version[1]} is of a pg_dump before 9.0; {_HOW_TO}")
    integer_bytes, offset_bytes, kind = _byte(file), _byte(file), _byte(file)
    # A directory's table of contents says tar (pg_backup_directory.c, _CloseArchive).
    if kind != (_TAR if is_directory else _CUSTOM) or not 1 <= integer_bytes <= 8:
        raise ValueError(f"it is damaged, or in a format other than custom and directory; {_HOW_TO}")
    if version >= _ALGORITHMS_SINCE:
        number = _byte(file)
        compression = _ALGORITHMS[number] if number < len(_ALGORITHMS) else f"algorithm {number}"
    else:
        compression = "gzip" if _integer(file, integer_bytes) else "none"
    for _ in range(_DATE_NUMBERS):
        _integer(file, integer_bytes)
    _text(file, integer_bytes)  # the name of the database
    versions = _text(file, integer_bytes), _text(file, integer_bytes)
    extensions: dict[str, None] = {}
    # A list that is damaged, or of a form that is not known, is pg_restore's to refuse.
    with contextlib.suppress(ValueError):
        for kind_of_entry, name in _entries(
            file, version, integer_bytes, None if is_directory else offset_bytes
        ):
            if kind_of_entry in _NEEDED and _NAME.fullmatch(name):
                extensions[name] = None
    return compression, *versions, tuple(extensions)


def _entries(
    file: BinaryIO, version: tuple[int, int], integer_bytes: int, offset_bytes: int | None
) -> Iterator[tuple[str, str]]:
    """What each entry of the list is, and its name; ValueError where it cannot be read on.

    Behind an entry stands where its data are: an offset of so many bytes, or the name of a file.
    """
    if version > _WITH_KIND:
        return
    end = file.tell() + _LIST_BYTES_MAX

    def text() -> str:
        return _text(file, integer_bytes, _LIST_TEXT_BYTES_MAX)

    for _ in range(_integer(file, integer_bytes)):
        if file.tell() > end:
            return
        _integer(file, integer_bytes)  # its number
        _integer(file, integer_bytes)  # whether it has data
        text(), text()  # the numbers of its catalogue and of itself
        name, kind = text(), text()
        _integer(file, integer_bytes)  # its section
        # Definition, how it is dropped and copied, schema, tablespace.
        for _ in range(6 if version >= _WITH_ACCESS else 5):
            text()
        if version >= _WITH_KIND:
            _integer(file, integer_bytes)
        text(), text()  # owner, and whether it has OIDs
        # What it depends on, until there is no text.
        while _has_text(file, integer_bytes):
            pass
        if offset_bytes is None:
            text()
        else:
            _exactly(file, 1 + offset_bytes)
        yield kind, name


def _has_text(file: BinaryIO, integer_bytes: int) -> bool:
    length = _integer(file, integer_bytes)
    if length > _LIST_TEXT_BYTES_MAX:
        raise ValueError("it is damaged")
    if length > 0:
        _exactly(file, length)
    return length >= 0


def _what_else(start: bytes) -> str:
    if start.startswith(b"toc.dat\0"):
        return f"it is an archive in tar format; {_HOW_TO}"
    if b"\0" not in start:
        return (
            f"it is text, perhaps a plain dump, whose commands psql would run, programs among them; {_HOW_TO}"
        )
    return f"it is no archive of pg_dump; {_HOW_TO}"


def _exactly(file: BinaryIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) != size:
        raise ValueError(
            "it ends within its head: it was truncated" if found else "it is empty, or was truncated"
        )
    return found


def _byte(file: BinaryIO) -> int:
    return _exactly(file, 1)[0]


def _integer(file: BinaryIO, size: int) -> int:
    """A sign, then the number with its lowest byte first (ReadInt)."""
    negative = _byte(file)
    number = int.from_bytes(_exactly(file, size), "little")
    return -number if negative else number


def _text(file: BinaryIO, integer_bytes: int, most: int = _TEXT_BYTES_MAX) -> str:
    length = _integer(file, integer_bytes)
    if length > most:
        raise ValueError(f"it is damaged: its head has a text of more than {most} bytes")
    return "" if length < 0 else _exactly(file, length).decode(errors="replace")


# What an archive may be larger by, restored, with its indexes: gzip takes a text to a fifth or so.
_GROWTH = {"none": 2.5}
_GROWTH_COMPRESSED = 10.0
_LEAST_BYTES = 64 * MIB


def restored_bytes(archive_bytes: int, compression: str) -> float:
    """A guess at the size of the restored database, for time and room before anything was restored; on the large side."""
    return _LEAST_BYTES + archive_bytes * _GROWTH.get(compression, _GROWTH_COMPRESSED)
