"""Somebody's own database: an archive that is restored once, or a data directory, each copied to every visit, and what it may not do there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from bedplate.errors import BedplateError
from bedplate.host.files import plain_bytes, plain_text, sha256_of
from bedplate.host.process import PROC
from bedplate.units import GIB, MIB, format_size

if TYPE_CHECKING:
    from bedplate.engines.postgresql.visit import Session
    from bedplate.host.command import Account
    from bedplate.model.visit import EngineBuild

# Databases and roles that have a name which is needed get this behind it.
_ASIDE = " of the copy"

_NAME_BYTES_MAX = 63

# All that is there has been set up by others, row security among it; the owner of a restored database is not held by that either.
_RIGHTS = "LOGIN BYPASSRLS IN ROLE pg_monitor, pg_checkpoint, pg_read_all_data, pg_write_all_data"

# Settings of databases and roles win over the command line. Those that say what a script's words mean, or what its commits promise,
# are the data's; any other one would change what the plan asks for, load a library, or write rows into the log.
_KEPT_SETTINGS = (
    "bytea_output",
    "client_encoding",
    "datestyle",
    "default_text_search_config",
    "default_transaction_isolation",
    "intervalstyle",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "search_path",
    "synchronous_commit",
    "timezone",
)


def before_any_session(name: str) -> str:
    """For single-user mode, a statement a line: a superuser, whether or not there is a role of that name, and no settings but those kept."""
    role = identifier(name)
    kept = ", ".join(map(_quoted, _KEPT_SETTINGS))
    settings = f"SELECT array_agg(one) FROM unnest(setconfig) AS one WHERE lower(split_part(one, '=', 1)) IN ({kept})"  # noqa: S608 -- quoted
    return "".join(
        f"{statement}\n"
        for statement in (
            f"CREATE ROLE {role} SUPERUSER LOGIN",
            f"ALTER ROLE {role} SUPERUSER LOGIN",
            f"UPDATE pg_db_role_setting SET setconfig = ({settings})",  # noqa: S608 -- quoted
            "DELETE FROM pg_db_role_setting WHERE setconfig IS NULL",
        )
    )


def adopt(session: Session, *, database: str, as_database: str, client: str) -> None:
    """By that superuser, from another database: the names and the role of a visit; SessionFailed with the server's words."""
    for statement in _statements(session, database, as_database, client):
        session.execute(statement)


def identifier(name: str) -> str:
    """A name as SQL has it, whatever stands in it."""
    return '"' + name.replace('"', '""') + '"'


def _statements(session: Session, database: str, as_database: str, client: str) -> Iterator[str]:
    if session.value(f"SELECT count(*) FROM pg_roles WHERE rolname = {_quoted(client)}") != "0":  # noqa: S608 -- quoted
        # Theirs may be a superuser.
        yield f"ALTER ROLE {identifier(client)} RENAME TO {identifier(client + _ASIDE)}"
    if database != as_database:
        if session.value(f"SELECT count(*) FROM pg_database WHERE datname = {_quoted(as_database)}") != "0":  # noqa: S608
            yield f"ALTER DATABASE {identifier(as_database)} RENAME TO {identifier(as_database + _ASIDE)}"
        yield f"ALTER DATABASE {identifier(database)} RENAME TO {identifier(as_database)}"
    yield f"ALTER DATABASE {identifier(as_database)} ALLOW_CONNECTIONS true CONNECTION LIMIT -1"
    yield f"CREATE ROLE {identifier(client)} {_RIGHTS}"
    yield f"GRANT CONNECT, TEMPORARY, CREATE ON DATABASE {identifier(as_database)} TO {identifier(client)}"


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def database_name(value: object) -> str:
    """The name of a database; ValueError for what is none."""
    if isinstance(value, str) and value.isprintable() and 0 < len(value.encode()) <= _NAME_BYTES_MAX:
        return value
    raise ValueError(f"allowed is the name of a database, of 1 to {_NAME_BYTES_MAX} bytes")


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


def _what_else(head: bytes) -> str:
    if head.startswith(b"toc.dat\0"):
        return f"it is an archive in tar format; {_HOW_TO}"
    if b"\0" not in head:
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


LABEL = "backup_label"

_MANIFEST = "backup_manifest"
_LABEL_BYTES_MAX = 8192

