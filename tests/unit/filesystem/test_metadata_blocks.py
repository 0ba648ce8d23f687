"""What tells a file system's own metadata in a log of writes."""

from __future__ import annotations

import struct

import pytest

from bedplate.filesystem.blocks import (
    DIRECTORY,
    GROUP_HEADER,
    INODES,
    JOURNALLED,
    REWRITTEN,
    SUPERBLOCK,
    TREE,
    metadata_of,
)
from bedplate.model.cell import FilesystemLevels

MAGIC = 0xC03B3998
V3, WIDE, CSUM_V2 = 16, 2, 8
DISK, JOURNAL = 0, 1


def block(content: bytes = b"", *, at: int = 0, size: int = 4096) -> memoryview:
    return memoryview(content.rjust(at + len(content), b"\0").ljust(size, b"\0"))


@pytest.mark.parametrize(
    ("content", "at", "expected"),
    [
        (b"XDB3", 0, DIRECTORY),
        (b"XDD3", 512, DIRECTORY),
        (b"XAGF", 512, GROUP_HEADER),
        (b"AB3B", 0, TREE),
        (b"XFSB", 0, SUPERBLOCK),
        (b"IN\x81\xa4\x03", 1024, INODES),
        (b"IN\x81\xa4\x20", 0, None),
        # Within a sector it is anybody's text.
        (b"XDB3", 100, None),
        (b"", 0, None),
    ],
)
def test_xfs_signs_its_blocks_at_the_beginning_of_a_sector(
    content: bytes, at: int, expected: str | None
) -> None:
    metadata = metadata_of(FilesystemLevels("xfs"))
    assert expected == metadata.kind(DISK, 40960, block(content, at=at))


@pytest.mark.parametrize(("address", "expected"), [(40960 // 512, DIRECTORY), (7, None)])
def test_a_leaf_of_an_xfs_directory_names_its_own_address(address: int, expected: str | None) -> None:
    leaf = block(struct.pack(">IIHHIQ", 1, 2, 0x3DFF, 0, 0, address))
    assert expected == metadata_of(FilesystemLevels("xfs")).kind(DISK, 40960, leaf)


def test_an_external_log_of_xfs_is_no_metadata_in_its_place() -> None:
    assert metadata_of(FilesystemLevels("xfs")).kind(JOURNAL, 0, block(b"XDB3")) is None


@pytest.mark.parametrize(
    ("offset", "expected"), [(65536, SUPERBLOCK), (64 * 2**20, SUPERBLOCK), (131072, None)]
)
def test_a_superblock_of_btrfs_stands_in_its_places_only(offset: int, expected: str | None) -> None:
    content = block(b"_BHRfS_M", at=0x40)
    assert expected == metadata_of(FilesystemLevels("btrfs")).kind(DISK, offset, content)


def journal_superblock(incompatible: int, block_bytes: int = 4096) -> memoryview:
    head = struct.pack(">IIII", MAGIC, 4, 0, block_bytes).ljust(40, b"\0")
    return block(head + struct.pack(">I", incompatible))


def descriptor(numbers: list[int], incompatible: int) -> memoryview:
    """As jbd2 writes one: the first tag is followed by a UUID, the others say that it is the same."""
    content = struct.pack(">III", MAGIC, 1, 9)
    for place, number in enumerate(numbers):
        flags = (2 if place else 0) | (8 if place == len(numbers) - 1 else 0)
        low, high = number & 0xFFFFFFFF, number >> 32
        if incompatible & V3:
            content += struct.pack(">IIII", low, flags, high, 0xC5C5C5C5)
        else:
            # The checksum is no flag.
            content += struct.pack(">IHH", low, 0xFFF7, flags)
            content += struct.pack(">I", high) if incompatible & WIDE else b""
            content += b"cc" if incompatible & CSUM_V2 else b""
        content += b"" if place else bytes(16)
    return block(content)


@pytest.mark.parametrize("incompatible", [0, WIDE, WIDE | V3, V3, CSUM_V2, WIDE | CSUM_V2])
@pytest.mark.parametrize("device", [DISK, JOURNAL])
def test_a_block_that_the_journal_named_is_metadata_from_then_on(incompatible: int, device: int) -> None:
    metadata = metadata_of(FilesystemLevels("ext4"))
    numbers = [17, 2000, 300 + (1 << 32 if incompatible & WIDE else 0)]
    assert metadata.kind(DISK, 17 * 4096, block(b"x")) is None
    for written in (journal_superblock(incompatible), descriptor(numbers, incompatible)):
        assert metadata.kind(device, 9 * 4096, written) is None
    assert [JOURNALLED] * 3 == [metadata.kind(DISK, number * 4096, block(b"x")) for number in numbers]
    assert metadata.kind(DISK, 18 * 4096, block(b"x")) is None
    assert metadata.kind(JOURNAL, 17 * 4096, block(b"x")) is None


def test_blocks_smaller_than_the_grid_make_all_of_it_metadata() -> None:
    metadata = metadata_of(FilesystemLevels("ext3"))
    metadata.kind(DISK, 0, journal_superblock(0, 1024))
    # It stands in the third block of the grid's.
    metadata.kind(DISK, 8192, block(bytes(descriptor([21], 0))[:1024], at=2048))
    assert metadata.kind(DISK, 5 * 4096, block(b"x")) == JOURNALLED


@pytest.mark.parametrize("levels", [FilesystemLevels("ext4", journal="none"), FilesystemLevels("f2fs")])
def test_of_other_types_whatever_is_written_over_may_be_metadata(levels: FilesystemLevels) -> None:
    metadata = metadata_of(levels)
    assert (REWRITTEN, False) == (metadata.kind(DISK, 0, block(b"x")), metadata.counts_new)
