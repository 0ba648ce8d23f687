"""What the tools of a file system print of its own blocks, or its superblock holds, as a `Layout`.

The formats of tools are those of e2fsprogs 1.47, xfsprogs 6.1 and btrfs-progs 6.2; what is printed otherwise is left out.
"""

from __future__ import annotations

import re
import struct
from functools import partial
from typing import TYPE_CHECKING

from bedplate.filesystem.blocks.nilfs2_at_rest import SUMMARY, SUMMARY_MAGIC, superblocks_at
from bedplate.filesystem.blocks.owners import Chunk, InodeTables, Layout, NumberedInodes, OwnBlocks
from bedplate.filesystem.metadata_blocks import SUPERBLOCK
from bedplate.model.power_cut_blame import WrittenPlace
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_EXT_PART = re.compile(r"(?:^\s+|, )((?:[A-Z][a-z]+ |GDT )*[a-z]+) at (\d+)(?:-(\d+))?", re.MULTILINE)
_EXT_RANGE = re.compile(r"\(([^)]*)\):(\d+)(?:-(\d+))?")
_EXT_INODES = re.compile(r"^Inode(s per group| size):\s+(\d+)$", re.MULTILINE)
_EXT_TABLE = "inode table"
_XFS_NUMBER = re.compile(r"^(\w+) = (\d+)$", re.MULTILINE)
XFS_FIELDS = "logstart logblocks agblocks agblklog blocksize agcount inopblog inodesize"
_BTRFS_CHUNK = re.compile(
    r"CHUNK_ITEM (\d+)\).*?\n\s+length (\d+) .*?type ([A-Z|a-z0-9]+)\n(.*?)(?=\n\s+item |\Z)", re.DOTALL
)
_BTRFS_STRIPE = re.compile(r"stripe \d+ devid \d+ offset (\d+)")
_BTRFS_COPIES = (64 * KIB, 64 * MIB)
_BTRFS_SUPERBLOCK_BYTES = 4 * KIB
JFS_SUPERBLOCK_AT = 32 * KIB
_JFS_MAGIC = b"JFS1"
# Magic, block size, flags, the second copies of the aggregate's inodes and of their map, the log.
_JFS_SUPERBLOCK = struct.Struct("<4s12xI16xI8x8s8s8x8s")
_JFS_INLINE_LOG = 0x800
_JFS_FIXED = (
    (JFS_SUPERBLOCK_AT, 36 * KIB, SUPERBLOCK),
    (36 * KIB, 44 * KIB, "aggregate's inode map"),
    (44 * KIB, 60 * KIB, "aggregate's inodes"),
    (60 * KIB, 64 * KIB, f"second {SUPERBLOCK}"),
)
# struct node_footer: the node, its inode, flags, the checkpoint, the address of the next node.
_F2FS_FOOTER = struct.Struct("<IIIQI")
_F2FS_NODE_BYTES, _F2FS_NODES_PER_BLOCK = 4 * KIB, 455
_F2FS_AREAS = {
    "cp": "checkpoint",
    "sit": "segment information table",
    "nat": "node address table",
    "ssa": "segment summaries",
}


def ext_layout(groups: str, journal: str, block_bytes: int) -> Layout:
    """Of `dumpe2fs`, and of debugfs's `stat <8>`, the inode of the journal."""
    areas = tuple(_ext_areas(groups, journal, block_bytes))
    numbers = {name: int(value) for name, value in _EXT_INODES.findall(groups)}
    tables = tuple(area.first for area in areas if area.words == _EXT_TABLE)
    if numbers.keys() < {"s per group", " size"}:
        return Layout(areas)
    return Layout(areas, inodes=InodeTables(tables, numbers["s per group"], numbers[" size"]))


def _ext_areas(groups: str, journal: str, block_bytes: int) -> Iterator[OwnBlocks]:
    def area(first: str, last: str | None, place: WrittenPlace, words: str) -> OwnBlocks:
        end = int(last or first) + 1
        return OwnBlocks(int(first) * block_bytes, end * block_bytes, place, words)

    for words, first, last in _EXT_PART.findall(groups):
        yield area(first, last or None, WrittenPlace.METADATA, words.lower())
    for _, first, last in _EXT_RANGE.findall(journal):
        yield area(first, last or None, WrittenPlace.JOURNAL, "the journal")


def xfs_layout(superblock: str) -> Layout:
    """Of xfs_db's `sb 0`, `p` with the fields that `XFS_FIELDS` names: the log, each group's headers, and where inodes are."""
    found = {name: int(value) for name, value in _XFS_NUMBER.findall(superblock)}
    try:
        size, group_blocks = found["blocksize"], found["agblocks"]
        start, blocks = found["logstart"], found["logblocks"]
        # A number of a block is one of its group, behind that group's.
        group, within = start >> found["agblklog"], start & ((1 << found["agblklog"]) - 1)
        headers = [
            OwnBlocks(at := number * group_blocks * size, at + size, WrittenPlace.METADATA, "group headers")
            for number in range(found["agcount"])
        ]
    except KeyError:
        return Layout()
    first = (group * group_blocks + within) * size
    # Without a place it stands on a device of its own.
    log = [OwnBlocks(first, first + blocks * size, WrittenPlace.JOURNAL, "the log")] if start else []
    inodes = None
    if found.keys() >= {"inopblog", "inodesize"}:
        bits = (found["agblklog"], found["inopblog"])
        inodes = NumberedInodes(group_blocks * size, *bits, size, found["inodesize"])
    return Layout((*headers, *log), inodes=inodes)


