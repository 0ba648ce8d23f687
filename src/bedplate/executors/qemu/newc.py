"""Writes cpio archives of the kind that a kernel unpacks as its first root: newc, uncompressed.

Format: Documentation/driver-api/early-userspace/buffer-format.rst of Linux; cpio(5), "New ASCII Format".
Entries come out in the given order with fixed times and owners, so equal content is equal bytes.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TRAILER = "TRAILER!!!"
# GNU cpio writes whole blocks of this size; the kernel skips the zeros.
_BLOCK_BYTES = 512
_LARGEST_BYTES = 0xFFFFFFFF


@dataclass(frozen=True)
class CpioEntry:
    """One file of root's: `mode` with its type (`stat.S_IFREG | 0o755`), `name` without a leading slash.

    `data` is the content, or the target of a symbolic link; `device` is (major, minor) of a device.
    """

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str, permissions: int = 0o755) -> CpioEntry:
    """An empty folder."""
    return CpioEntry(name, stat.S_IFDIR | permissions)


def regular_file(name: str, data: bytes, permissions: int = 0o644) -> CpioEntry:
    """A file with its content."""
    return CpioEntry(name, stat.S_IFREG | permissions, data)


def character_device(name: str, major: int, minor: int, permissions: int = 0o600) -> CpioEntry:
    """A character device node."""
    return CpioEntry(name, stat.S_IFCHR | permissions, device=(major, minor))


def archive(entries: Iterable[CpioEntry], *, mtime: int = 0) -> bytes:
    """The whole archive; ValueError for a name or a size that the format cannot hold.

    A folder must stand before what is in it: the kernel makes none by itself.
    """
    made = bytearray()
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        _check(entry, seen)
        seen.add(entry.name)
        links = 2 if stat.S_ISDIR(entry.mode) else 1
        made += _record(entry, number=number, links=links, mtime=mtime)
    made += _record(CpioEntry(_TRAILER, 0), number=0, links=1, mtime=0)
    return bytes(made + bytes(-len(made) % _BLOCK_BYTES))


def _check(entry: CpioEntry, seen: set[str]) -> None:
    parts = entry.name.split("/")
    if entry.name == _TRAILER or "\0" in entry.name or not all(parts) or {".", ".."} & set(parts):
        raise ValueError(f"not a name in an archive: {entry.name!r}")
    if entry.name in seen:
        raise ValueError(f"{entry.name} is in the archive twice")
    parent = "/".join(parts[:-1])
    if parent and parent not in seen:
        raise ValueError(f"{entry.name} comes before its folder {parent}")
    if len(entry.data) > _LARGEST_BYTES:
        raise ValueError(f"{entry.name} is too large for the format: {len(entry.data)} bytes")


def _record(entry: CpioEntry, *, number: int, links: int, mtime: int) -> bytes:
    name = entry.name.encode() + b"\0"
    fields = (number, entry.mode, 0, 0, links, mtime, len(entry.data), 0, 0, *entry.device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return b"".join(_padded(head)) + b"".join(_padded(entry.data))


def _padded(part: bytes) -> Iterator[bytes]:
    yield part
    yield bytes(-len(part) % 4)
