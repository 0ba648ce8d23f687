"""What stands on a device that a plan would erase: looked at before anybody is asked, and never written to."""

from __future__ import annotations

import contextlib
import os
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.devices.block_tree import BlockTree
from bedplate.host.devices.signature import read_signatures
from bedplate.units import format_size

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.host.command import Commands

# Of the superblock of ext2, ext3 and ext4, from the start of the device (ext4's ext4.h, `struct ext4_super_block`).
_SUPERBLOCK, _SUPERBLOCK_BYTES = 1024, 1024
_MOUNTED_AT, _WRITTEN_AT, _MAGIC_AT, _LAST_PLACE_AT, _PLACE_BYTES = 0x2C, 0x30, 0x38, 0x88, 64
_MAGIC = 0xEF53


@dataclass(frozen=True)
class FoundOn:
    """What is on a device or a partition: `signatures` in words, None where they cannot be read; the last use that it tells of."""

    path: str
    size_bytes: int
    signatures: tuple[str, ...] | None
    last_use: str | None

    @property
    def words(self) -> str:
        """`/dev/sdb1, 10 GiB: ext4 labelled 'data', last written 2026-11-20, last mounted on /srv`."""
        held = "not readable" if self.signatures is None else ", ".join(self.signatures) or "no signature"
        used = f", {self.last_use}" if self.last_use else ""
        return f"{self.path}, {format_size(self.size_bytes)}: {held}{used}"


@dataclass(frozen=True)
class DeviceContents:
    """A device with what is on it and its partitions."""

    model: str
    found: tuple[FoundOn, ...]


def device_contents(
    device: Path | str, commands: Commands, tree: BlockTree | None = None
) -> DeviceContents | None:
    """What is on a device and its partitions; None where no such device is there. To read signatures needs root."""
    tree = tree or BlockTree()
    name = tree.name_at(device)
    if name is None:
        return None
    found = []
    for part in (name, *tree.partitions(name)):
        path = tree.node(part)
        try:
            signatures: tuple[str, ...] | None = tuple(map(str, read_signatures(path, commands)))
        except BedplateError:
            signatures = None
        found.append(FoundOn(path, tree.size_bytes(part), signatures, last_use(path)))
    return DeviceContents(tree.model(tree.whole(name)), tuple(found))


def last_use(path: Path | str) -> str | None:
    """When an ext file system was last written and where it was mounted; None for others, which do not tell."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        block = os.pread(file, _SUPERBLOCK_BYTES, _SUPERBLOCK)
    except OSError:
        return None
    finally:
        os.close(file)
    if len(block) < _SUPERBLOCK_BYTES or struct.unpack_from("<H", block, _MAGIC_AT) != (_MAGIC,):
        return None
    mounted, written = (struct.unpack_from("<I", block, at)[0] for at in (_MOUNTED_AT, _WRITTEN_AT))
    said = [f"last written {_day(written)}"] if written else []
    place = block[_LAST_PLACE_AT : _LAST_PLACE_AT + _PLACE_BYTES].split(b"\0")[0]
    if mounted and place:
        shown = "".join(char if char.isprintable() else "?" for char in place.decode(errors="replace"))
        said.append(f"last mounted {_day(mounted)} on {shown}")
    return ", ".join(said) or None


def _day(seconds: int) -> str:
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    return "at an unknown time"
