"""Which blocks of NILFS2's newest piece of its log are metadata, of pieces that are made here as fs/nilfs2/segment.c makes them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, cast

import pytest

from bedplate.cuts.faults import ByteRange
from bedplate.filesystem.blocks import Nilfs2AtRest, RestingBlocks

BLOCK = 1024
DAT, CPFILE, SUFILE, IFILE, A_FILE = 3, 4, 5, 6, 12
HEADER, HAS_SUPER_ROOT = 64, 4
FIRST = 40
NOT_UNDERSTOOD = RestingBlocks(left_out=("no superblock of it names a piece of the log with a super root",))


def piece(
    files: list[tuple[int, int, int]], *, flags: int = HAS_SUPER_ROOT, magic: int = 0x1EAFFA11, more: int = 0
) -> bytes:
    """The summary of files: number, blocks of data, nodes; no entry reaches over the end of a block. `more` blocks than there are."""
    body = bytearray(HEADER)

    def put(entry: bytes) -> None:
        left = BLOCK - len(body) % BLOCK
        body.extend(bytes(left if len(entry) > left else 0) + entry)

    for number, data, nodes in files:
        put(struct.pack("<QQII", number, 1, data + nodes, data))
        of_data, of_node = (8, 16) if number == DAT else (16, 8)
        for size in [of_data] * data + [of_node] * nodes:
            put(b"\xff" * size)
    blocks = -(-len(body) // BLOCK) + sum(data + nodes for _, data, nodes in files) + 1 + more
    head = struct.pack(
        "<IIIHHQQQIIIIQ", 1, 2, magic, HEADER, flags, 7, 8, 9, blocks, len(files), len(body), 0, 5
    )
    body[:HEADER] = head
    return bytes(body)


def disk(path: Path, summary: bytes, *, magic: int = 0x3434, bits: int = 0, first: int = FIRST) -> Path:
    """A disk whose first superblock names the block where that summary begins; the second one is none."""
    content = bytearray(FIRST * BLOCK) + summary
    # Room for the piece's other blocks.
    content += bytes(-len(content) % 4096 + 512 * BLOCK)
    put_superblock(content, 1024, magic=magic, bits=bits, first=first)
    path.write_bytes(content)
    return path


def put_superblock(
    content: bytearray,
    at: int,
    *,
    magic: int = 0x3434,
    bits: int = 0,
    first: int = FIRST,
    checkpoint: int = 5,
    segment_blocks: int = 2048,
) -> None:
    struct.pack_into("<IHHHHIII", content, at, 2, 0, magic, 280, 0, 1, 0, bits)
    struct.pack_into("<IIQQ", content, at + 48, segment_blocks, 5, checkpoint, first)
    # crc32_le of the kernel inverts nothing.
    checksum = zlib.crc32(content[at : at + 280], 1 ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    struct.pack_into("<I", content, at + 16, checksum)


def metadata(path: Path) -> RestingBlocks:
    return Nilfs2AtRest([path], cast("Any", None)).metadata()


def blocks(*runs: tuple[int, int], first: int = FIRST) -> RestingBlocks:
    """Runs of blocks of the piece: where each begins, and how many they are."""
    return RestingBlocks(tuple(ByteRange((first + at) * BLOCK, count * BLOCK) for at, count in runs))


def test_the_summary_the_four_files_and_the_super_root_are_metadata_and_a_users_file_is_not(
    tmp_path: Path,
) -> None:
    summary = piece([(A_FILE, 3, 1), (IFILE, 2, 0), (CPFILE, 1, 0), (SUFILE, 1, 0), (DAT, 2, 1)])
    assert len(summary) < BLOCK
    expected = blocks((0, 1), (5, 2), (7, 1), (8, 1), (9, 3), (12, 1))
    assert expected == metadata(disk(tmp_path / "disk", summary))


@pytest.mark.parametrize("newer", [4, 6])
def test_of_the_two_superblocks_which_are_written_in_turn_the_newer_one_is_taken(
    tmp_path: Path, newer: int
) -> None:
    path = disk(tmp_path / "disk", piece([(DAT, 1, 0)]))
    content = bytearray(path.read_bytes())
    later = piece([(A_FILE, 1, 0), (CPFILE, 2, 0)])
    content[-16 * BLOCK : -16 * BLOCK + len(later)] = later
    first = len(content) // BLOCK - 16
    put_superblock(content, len(content) - 4096, first=first, checkpoint=newer)
    path.write_bytes(content)
    of_later = blocks((0, 1), (2, 2), (4, 1), first=first)
    assert (of_later if newer > 5 else blocks((0, 1), (1, 1), (2, 1))) == metadata(path)
    # Of a newer one that is not whole nothing is taken.
    content[-4096 + 20] ^= 1
    path.write_bytes(content)
    assert blocks((0, 1), (1, 1), (2, 1)) == metadata(path)


@pytest.mark.parametrize("length", [56, 57, 58, 59, 60, 61, 62, 63, 64, 200])
def test_no_entry_of_a_summary_of_several_blocks_reaches_over_the_end_of_one(
    tmp_path: Path, length: int
) -> None:
    summary = piece([(A_FILE, length, 1), (DAT, 90, 90), (IFILE, 1, 1)])
    ahead = -(-len(summary) // BLOCK)
    assert ahead > 3
    own = ahead + length + 1
    expected = blocks((0, ahead), (own, 180), (own + 180, 2), (own + 182, 1))
    assert expected == metadata(disk(tmp_path / "disk", summary))


@pytest.mark.parametrize(
    "broken",
    [
        {"magic": 0x1EAFFA12},
        {"flags": 3},
        {"more": 1},
    ],
    ids=["no summary", "no super root", "another count"],
)
def test_what_is_no_piece_with_a_super_root_has_no_blocks_and_says_so(
    tmp_path: Path, broken: dict[str, int]
) -> None:
    assert NOT_UNDERSTOOD == metadata(disk(tmp_path / "disk", piece([(DAT, 1, 0)], **broken)))


@pytest.mark.parametrize(
    "broken",
    [
        {"magic": 0xEF53},
        {"bits": 7},
        {"first": 10**6},
        {"first": 2**34},
        {"first": 2**62},
        {"segment_blocks": 2},
    ],
    ids=["another type", "blocks", "behind its end", "far behind", "no offset", "longer than a segment"],
)
def test_a_superblock_that_is_none_is_no_reason_to_end(tmp_path: Path, broken: dict[str, int]) -> None:
    path = disk(tmp_path / "disk", piece([(DAT, 1, 0)]))
    content = bytearray(path.read_bytes())
    put_superblock(content, 1024, **broken)
    path.write_bytes(content)
    assert NOT_UNDERSTOOD == metadata(path)


@pytest.mark.parametrize("length", [0, 1024, 1500, 2000, 4096])
def test_an_image_that_is_too_short_has_none(tmp_path: Path, length: int) -> None:
    (tmp_path / "disk").write_bytes(bytes(length))
    assert NOT_UNDERSTOOD == metadata(tmp_path / "disk")


@pytest.mark.parametrize(
    "fields",
    [
        {48: BLOCK * 9},
        {44: 2**32 - 1},
        # The file's blocks, and those of them that are data.
        {40: 2**32 - 1, 64 + 16: 2**32 - 3, 64 + 20: 2**32 - 3},
        {64 + 16: 1, 64 + 20: 2},
        {12: 2**16 - 1},
    ],
    ids=["longer than the piece", "files", "blocks", "more data than blocks", "a header beyond its end"],
)
def test_a_summary_that_says_too_much_of_itself_is_not_followed(
    tmp_path: Path, fields: dict[int, int]
) -> None:
    summary = bytearray(piece([(DAT, 1, 0)]))
    for at, value in fields.items():
        struct.pack_into("<H" if at == 12 else "<I", summary, at, value)
    path = disk(tmp_path / "disk", bytes(summary))
    assert NOT_UNDERSTOOD == metadata(path)
    content = bytearray(path.read_bytes())
    put_superblock(content, 1024, segment_blocks=2**32 - 1)
    path.write_bytes(content)
    # Counted through, it would take an hour and all memory.
    assert NOT_UNDERSTOOD == metadata(path)
