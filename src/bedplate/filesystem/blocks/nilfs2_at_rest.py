"""NILFS2 on a disk that is at rest: its two superblocks, and where the newest piece of its log has metadata.

All of NILFS2 is one log, of pieces of files and metadata. A mount begins with the newer one of two superblocks, which are written in turn. It
names the last piece that was written with a super root (nilfs_load_super_block in fs/nilfs2/the_nilfs.c). dumpseg(8) shows the pieces of a
block device, and of no image.

The formats are those of include/uapi/linux/nilfs2_ondisk.h, the order of a piece that of fs/nilfs2/segment.c and recovery.c.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.filesystem.blocks.resting import RestingBlocks
from bedplate.model.fault_order import ByteRange
from bedplate.units import KIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bedplate.host.command import Commands

# struct nilfs_super_block: magic, its length, seed and value of its checksum, the logarithm of the block size, blocks of a segment, the
# newest checkpoint, the block at which the piece with its super root begins, how it was left.
_SUPERBLOCK = struct.Struct("<6xHH2xIII24xI4xQQ44xH")
_SUPERBLOCK_BYTES, _SUPERBLOCK_MAGIC, _MOST_BITS = KIB, 0x3434, 6
# struct nilfs_segment_summary: magic, length of the header, flags, blocks of the piece, files in it, length of the summary.
SUMMARY = struct.Struct("<8xIHH24xIII12x")
SUMMARY_MAGIC, _HAS_SUPER_ROOT = 0x1EAFFA11, 4
# struct nilfs_finfo: number of the file, its blocks here, those of them that are no nodes of its tree.
_FILE = struct.Struct("<Q8xII")
# NILFS_DAT_INO, whose blocks are named by their place in it alone; cpfile, sufile and ifile beside it.
_DAT, _OWN_FILES = 3, range(3, 7)
# What the summary says of a block, in bytes: of data and of a node, in the DAT and elsewhere.
_DAT_ENTRIES, _ENTRIES = (8, 16), (16, 8)
_UNKNOWN = RestingBlocks(left_out=("no superblock of it names a piece of the log with a super root",))


@dataclass(frozen=True)
class Superblock:
    """What tells which of the two is the newer, how it was left, and where the newest piece of the log begins, in blocks."""

    checkpoint: int
    state: int
    block_bytes: int
    segment_blocks: int
    newest: int


def superblocks_at(device_bytes: int) -> tuple[int, int]:
    """Where the two superblocks of a device of that size begin (NILFS_SB_OFFSET_BYTES, NILFS_SB2_OFFSET_BYTES)."""
    return KIB, ((device_bytes >> 12) - 1) << 12


def read_superblocks(device: Path) -> tuple[Superblock | None, Superblock | None]:
    """Both, None for one that is not whole."""
    with device.open("rb") as file:
        found = []
        for place in superblocks_at(file.seek(0, os.SEEK_END)):
            file.seek(max(0, place))
            found.append(decode_superblock(file.read(_SUPERBLOCK_BYTES)))
    return found[0], found[1]


def newest_superblock(device: Path) -> Superblock | None:
    """The one that a mount begins with; None where neither is whole."""
    whole = [each for each in read_superblocks(device) if each is not None]
    return max(whole, key=lambda each: each.checkpoint, default=None)


def decode_superblock(raw: bytes) -> Superblock | None:
    """One superblock of 1 KiB; None without its magic number, or if its checksum is wrong."""
    if len(raw) < _SUPERBLOCK_BYTES:
        return None
    magic, length, seed, checksum, bits, segment, checkpoint, newest, state = _SUPERBLOCK.unpack_from(raw)
    if magic != _SUPERBLOCK_MAGIC or not _SUPERBLOCK.size <= length <= len(raw) or bits > _MOST_BITS:
        return None
    plain = raw[:16] + bytes(4) + raw[20:length]
    # The kernel's crc32_le neither begins nor ends with an inversion, zlib's does both.
    if zlib.crc32(plain, seed ^ 0xFFFFFFFF) ^ 0xFFFFFFFF != checksum:
        return None
    return Superblock(checkpoint, state, _SUPERBLOCK_BYTES << bits, segment, newest)


class Nilfs2AtRest:
    """An unmounted NILFS2 on an image of its disk."""

    def __init__(self, images: Sequence[Path], _commands: Commands) -> None:
        self._image = images[0]

    def metadata(self) -> RestingBlocks:
        """In the newest piece: its summary, the blocks of NILFS2's four own files, the super root. None, with the reason, where there is no such piece."""
        newest = newest_superblock(self._image)
        if newest is None:
            return _UNKNOWN
        try:
            found = tuple(_own_blocks(*_piece(self._image, newest)))
        except (_NotUnderstood, struct.error):
            return _UNKNOWN
        size = newest.block_bytes
        return RestingBlocks(
            tuple(ByteRange((newest.newest + at) * size, count * size) for at, count in found)
        )


class _NotUnderstood(ValueError):
    """Bytes that are no summary of a piece."""


def _piece(image: Path, superblock: Superblock) -> tuple[bytes, int]:
    """The summary of the newest piece, and the size of a block. It is neither longer than a segment nor reaches over the end of the disk."""
    size, begin = superblock.block_bytes, superblock.newest * superblock.block_bytes
    with image.open("rb") as disk:
        end = disk.seek(0, os.SEEK_END)
        if begin >= end:
            raise _NotUnderstood
        disk.seek(begin)
        head = disk.read(size)
        *_, blocks, _, length = SUMMARY.unpack_from(head)
        if blocks > superblock.segment_blocks or begin + blocks * size > end or length > blocks * size:
            raise _NotUnderstood
        return head + disk.read(max(0, length - size)), size


def _own_blocks(summary: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Where in the piece runs of the file system's own blocks begin, and how many they are."""
    magic, header, flags, blocks, files, length = SUMMARY.unpack_from(summary)
    if magic != SUMMARY_MAGIC or not flags & _HAS_SUPER_ROOT or length > len(summary):
        raise _NotUnderstood
    at, offset = -(-length // size), header
    yield 0, at
    for _ in range(files):
        offset = _behind(offset, _FILE.size, 1, size)
        if offset > length:
            raise _NotUnderstood
        number, here, data = _FILE.unpack_from(summary, offset - _FILE.size)
        if data > here or at + here >= blocks:
            raise _NotUnderstood
        entries = _DAT_ENTRIES if number == _DAT else _ENTRIES
        for each, count in zip(entries, (data, here - data), strict=True):
            offset = _behind(offset, each, count, size)
        if number in _OWN_FILES:
            yield at, here
        at += here
    if at != blocks - 1:
        raise _NotUnderstood
    yield at, 1


def _behind(offset: int, each: int, count: int, size: int) -> int:
    """Where `count` entries of so many bytes end that begin at `offset`: none reaches over the end of a block (nilfs_skip_summary_info)."""
    left = (size - offset % size) // each
    if count <= left:
        return offset + each * count
    count, most = count - left, size // each
    whole = -(-count // most) - 1
    return (offset // size + 1 + whole) * size + each * (count - whole * most)
