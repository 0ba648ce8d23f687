"""Which blocks that were written are a file system's own metadata, by what stands in them.

A log of writes says where and what, and not why. XFS and Btrfs sign their blocks. ext3 and ext4 name every metadata
block in a descriptor of their journal before they write it to its place. Of other types, and of ext without a journal,
any block that is written over counts: among these are the engine's own pages.

Sources: fs/xfs/libxfs/xfs_format.h and xfs_da_format.h; fs/btrfs/fs.h (BTRFS_SUPER_INFO_OFFSET, BTRFS_MAGIC);
include/linux/jbd2.h.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.cell import FilesystemLevels

SUPERBLOCK = "superblock"
GROUP_HEADER = "allocation group header"
DIRECTORY = "directory block"
TREE = "b-tree block"
INODES = "inodes"
JOURNALLED = "block that the journal names"
REWRITTEN = "block written over"

SECTOR_BYTES = 512
# The grid on which a device with 4 KiB sectors writes whole.
GRID_BYTES = 4096

_XFS = {
    b"XFSB": SUPERBLOCK,
    **dict.fromkeys((b"XAGF", b"XAGI", b"XAFL"), GROUP_HEADER),
    **dict.fromkeys((b"XDB3", b"XDD3", b"XDF3", b"XD2B", b"XD2D", b"XD2F"), DIRECTORY),
    **dict.fromkeys((b"AB3B", b"AB3C", b"IAB3", b"FIB3", b"BMA3", b"RMB3", b"R3FC"), TREE),
    **dict.fromkeys((b"ABTB", b"ABTC", b"IABT", b"FIBT", b"BMAP"), TREE),
}
# Leaves and nodes of directories and attributes: the number is the third of their header, beside their own address.
_XFS_DA = struct.Struct(">8xH6xQ")
_XFS_DA_MAGICS = (0x3DF1, 0x3DFF, 0x3EBE, 0x3BEE)
_XFS_INODE = b"IN"
_XFS_INODE_VERSIONS = (1, 2, 3)

_BTRFS_SUPERBLOCKS = (64 * 2**10, 64 * 2**20, 256 * 2**30)
_BTRFS_MAGIC, _BTRFS_MAGIC_AT = b"_BHRfS_M", 0x40

_JBD2_MAGIC = struct.pack(">I", 0xC03B3998)
_JBD2_HEADER = struct.Struct(">III")
_JBD2_DESCRIPTOR, _JBD2_SUPERBLOCKS = 1, (3, 4)
_JBD2_BLOCK_SIZE_AT, _JBD2_INCOMPAT_AT = 12, 40
_JBD2_64BIT, _JBD2_CSUM_V2, _JBD2_CSUM_V3 = 2, 8, 16
_JBD2_SAME_UUID, _JBD2_LAST_TAG = 2, 8
_SMALLEST_BLOCK = 1024
_DISK = 0


class Metadata(Protocol):
    """Looks at every write of a log in turn."""

    # Whether a block that was never written before counts.
    counts_new: bool

    def kind(self, device: int, offset: int, block: memoryview, /) -> str | None:
        """What the metadata is that these bytes at `offset` of a device hold; None for what is none.

        `block` reaches over no border of the grid.
        """
        ...


def metadata_of(levels: FilesystemLevels) -> Metadata:
    """What tells metadata of a type, for one log."""
    if levels.type == "xfs":
        return _Xfs()
    if levels.type == "btrfs":
        return _Btrfs()
    if levels.type in ("ext3", "ext4") and levels.journal != "none":
        return _Journalled()
    return _Rewritten()


class _Xfs:
    """Each block and each inode begins with what it is, at the beginning of a sector.

    A log's records are none of these: the first bytes of each of their sectors are the number of a cycle.
    """

    counts_new = True

    def kind(self, device: int, offset: int, block: memoryview) -> str | None:
        """The first that is found, which is all of the block but where blocks are smaller than the grid."""
        for start in range(0, len(block), SECTOR_BYTES) if device == _DISK else ():
            magic = bytes(block[start : start + 4])
            found = _XFS.get(magic)
            if found is not None:
                return found
            if magic[:2] == _XFS_INODE and block[start + 4] in _XFS_INODE_VERSIONS:
                return INODES
            if len(block) - start >= _XFS_DA.size:
                number, address = _XFS_DA.unpack_from(block, start)
                if number in _XFS_DA_MAGICS and address * SECTOR_BYTES == offset + start:
                    return DIRECTORY
        return None


class _Btrfs:
    """Trees go to free blocks and are reached from the superblock, the only one that is written over."""

    counts_new = True

    def kind(self, device: int, offset: int, block: memoryview) -> str | None:
        """Its copies have fixed places."""
        signed = bytes(block[_BTRFS_MAGIC_AT : _BTRFS_MAGIC_AT + len(_BTRFS_MAGIC)]) == _BTRFS_MAGIC
        return SUPERBLOCK if device == _DISK and offset in _BTRFS_SUPERBLOCKS and signed else None


class _Journalled:
    """Blocks that a descriptor of the journal, which may be on a device of its own, named earlier in the log."""

    counts_new = True

    def __init__(self) -> None:
        self._named: set[int] = set()
        self._block_bytes = 0
        self._incompatible = 0

    def kind(self, device: int, offset: int, block: memoryview) -> str | None:
        """A block of the journal names others, and is none of them."""
        step = self._block_bytes or _SMALLEST_BLOCK
        for start in range(0, len(block) - _JBD2_HEADER.size, step):
            if block[start : start + 4] == _JBD2_MAGIC:
                self._take(block[start:])
                return None
        return JOURNALLED if device == _DISK and offset // GRID_BYTES in self._named else None

    def _take(self, block: memoryview) -> None:
        type_ = _JBD2_HEADER.unpack_from(block)[1]
        if type_ in _JBD2_SUPERBLOCKS:
            (size,) = struct.unpack_from(">I", block, _JBD2_BLOCK_SIZE_AT)
            (self._incompatible,) = struct.unpack_from(">I", block, _JBD2_INCOMPAT_AT)
            self._block_bytes = size if _SMALLEST_BLOCK <= size <= GRID_BYTES else 0
        elif type_ == _JBD2_DESCRIPTOR and self._block_bytes:
            for number in self._tags(block[: self._block_bytes]):
                self._named.add(number * self._block_bytes // GRID_BYTES)

    def _tags(self, block: memoryview) -> Iterator[int]:
        """The numbers of the blocks that follow the descriptor, by the journal's features."""
        at, third = _JBD2_HEADER.size, bool(self._incompatible & _JBD2_CSUM_V3)
        wide = bool(self._incompatible & _JBD2_64BIT)
        tag_bytes = 16 if third else 8 + 4 * wide + 2 * bool(self._incompatible & _JBD2_CSUM_V2)
        while at + tag_bytes <= len(block):
            low, checksum_and_flags = struct.unpack_from(">II", block, at)
            # A later tag has 32 bits of flags, an earlier one 16 of a checksum before its flags.
            flags = checksum_and_flags if third else checksum_and_flags & 0xFFFF
            high = struct.unpack_from(">I", block, at + 8)[0] if wide else 0
            yield high << 32 | low
            if flags & _JBD2_LAST_TAG:
                return
            at += tag_bytes + (0 if flags & _JBD2_SAME_UUID else 16)


class _Rewritten:
    """Anything that takes the place of something."""

    counts_new = False

    def kind(self, _device: int, _offset: int, _block: memoryview) -> str | None:
        """It is not looked at."""
        return REWRITTEN
