"""What stands on a device is told as it is, and a superblock that lies breaks nothing."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from bedplate.host.block_tree import FoundOn, device_contents, last_use
from bedplate.host.command import Commands

if TYPE_CHECKING:
    from pathlib import Path

DAY_S = 86400


def superblock(mounted: int, written: int, place: bytes, magic: int = 0xEF53) -> bytes:
    block = bytearray(1024)
    struct.pack_into("<II", block, 0x2C, mounted, written)
    struct.pack_into("<H", block, 0x38, magic)
    block[0x88 : 0x88 + len(place)] = place
    return bytes(1024) + bytes(block)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (superblock(DAY_S, 2 * DAY_S, b"/srv"), "last written 1970-01-03, last mounted 1970-01-02 on /srv"),
        (superblock(0, 2 * DAY_S, b""), "last written 1970-01-03"),
        (superblock(0, 0, b""), None),
        (superblock(DAY_S, DAY_S, b"/srv", magic=0), None),
        (superblock(1, 1, b"\x1b[31m\xff" + b"x" * 60), "last mounted 1970-01-01 on ?[31m\ufffd" + "x" * 58),
        (bytes(1500), None),
        (b"", None),
    ],
    ids=["used", "made", "new", "another", "hostile", "short", "empty"],
)
def test_an_ext_file_system_says_when_it_was_used(
    tmp_path: Path, content: bytes, expected: str | None
) -> None:
    (tmp_path / "disk").write_bytes(content)
    found = last_use(tmp_path / "disk")
    assert found == expected if expected is None else (found or "").endswith(expected)


def test_what_is_no_device_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert device_contents(tmp_path / "file", Commands()) is None
    assert device_contents(tmp_path / "nowhere", Commands()) is None
    assert last_use(tmp_path / "nowhere") is None


def test_what_cannot_be_read_is_not_nothing() -> None:
    unread = FoundOn("/dev/sdb", 2**30, None, None)
    assert "/dev/sdb, 1 GiB: not readable" == unread.words
    assert "/dev/sdb, 1 GiB: no signature" == FoundOn("/dev/sdb", 2**30, (), None).words
    held = FoundOn("/dev/sdb", 2**30, ("ext4 labelled 'data'", "dos"), "last written 2026-11-20")
    assert "/dev/sdb, 1 GiB: ext4 labelled 'data', dos, last written 2026-11-20" == held.words