def btrfs_layout(chunks: str) -> Layout:
    """Of `btrfs inspect-internal dump-tree -t chunk`: where logical addresses lie, and what is of trees alone."""
    found, areas = [], []
    for logical, length, kind, rest in _BTRFS_CHUNK.findall(chunks):
        copies = tuple(map(int, _BTRFS_STRIPE.findall(rest)))
        found.append(Chunk(int(logical), int(length), copies))
        if not kind.startswith("DATA"):
            words = "trees" if kind.startswith("METADATA") else "chunk tree"
            areas += [OwnBlocks(copy, copy + int(length), WrittenPlace.METADATA, words) for copy in copies]
    areas += [
        OwnBlocks(copy, copy + _BTRFS_SUPERBLOCK_BYTES, WrittenPlace.METADATA, SUPERBLOCK)
        for copy in _BTRFS_COPIES
    ]
    return Layout(tuple(areas), tuple(found))


def jfs_layout(superblock: bytes) -> Layout:
    """Of the superblock's bytes: the fixed areas, the copies of the aggregate's inodes, and a log that is inside (fs/jfs/jfs_superblock.h, jfs_filsys.h)."""
    if len(superblock) < _JFS_SUPERBLOCK.size:
        return Layout()
    magic, block_bytes, flags, inodes, inode_map, log = _JFS_SUPERBLOCK.unpack_from(superblock)
    if magic != _JFS_MAGIC or not block_bytes:
        return Layout()

    def run(descriptor: bytes, place: WrittenPlace, words: str) -> Iterator[OwnBlocks]:
        # A pxd_t: 24 bits of length, 40 of address, the upper 8 of them first.
        first, low = struct.unpack("<II", descriptor)
        start, blocks = (first >> 24) << 32 | low, first & 0xFFFFFF
        if blocks:
            yield OwnBlocks(start * block_bytes, (start + blocks) * block_bytes, place, words)

    areas = [OwnBlocks(begin, end, WrittenPlace.METADATA, words) for begin, end, words in _JFS_FIXED]
    areas += run(inodes, WrittenPlace.METADATA, "aggregate's inodes, second copy")
    areas += run(inode_map, WrittenPlace.METADATA, "aggregate's inode map, second copy")
    areas += run(log, WrittenPlace.JOURNAL, "the log") if flags & _JFS_INLINE_LOG else ()
    return Layout(tuple(areas))


def f2fs_layout(superblock: Mapping[str, str]) -> Layout:
    """Of the fields that `dump.f2fs` prints: what is before the main area, in which nodes and files share segments (include/linux/f2fs_fs.h)."""
    try:
        block_bytes = 1 << int(superblock["log_blocksize"])
        begins = [int(superblock[f"{name}_blkaddr"]) * block_bytes for name in (*_F2FS_AREAS, "main")]
        nat_blocks = int(superblock["segment_count_nat"]) << int(superblock["log_blocks_per_seg"])
        blocks = range(int(superblock["main_blkaddr"]), int(superblock["block_count"]))
    except (KeyError, ValueError):
        return Layout()
    areas = [
        OwnBlocks(begin, end, WrittenPlace.METADATA, words)
        for words, begin, end in zip(_F2FS_AREAS.values(), begins, begins[1:], strict=False)
    ]
    areas = [OwnBlocks(0, 2 * block_bytes, WrittenPlace.METADATA, SUPERBLOCK), *areas]
    # Of each block of the table there are two copies, of which one is valid.
    return Layout(tuple(areas), signed=partial(_f2fs_node, nat_blocks // 2 * _F2FS_NODES_PER_BLOCK, blocks))


def _f2fs_node(most: int, blocks: range, block: memoryview) -> str | None:
    """A node ends with its number, its file's, and where the next one stood: no other block of the main area is likely to have such an end."""
    if len(block) != _F2FS_NODE_BYTES:
        return None
    number, inode, _, _, following = _F2FS_FOOTER.unpack_from(block, len(block) - _F2FS_FOOTER.size)
    if not (0 < number < most and 0 < inode < most and following in blocks):
        return None
    return f"inode {inode}" if number == inode else f"node {number} of inode {inode}"


def nilfs2_layout(device_bytes: int) -> Layout:
    """Its two superblocks (include/uapi/linux/nilfs2_ondisk.h); all else is one log, in which files and metadata share segments."""
    places = superblocks_at(device_bytes) if device_bytes else ()
    areas = (OwnBlocks(at, at + KIB, WrittenPlace.METADATA, SUPERBLOCK) for at in places)
    return Layout(tuple(areas), signed=_nilfs2_summary)


def _nilfs2_summary(block: memoryview) -> str | None:
    """What a piece of the log begins with: two checksums, then the number of its kind."""
    is_one = len(block) >= SUMMARY.size and SUMMARY.unpack_from(block)[0] == SUMMARY_MAGIC
    return "segment summary" if is_one else None
