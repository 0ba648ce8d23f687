"""Whose the blocks of a device are.

Here: files by their maps (`file_extents`), the file system's own by its tools (`layouts`), and both together (`owners`); both of
a disk that nobody has mounted (`resting`, `pool_at_rest`, `nilfs2_at_rest`).
Not here: what an engine calls a part of its file (`page_names` of its folder).
May import: `host`, `model`, `filesystem`.
Must not import: `visit`, `engines`, `plan`, `study`, `workloads`.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bedplate.cuts.blame import WrittenPlace
from bedplate.cuts.faults import ByteRange
from bedplate.errors import BedplateError
from bedplate.host.pages import extents_of
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import LABEL
from bedplate.units import KIB, MIB, one_line

if TYPE_CHECKING:
    from bedplate.host.command import Commands


@dataclass(frozen=True)
class PlacedExtent:
    """`length` bytes of a file from `offset` on, which lie at `address`: of the device, or where the type has them, a logical one."""

    path: str
    offset: int
    address: int
    length: int
    is_folder: bool = False


def extents_below(root: Path) -> Iterator[PlacedExtent]:
    """Of every file and directory below a mount point, on the same file system; paths below it.

    What cannot be read, or has no map, as a directory of XFS, is left out.
    """
    device = root.stat().st_dev
    folders = [""]
    while folders:
        folder = folders.pop()
        yield from _of(root, folder, is_folder=True)
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if status.st_dev != device:
                continue
            if stat.S_ISDIR(status.st_mode):
                folders.append(path)
            elif stat.S_ISREG(status.st_mode):
                yield from _of(root, path, is_folder=False)


def sizes_below(root: Path) -> dict[str, int]:
    """The sizes of the regular files below a folder, by their paths below it; what cannot be read is left out."""
    sizes = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG((status := path.lstat()).st_mode):
                    sizes[str(path.relative_to(root))] = status.st_size
    return sizes


def _of(root: Path, path: str, *, is_folder: bool) -> Iterator[PlacedExtent]:
    try:
        found = extents_of(root / path)
    except OSError:
        return
    for extent in found:
        if extent.at is not None:
            yield PlacedExtent(path, extent.start, extent.at, extent.length, is_folder)


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


def metadata_of(levels: FilesystemLevels) -> Metadata:
    """What tells metadata of a type, for one log."""
    if levels.type == "xfs":
        return _Xfs()
    if levels.type == "btrfs":
        return _Btrfs()
    if levels.type in ("ext3", "ext4") and levels.journal != "none":
        return _Journalled()
    return _Rewritten()


_XFS_RECORD = b"\xfe\xed\xba\xbe"


class CommitPart(Flag):
    """What a write is of a commit, from whose end on what was changed before its beginning is there after a cut."""

    NONE = 0
    BEGIN = auto()
    END = auto()


def commit_part(of_type: str, device: int, offset: int, block: memoryview) -> CommitPart:
    """Of a file system of that type; `block` are bytes of a write at `offset` up to a border of the grid.

    Where the type's commits are not known any write may end one.
    """
    if of_type in ("ext3", "ext4"):
        found = CommitPart.NONE
        for start in range(0, len(block) - _JBD2_HEADER.size, _SMALLEST_BLOCK):
            if block[start : start + 4] == _JBD2_MAGIC:
                found |= _JBD2_PARTS.get(_JBD2_HEADER.unpack_from(block, start)[1], CommitPart.NONE)
        return found
    if of_type == "xfs":
        starts = range(0, len(block), SECTOR_BYTES)
        is_record = any(block[start : start + 4] == _XFS_RECORD for start in starts)
        return CommitPart.BEGIN | CommitPart.END if is_record else CommitPart.NONE
    if of_type == "btrfs":
        return CommitPart.END if device == _DISK and offset == _BTRFS_SUPERBLOCKS[0] else CommitPart.NONE
    return CommitPart.END


_JBD2_PARTS = {1: CommitPart.BEGIN, 2: CommitPart.END}


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


@dataclass(frozen=True)
class OwnBlocks:
    """Bytes of the disk from `first` to before `end` that are the file system's own; `words` say what."""

    first: int
    end: int
    place: WrittenPlace
    words: str