_START_LINES = re.compile(
    r"START WAL LOCATION: [0-9A-F]+/[0-9A-F]+ \(file ([0-9A-F]{24})\)\nCHECKPOINT LOCATION: [0-9A-F]+/[0-9A-F]+\n"
)

_TAKE_ANOTHER = "take another one (pg_basebackup --wal-method=stream)"

# Of pg_verifybackup: what a manifest says nothing of, or others write.
_WAL_PREFIX = "pg_wal/"

_NOT_LISTED = frozenset(
    (_MANIFEST, "postgresql.auto.conf", "recovery.signal", "standby.signal", "postmaster.opts")
)

_NAMES_TOLD, _NAME_CHARACTERS_TOLD = 3, 80

# Of some 160 bytes a file; read, it takes ten times as much memory.
_MANIFEST_BYTES_MAX = 128 * MIB


def read_label(directory: Path) -> bytes:
    """Its label, empty where there is none; ValueError where it is damaged, or its WAL is not there. OSError as reading has it."""
    path = directory / LABEL
    if not path.exists():
        return b""
    content = plain_bytes(path, _LABEL_BYTES_MAX)
    found = _START_LINES.match(content.decode(errors="replace"))
    if found is None:
        raise ValueError(f"its {LABEL} is damaged, and recovery has no place to begin; {_TAKE_ANOTHER}")
    if not (directory / _WAL_PREFIX / found[1]).exists():
        raise ValueError(
            f"its {LABEL} begins with the WAL file {found[1]}, which is not in pg_wal: the label is stale, or the backup "
            f"came without its WAL; {_TAKE_ANOTHER}"
        )
    return content


def demand_listed(directory: Path, system_identifier: int) -> None:
    """ValueError where the manifest of a base backup does not fit its files; one without a manifest, or without a label, is not asked."""
    if not (directory / LABEL).exists() or not (directory / _MANIFEST).exists():
        return
    try:
        content = plain_bytes(directory / _MANIFEST, _MANIFEST_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"its {_MANIFEST} cannot be read: {error.strerror}") from None
    if len(content) > _MANIFEST_BYTES_MAX:
        raise ValueError(
            f"its {_MANIFEST} has more than {format_size(_MANIFEST_BYTES_MAX)}, and is not read; compare the files "
            "(pg_verifybackup) and take it away"
        )
    try:
        manifest = json.loads(content)
        listed = dict(map(_entry, manifest["Files"]))
        identifier = manifest.get("System-Identifier", system_identifier)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError(f"its {_MANIFEST} is damaged; {_TAKE_ANOTHER}") from None
    if identifier != system_identifier:
        raise ValueError(
            f"its {_MANIFEST} is of another cluster (number {identifier!s:.40}, the files are of {system_identifier}); {_TAKE_ANOTHER}"
        )
    wrong = list(_wrong(directory, listed))
    if wrong:
        more = f" and {len(wrong) - _NAMES_TOLD} more" if len(wrong) > _NAMES_TOLD else ""
        raise ValueError(
            f"its {_MANIFEST} does not fit its files: {', '.join(wrong[:_NAMES_TOLD])}{more}; {_TAKE_ANOTHER}"
        )


def _entry(file: dict[str, Any]) -> tuple[str, int]:
    # A name that is no UTF-8 stands there as hexadecimal digits.
    name = (
        file["Path"]
        if "Path" in file
        else bytes.fromhex(file["Encoded-Path"]).decode(errors="surrogateescape")
    )
    if not isinstance(name, str) or "\0" in name or not isinstance(file["Size"], int):
        raise TypeError(name)
    return name, file["Size"]


def _wrong(directory: Path, listed: dict[str, int]) -> Iterator[str]:
    """What is missing or has another size, then what is too much."""
    for name, size in listed.items():
        try:
            there = (directory / name).lstat().st_size
        except OSError:
            yield f"{_shorten(name)} is missing"
            continue
        if there != size and name not in _NOT_LISTED:
            yield f"{_shorten(name)} has {there:,} bytes, not {size:,}"
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if (
            path.is_file()
            and name not in listed
            and name not in _NOT_LISTED
            and not name.startswith(_WAL_PREFIX)
        ):
            yield f"{_shorten(name)} is not in it"


