"""Whether a base backup is whole and its label its own, by what lies in it: a recovery from anything else ends in a wrong state, or not at all.

`backup_label` says where recovery begins (xlogrecovery.c, read_backup_label). `backup_manifest` lists the files (documentation, "Backup
Manifest Format"); it stays there once a server ran on them, so it counts beside a label alone.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from bedplate.host.plain_file import plain_bytes
from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LABEL = "backup_label"
_MANIFEST = "backup_manifest"
_LABEL_BYTES_MAX = 8192
_START = re.compile(
    r"START WAL LOCATION: [0-9A-F]+/[0-9A-F]+ \(file ([0-9A-F]{24})\)\nCHECKPOINT LOCATION: [0-9A-F]+/[0-9A-F]+\n"
)
_TAKE_ANOTHER = "take another one (pg_basebackup --wal-method=stream)"
# Of pg_verifybackup: what a manifest says nothing of, or others write.
_WAL = "pg_wal/"
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
    found = _START.match(content.decode(errors="replace"))
    if found is None:
        raise ValueError(f"its {LABEL} is damaged, and recovery has no place to begin; {_TAKE_ANOTHER}")
    if not (directory / _WAL / found[1]).exists():
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
            yield f"{_told(name)} is missing"
            continue
        if there != size and name not in _NOT_LISTED:
            yield f"{_told(name)} has {there:,} bytes, not {size:,}"
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_file() and name not in listed and name not in _NOT_LISTED and not name.startswith(_WAL):
            yield f"{_told(name)} is not in it"


def _told(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS_TOLD else f"{name[:_NAME_CHARACTERS_TOLD]}…"