@dataclass(frozen=True)
class Chunk:
    """Where logical addresses from `logical` on lie: at each of `copies` once."""

    logical: int
    length: int
    copies: tuple[int, ...]


@dataclass(frozen=True)
class InodeTables:
    """Inodes of `size` bytes whose numbers count on from group to group, each group's in one row from its table on."""

    tables: tuple[int, ...]
    per_group: int
    size: int

    def place(self, number: int) -> int | None:
        """Where an inode begins; None of one that is in no table."""
        group, index = divmod(number - 1, self.per_group)
        return self.tables[group] + index * self.size if 0 <= group < len(self.tables) else None


@dataclass(frozen=True)
class NumberedInodes:
    """Inodes whose number is where they are: bits of a group, of a block of that, and of a slot of that (fs/xfs/libxfs/xfs_format.h)."""

    group_bytes: int
    block_bits: int
    slot_bits: int
    block_bytes: int
    size: int

    def place(self, number: int) -> int | None:
        """Where an inode begins."""
        slot, rest = number & ((1 << self.slot_bits) - 1), number >> self.slot_bits
        block, group = rest & ((1 << self.block_bits) - 1), rest >> self.block_bits
        return group * self.group_bytes + block * self.block_bytes + slot * self.size


@dataclass(frozen=True)
class Layout:
    """What an adapter knows of a device. Without `chunks` the map of a file is of the device itself; `inodes` where they have places of their own.

    `signed` says what a block of the grid is that is in no area, by what is in it.
    """

    areas: tuple[OwnBlocks, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    inodes: InodeTables | NumberedInodes | None = None
    signed: Callable[[memoryview], str | None] | None = None

    def on_device(self, address: int, length: int) -> Iterator[tuple[int, int]]:
        """Where what a file's map names lies on the device, and how long it is there: at each copy once."""
        if not self.chunks:
            yield address, length
        for chunk in self.chunks:
            if chunk.logical <= address < chunk.logical + chunk.length:
                for copy in chunk.copies:
                    yield copy + address - chunk.logical, length


@dataclass(frozen=True)
class Owner:
    """Whose some bytes are, from `start` of what was written on. `path` is a file's, below the mount point, and `offset` where in it they begin."""

    place: WrittenPlace
    words: str
    path: str | None = None
    offset: int = 0
    length: int = 0
    start: int = 0


class BlockOwners:
    """Of one image."""

    def __init__(
        self, levels: FilesystemLevels, disk_layout: Layout, extents: Iterable[PlacedExtent]
    ) -> None:
        self._levels = levels
        self._signed = disk_layout.signed
        self._areas = sorted(disk_layout.areas, key=lambda area: area.first)
        placed = (
            (at, length, extent)
            for extent in extents
            for at, length in disk_layout.on_device(extent.address, extent.length)
        )
        self._extents = sorted(placed, key=lambda each: each[0])
        self._starts = [address for address, _, _ in self._extents]

    def of(self, device: int, offset: int, data: memoryview) -> tuple[Owner, ...]:
        """Of bytes that were written there; files first."""
        if device != _DISK:
            return (Owner(WrittenPlace.JOURNAL, "the external journal"),)
        files = tuple(self._files(offset, len(data)))
        if files:
            return files
        areas = [area for area in self._areas if area.first < offset + len(data) and offset < area.end]
        if areas:
            own = dict.fromkeys((area.place, area.words) for area in areas)
            return tuple(Owner(place, words) for place, words in own)
        kinds = dict.fromkeys(self._kinds(device, offset, data))
        if kinds:
            return tuple(Owner(WrittenPlace.METADATA, kind) for kind in kinds)
        return (Owner(WrittenPlace.UNKNOWN, f"no file's and no known block at byte {offset}"),)

    def _files(self, offset: int, length: int) -> Iterator[Owner]:
        end = offset + length
        for number in range(max(0, bisect_right(self._starts, offset) - 1), len(self._extents)):
            address, extent_length, extent = self._extents[number]
            if address >= end:
                return
            first, last = max(address, offset), min(address + extent_length, end)
            if first < last:
                at = extent.offset + first - address
                if extent.is_folder:
                    yield Owner(
                        WrittenPlace.METADATA,
                        f"directory {one_line(extent.path) or '/'}",
                        length=last - first,
                        start=first - offset,
                    )
                    continue
                yield Owner(
                    WrittenPlace.OTHER_FILE,
                    f"{one_line(extent.path)}, byte {at}",
                    extent.path,
                    at,
                    last - first,
                    first - offset,
                )

    def _kinds(self, device: int, offset: int, data: memoryview) -> Iterator[str]:
        known = metadata_of(self._levels) if self._levels.type in ("xfs", "btrfs") else None
        if known is None and self._signed is None:
            return
        at = 0
        while at < len(data):
            part = min(len(data) - at, GRID_BYTES - (offset + at) % GRID_BYTES)
            with data[at : at + part] as block:
                kind = (
                    known.kind(device, offset + at, block) if known else self._signed and self._signed(block)
                )
            if kind is not None:
                yield kind
            at += part


@dataclass(frozen=True)
class RestingBlocks:
    """`ranges` of the disk, in the order of its tool; `left_out` says what has none that can be named, each kind once."""

    ranges: tuple[ByteRange, ...] = ()
    left_out: tuple[str, ...] = ()


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


def read_superblocks(path: Path) -> tuple[Superblock | None, Superblock | None]:
    """Both, None for one that is not whole."""
    with path.open("rb") as file:
        found = []
        for place in superblocks_at(file.seek(0, os.SEEK_END)):
            file.seek(max(0, place))
            found.append(decode_superblock(file.read(_SUPERBLOCK_BYTES)))
    return found[0], found[1]


def newest_superblock(path: Path) -> Superblock | None:
    """The one that a mount begins with; None where neither is whole."""
    whole = [each for each in read_superblocks(path) if each is not None]
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


def _own_blocks(content: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Where in the piece runs of the file system's own blocks begin, and how many they are."""
    magic, header, flags, blocks, files, length = SUMMARY.unpack_from(content)
    if magic != SUMMARY_MAGIC or not flags & _HAS_SUPER_ROOT or length > len(content):
        raise _NotUnderstood
    at, offset = -(-length // size), header
    yield 0, at
    for _ in range(files):
        offset = _behind(offset, _FILE.size, 1, size)
        if offset > length:
            raise _NotUnderstood
        number, here, data = _FILE.unpack_from(content, offset - _FILE.size)
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


def _behind(offset: int, entry_bytes: int, count: int, size: int) -> int:
    """Where `count` entries of so many bytes end that begin at `offset`: none reaches over the end of a block (nilfs_skip_summary_info)."""
    left = (size - offset % size) // entry_bytes
    if count <= left:
        return offset + entry_bytes * count
    count, most = count - left, size // entry_bytes
    whole = -(-count // most) - 1
    return (offset // size + 1 + whole) * size + entry_bytes * (count - whole * most)


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
    def area(first: str, last: str | None, written_place: WrittenPlace, words: str) -> OwnBlocks:
        end = int(last or first) + 1
        return OwnBlocks(int(first) * block_bytes, end * block_bytes, written_place, words)

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

    def run(descriptor: bytes, written_place: WrittenPlace, words: str) -> Iterator[OwnBlocks]:
        # A pxd_t: 24 bits of length, 40 of address, the upper 8 of them first.
        first, low = struct.unpack("<II", descriptor)
        start, blocks = (first >> 24) << 32 | low, first & 0xFFFFFF
        if blocks:
            yield OwnBlocks(start * block_bytes, (start + blocks) * block_bytes, written_place, words)

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


_LIMIT_S = 600.0

# include/sys/vdev_impl.h: two labels and what is kept for boot blocks are in front, and offsets count from behind them.
_FRONT_BYTES = 4 * MIB

# Of a label, the ring of uberblocks; a slot is a sector of the pool's, at least 1 KiB and at most 8.
_RING_BYTES, _RING_AT = 128 * KIB, 128 * KIB

_SLOT_BITS_LEAST, _SLOT_BITS_MOST = 10, 13

# struct uberblock (include/sys/uberblock_impl.h): magic, version, transaction group.
_UBERBLOCK_HEAD = struct.Struct("=QQQ")

_UBERBLOCK_MAGIC = 0x00BAB10C

# The only vdev with data in a pool of bedplate's; a log device is another.
_DISK_VDEV, _FIRST_LABEL = 0, 0

# The object that holds the dnodes of all others (include/sys/dnode.h), a slot of which is an inode's number.
_DNODES, _DNODE_BYTES = 0, 512

_SAID_BYTES = 300
_NOT_UNDERSTOOD = "blocks with a pointer that is not understood"
_OBJECT = re.compile(r"^ +Object +lvl +iblk .*\n +(\d+) ", re.MULTILINE)
_POINTER = re.compile(r"^ *([0-9a-f]+) +L0 +(.*)$", re.MULTILINE)
_ADDRESS = re.compile(r"DVA\[\d\]=<(\d+):([0-9a-f]+):([0-9a-f]+)>")
_SIZE = re.compile(r" size=([0-9a-f]+)L/([0-9a-f]+)P ")
_ASHIFT = re.compile(r"^ +ashift: (\d+)$", re.MULTILINE)

_UBERBLOCK = re.compile(
    r"^ +Uberblock\[(\d+)\]\n.*?^\ttxg = (\d+)\n.*?^\ttimestamp = (\d+) .*?^ +labels = ([\d ]+)$",
    re.MULTILINE | re.DOTALL,
)


class PoolAtRest:
    """An exported pool on `images` of its disk, and of its log device where it has one."""

    def __init__(self, images: Sequence[Path], commands: Commands) -> None:
        self._images, self._commands = images, commands

    def files(self, numbers: Sequence[int], /) -> RestingBlocks:
        """The data of files, as long as it is on the disk: compressed, and each copy of `copies`."""
        return self._of_objects(numbers, data_blocks)

    def inodes(self, numbers: Sequence[int], /) -> RestingBlocks:
        """The blocks of dnodes, each of many that are compressed together; ZFS keeps copies of them."""
        return self._of_objects([_DNODES], lambda said: dnode_blocks(said, numbers))

    def _of_objects(self, numbers: Sequence[int], parse: Callable[[str], RestingBlocks]) -> RestingBlocks:
        where = [word for image in self._images for word in ("-p", str(image))]
        # -L: it does not read the maps of free space. Six times -b: each pointer whole, as a gang block shows in no shorter form.
        words = ["zdb", "-e", *where, "-L", "-dddddd", "-bbbbbb", f"{LABEL}/", *map(str, numbers)]
        said, refusal = self._zdb_output(words)
        missing = {str(number) for number in numbers} - set(_OBJECT.findall(said))
        if missing:
            return RestingBlocks(
                left_out=(f"zdb shows no file of number {', '.join(sorted(missing))}: {refusal}",)
            )
        return parse(said)

    def superblock(self) -> RestingBlocks:
        """The active uberblock in the first of four labels; its checksum is of the whole slot."""
        disk = self._images[0]
        said, refusal = self._zdb_output(["zdb", "-lu", str(disk)])
        found = active_uberblock(said)
        if found is None:
            return RestingBlocks(left_out=(f"zdb shows no uberblock in the first label: {refusal}",))
        slot, group = found
        with disk.open("rb") as file:
            file.seek(slot.start)
            magic, _, held = _UBERBLOCK_HEAD.unpack(file.read(_UBERBLOCK_HEAD.size))
        if (magic, held) != (_UBERBLOCK_MAGIC, group):
            return RestingBlocks(
                left_out=(
                    f"at byte {slot.start} there is no uberblock of transaction group {group}, as zdb says",
                )
            )
        return RestingBlocks((slot,))

    def _zdb_output(self, words: Sequence[str]) -> tuple[str, str]:
        """What zdb printed, and its last words; its status does not tell what it could not read."""
        try:
            done = self._commands.run(words, timeout_s=_LIMIT_S, check=False)
        except BedplateError as error:
            return "", str(error)
        return done.stdout, done.output[-_SAID_BYTES:] or "(it printed nothing)"


def data_blocks(output: str) -> RestingBlocks:
    """Of `zdb -dddddd -bbbbbb POOL/ NUMBER…`: the blocks of files. Those of indirect pointers are none of them."""
    return _placed(pointer for _, pointer in _POINTER.findall(output))


def dnode_blocks(output: str, numbers: Sequence[int]) -> RestingBlocks:
    """Of `zdb -dddddd -bbbbbb POOL/ 0`: the blocks that hold the dnodes of these numbers, each of which is a slot of 512 bytes."""
    offsets = [number * _DNODE_BYTES for number in numbers]

    def holds_one(start: int, pointer: str) -> bool:
        size = _SIZE.search(pointer)
        return size is not None and any(start <= each < start + int(size[1], 16) for each in offsets)

    return _placed(
        pointer for start, pointer in _POINTER.findall(output) if holds_one(int(start, 16), pointer)
    )


def _placed(pointers: Iterable[str]) -> RestingBlocks:
    ranges: list[ByteRange] = []
    left_out: dict[str, int] = {}
    for pointer in pointers:
        found = tuple(_copies(pointer))
        ranges += (each for each in found if isinstance(each, ByteRange))
        for why in (each for each in found if isinstance(each, str)):
            left_out[why] = left_out.get(why, 0) + 1
    return RestingBlocks(tuple(ranges), tuple(f"{why}: {count}" for why, count in left_out.items()))


def _copies(pointer: str) -> Iterator[ByteRange | str]:
    """Each copy of a block, or why it is nowhere."""
    if pointer.startswith("EMBEDDED "):
        yield "blocks embedded in their pointers"
        return
    if pointer.startswith("HOLE "):
        return
    size, addresses = _SIZE.search(pointer), _ADDRESS.findall(pointer)
    if size is None or not addresses:
        yield _NOT_UNDERSTOOD
    elif " gang " in pointer:
        yield "blocks in pieces (gang blocks), whose places zdb does not print"
    elif " contiguous " not in pointer:
        yield _NOT_UNDERSTOOD
    else:
        length = int(size[2], 16)
        for vdev, offset, allocated in addresses:
            if int(vdev) != _DISK_VDEV:
                yield "blocks on another device than the disk"
            elif length > int(allocated, 16):
                yield _NOT_UNDERSTOOD
            else:
                yield ByteRange(_FRONT_BYTES + int(offset, 16), length)


def active_uberblock(output: str) -> tuple[ByteRange, int] | None:
    """Of `zdb -lu DEVICE`: the slot in the first label that a mount takes, with its transaction group; None where it shows none.

    ZFS takes the highest transaction group, and of two the later one (module/zfs/vdev_label.c: `vdev_uberblock_compare`).
    """
    ashift = _ASHIFT.search(output)
    shown = [
        (int(group), int(stamp), int(number))
        for number, group, stamp, labels in _UBERBLOCK.findall(output)
        if str(_FIRST_LABEL) in labels.split()
    ]
    if ashift is None or not shown:
        return None
    group, _, number = max(shown)
    slot_bytes = 1 << min(max(int(ashift[1]), _SLOT_BITS_LEAST), _SLOT_BITS_MOST)
    if number >= _RING_BYTES // slot_bytes:
        return None
    return ByteRange(_RING_AT + number * slot_bytes, slot_bytes), group
