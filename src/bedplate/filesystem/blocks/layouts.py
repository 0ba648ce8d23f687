"""What the tools of a file system print of its own blocks, as a `Layout`.

The formats are those of e2fsprogs 1.47, xfsprogs 6.1 and btrfs-progs 6.2; what is printed otherwise is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.filesystem.blocks.owners import Chunk, InodeTables, Layout, NumberedInodes, OwnBlocks
from bedplate.filesystem.metadata_blocks import SUPERBLOCK
from bedplate.model.power_cut_blame import WrittenPlace
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

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