def _shorten(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS_TOLD else f"{name[:_NAME_CHARACTERS_TOLD]}…"


_FILE_BYTES_MAX = 8192

# system_identifier, pg_control_version, catalog_version_no, state.
_START = struct.Struct("<QIII")

_FLOAT_FORMAT = struct.pack("<d", 1234567.0)

# blcksz, relseg_size, xlog_blcksz, xlog_seg_size, nameDataLen, indexMaxKeys, toast_max_chunk_size, loblksize, float8ByVal
# (and its padding), data_checksum_version.
_SIZES = struct.Struct("<8I?3xI")

_SHUT_DOWN, _SHUT_DOWN_IN_RECOVERY = 1, 2

# src/include/catalog/catversion.h; it does not change within a major version.
CATALOGUES: Mapping[int, int] = {15: 202209061, 16: 202307071, 17: 202406281, 18: 202506291}

# As PostgreSQL is compiled unless it is asked otherwise: bytes of a table's file, NAMEDATALEN, INDEX_MAX_KEYS, float8 by value.
_USUAL_LIMITS = (GIB, 64, 32, True)

_PID_FILE = "postmaster.pid"
_PROCESS = re.compile(r"[0-9]{1,10}")
_HOW_TO_COPY = "or give a base backup of it (pg_basebackup)"


@dataclass(frozen=True)
class ControlFile:
    """Of one data directory, whose cluster has the number `system_identifier`. `digest` tells two states of it apart: it covers the cluster's number and its last checkpoint."""

    major: int
    system_identifier: int
    catalogue: int
    block_size_bytes: int
    wal_block_size_bytes: int
    wal_segment_bytes: int
    data_checksums: bool
    digest: str


@dataclass(frozen=True)
class ControlSizes:
    """What initdb and the compiler decided of a cluster, whatever state it is in."""

    block_size_bytes: int
    wal_block_size_bytes: int
    wal_segment_bytes: int
    data_checksums: bool


def read_sizes(directory: Path) -> ControlSizes:
    """Of a data directory, its server running or not; OSError, or ValueError for a control file that is none."""
    content = plain_bytes(directory / "global" / "pg_control", _FILE_BYTES_MAX)
    at = content.find(_FLOAT_FORMAT) + len(_FLOAT_FORMAT)
    if at < _START.size or len(content) < at + _SIZES.size:
        raise ValueError("it is damaged, or of another architecture")
    block, _, wal_block, wal_segment, *_, checksums = _SIZES.unpack_from(content, at)
    return ControlSizes(block, wal_block, wal_segment, checksums > 0)


def read_control_file(directory: Path, *, proc: Path = PROC) -> ControlFile:
    """That of a data directory that can be copied; ValueError says in a sentence why it cannot.

    It can where its server was shut down, or where it is a base backup, whose label says where recovery begins.
    """
    if directory.is_file():
        raise ValueError("it is a file; unpack a backup first (base.tar, and pg_wal.tar into its pg_wal)")
    try:
        version = plain_text(directory / "PG_VERSION").strip()
        content = plain_bytes(directory / "global" / "pg_control", _FILE_BYTES_MAX)
        label = read_label(directory)
        why_not_ended = _why_not_ended(directory, proc)
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(
            "it is no data directory of PostgreSQL: PG_VERSION or global/pg_control is missing"
        ) from None
    except OSError as error:
        raise ValueError(f"global/pg_control or PG_VERSION cannot be read: {error.strerror}") from None
    at = content.find(_FLOAT_FORMAT) + len(_FLOAT_FORMAT)
    if not version.isdecimal() or at < _START.size or len(content) < at + _SIZES.size:
        raise ValueError("its PG_VERSION or global/pg_control is damaged, or of another architecture")
    identifier, _, catalogue, state = _START.unpack_from(content)
    block, blocks, wal_block, wal_segment, *limits, _, _, by_value, checksums = _SIZES.unpack_from(
        content, at
    )
    if why_not_ended is not None:
        raise ValueError(why_not_ended)
    if state == _SHUT_DOWN and label:
        raise ValueError(
            f"its {LABEL} is stale: a server was shut down on these files, and recovery would begin before that; take the label away "
            "if you ran that server, or take another backup"
        )
    if state == _SHUT_DOWN_IN_RECOVERY and not label:
        raise ValueError(f"its server was a standby; promote it and shut it down, {_HOW_TO_COPY}")
    if state != _SHUT_DOWN and not label:
        raise ValueError(f"its server was not shut down; start it and shut it down, {_HOW_TO_COPY}")
    if (block * blocks, *limits, by_value) != _USUAL_LIMITS:
        raise ValueError(
            "its server was compiled with other limits than PostgreSQL's own (size of a file, length of a name)"
        )
    return ControlFile(
        major=int(version),
        system_identifier=identifier,
        catalogue=catalogue,
        block_size_bytes=block,
        wal_block_size_bytes=wal_block,
        wal_segment_bytes=wal_segment,
        data_checksums=checksums > 0,
        digest=hashlib.sha256(content + label).hexdigest(),
    )


def _why_not_ended(directory: Path, proc: Path) -> str | None:
    """Why a server may still write to the files, by the file that it removes when it ends; None without that."""
    try:
        first, *_ = plain_text(directory / _PID_FILE).split("\n")
    except FileNotFoundError:
        return None
    # Of a server in single-user mode the number is negative.
    number = first.strip().removeprefix("-")
    if not _PROCESS.fullmatch(number):
        # Somebody else's words, as many as they like.
        number = "?"
    try:
        # The postmaster and all its children work there; none of another account's is known to.
        runs = number != "?" and (proc / number / "cwd").samefile(directory)
    except PermissionError:
        runs = True
    except OSError:
        runs = False
    if runs:
        return f"its server runs (process {number}); stop it, {_HOW_TO_COPY}"
    return (
        f"its server did not end well, or runs in a container or on another machine ({_PID_FILE} is there, and its process {number} "
        f"is not here); start it and shut it down, {_HOW_TO_COPY}"
    )


# What decides how a server starts and who may ask it. The taker's own stay; others' are left where they are.
CONFIGURATION = frozenset(("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf"))

# Of a server that ran: not data.
_LEFT = CONFIGURATION | {"postmaster.pid", "postmaster.opts", "log", "pg_log", "current_logfiles"}

# A slot would keep WAL for nobody.
_EMPTIED = frozenset(("pg_replslot", "pg_stat_tmp", "pg_notify", "pg_dynshmem"))

# Folder of links, and what a server makes those links of when it recovers from a backup.
_TABLESPACES, _TABLESPACE_MAP = "pg_tblspc", "tablespace_map"

_WAL = "pg_wal"

# On top of what an account of its own would have: a copy is the server's alone.
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700

# A server's own folders are three deep at most (pg_logical/snapshots, pg_wal/archive_status).
_DEEPEST = 8


@dataclass(frozen=True)
class ClusterLayout:
    """What tells two restored copies of a database apart: the build, and what initdb was asked."""

    build: EngineBuild
    data_checksums: bool | None

    @property
    def key(self) -> str:
        """What a visit knows the copy by that it needs."""
        return f"restored {self.build.digest[:16]} {self.data_checksums}"


def copy_data(source: Path, target: Path, account: Account) -> int:
    """Replace the data in `target` by a copy of those in `source`, and give it to `account`; the bytes copied.

    The configuration of `target` stays. Links, special files, files of another owner than the directory's and
    tablespaces are refused, each before it is opened.
    """
    for entry in target.iterdir():
        if entry.name in CONFIGURATION:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    copied = 0
    for path, file in _files(source, target, account):
        with os.fdopen(file, "rb") as opened, path.open("xb") as fresh:
            shutil.copyfileobj(opened, fresh, 1 << 20)
            copied += fresh.tell()
        path.chmod(_FILE_MODE)
        os.chown(path, account.uid, account.gid)
    return copied


def size_of(data: Path) -> int:
    """The bytes of its files; OSError where one of its folders cannot be read, or lies too deep for a data directory."""
    return sum(Path(place, name).lstat().st_size for place, _, _, names in _walk(data) for name in names)


def state_of(data: Path) -> str:
    """A digest of what would be copied: each file's name, size and time of its last change. OSError as above."""
    digest = hashlib.sha256()
    for place, below, folders, names in _walk(data):
        _leave_out(below, folders, names)
        folders.sort()
        for name in sorted(names):
            found = Path(place, name).lstat()
            digest.update(os.fsencode(f"{below}/{name}\0{found.st_size} {found.st_mtime_ns}\n"))
    return digest.hexdigest()


def obstacles_to_copy(data: Path) -> Iterator[str]:
    """Why `copy_data` would refuse these files, each with the way out: said where a plan names them, before anything is built. OSError as above."""
    owner = data.stat().st_uid
    for place, below, folders, names in _walk(data):
        _leave_out(below, folders, names)
        tablespaces = _tablespaces(below, folders, names)
        if tablespaces:
            # Its links are told by that.
            folders.clear()
            names.clear()
            yield tablespaces
        for name in (*folders, *names):
            why = _why_not_copied(Path(place, name).lstat(), below, name, owner)
            if why is not None:
                yield why


def _walk(data: Path) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Each folder, its path below `data`, and what is in it, as os.walk has that."""

    def refuse(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(data, onerror=refuse):
        below = os.path.relpath(place, data)
        if below.count(os.sep) >= _DEEPEST:
            raise OSError(
                errno.ELOOP,
                f"folders lie more than {_DEEPEST} deep, and a data directory has none there",
                place,
            )
        yield place, below, folders, names


def _files(source: Path, target: Path, account: Account) -> Iterator[tuple[Path, int]]:
    """Each file as its place in `target` and a descriptor to be closed; folders are made on the way."""
    owner = source.stat().st_uid
    for place, folders, names, at in os.fwalk(source, follow_symlinks=False):
        below = os.path.relpath(place, source)
        if below.count(os.sep) >= _DEEPEST:
            raise BedplateError(
                f"{source} has folders more than {_DEEPEST} deep, and a data directory has none there"
            )
        _leave_out(below, folders, names)
        here = target / below
        tablespaces = _tablespaces(below, folders, names)
        if tablespaces:
            raise BedplateError(f"{source}: {tablespaces}")
        for name in folders:
            _demand(os.stat(name, dir_fd=at, follow_symlinks=False), source, below, name, owner)
            (here / name).mkdir(mode=_FOLDER_MODE)
            os.chown(here / name, account.uid, account.gid)
        for name in names:
            _demand(os.stat(name, dir_fd=at, follow_symlinks=False), source, below, name, owner)
            # Of what was opened once more: its owner may have put something else there meanwhile.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
            try:
                _demand(os.fstat(file), source, below, name, owner)
            except BedplateError:
                os.close(file)
                raise
            yield here / name, file


def _leave_out(below: str, folders: list[str], names: list[str]) -> None:
    """Take what is no data out of what a walk has of a folder."""
    if below in _EMPTIED:
        folders.clear()
        names.clear()
    if below == ".":
        for entries in (folders, names):
            entries[:] = [name for name in entries if name not in _LEFT and not name.endswith(".signal")]


def _tablespaces(below: str, folders: list[str], names: list[str]) -> str | None:
    links = [*folders, *names] if below == _TABLESPACES else []
    if not links and not (below == "." and _TABLESPACE_MAP in names):
        return None
    which = f" ({', '.join(sorted(links))})" if links else ""
    return (
        f"it has tablespaces{which}, whose files lie elsewhere; move its tables into pg_default "
        "(ALTER TABLE ALL IN TABLESPACE … SET TABLESPACE pg_default) and drop them (DROP TABLESPACE)"
    )


def _demand(status: os.stat_result, source: Path, below: str, name: str, owner: int) -> None:
    why = _why_not_copied(status, below, name, owner)
    if why is not None:
        raise BedplateError(f"{source}: {why}")


def _why_not_copied(status: os.stat_result, below: str, name: str, owner: int) -> str | None:
    """Of an entry as it is itself, no link followed."""
    shown = name if below == "." else f"{below}/{name}"
    if shown == _WAL and stat.S_ISLNK(status.st_mode):
        return (
            f"its {shown} is a link (initdb --waldir), and no link is followed; "
            "`pg_basebackup --pgdata=COPY --checkpoint=fast` makes a copy of a running server without one"
        )
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return f"its {shown} is a link or no regular file, and is not copied; put what it leads to in its place, or take it away"
    if status.st_uid != owner:
        return f"its {shown} belongs to account {status.st_uid}, the data directory to {owner}, and is not copied; give it to that account"
    return None
