"""Whose the blocks of a device are: files by their maps, the file system's own by its tools.

A file's map is the kernel's. What no file has is looked up in the areas that the type's adapter read, and else recognised by what
was written there, as `metadata_blocks.py` does.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.filesystem.metadata_blocks import GRID_BYTES, metadata_of
from bedplate.model.power_cut_blame import WrittenPlace
from bedplate.units import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bedplate.filesystem.blocks.file_extents import PlacedExtent
    from bedplate.model.cell import FilesystemLevels

_DISK = 0


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

    def __init__(self, levels: FilesystemLevels, layout: Layout, extents: Iterable[PlacedExtent]) -> None:
        self._levels = levels
        self._signed = layout.signed
        self._areas = sorted(layout.areas, key=lambda area: area.first)
        placed = (
            (at, length, extent)
            for extent in extents
            for at, length in layout.on_device(extent.address, extent.length)
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
