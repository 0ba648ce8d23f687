"""What `global/pg_control` of a data directory says, read without a program of the server's version.

Its fields move between versions. Those that are needed stand at its start, which has not changed since 9.4, and behind a number that
is the same in all of them: `floatFormat` (src/include/catalog/pg_control.h), after which come the sizes that were compiled in.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.own_data.base_backup import LABEL, read_label
from bedplate.host.plain_file import plain_bytes, plain_text
from bedplate.host.process import PROC
from bedplate.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
