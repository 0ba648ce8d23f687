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
    from collections.abc import Iterable, Iterator, Sequence

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
class Layout:
    """What an adapter knows of a device. Without `chunks` the map of a file is of the device itself."""

    areas: tuple[OwnBlocks, ...] = ()
    chunks: tuple[Chunk, ...] = ()


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
        self._areas = sorted(layout.areas, key=lambda area: area.first)
        placed = (each for extent in extents for each in _on_device(extent, layout.chunks))
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
        if self._levels.type not in ("xfs", "btrfs"):
            return
        known = metadata_of(self._levels)
        at = 0
        while at < len(data):
            part = min(len(data) - at, GRID_BYTES - (offset + at) % GRID_BYTES)
            with data[at : at + part] as block:
                kind = known.kind(device, offset + at, block)
            if kind is not None:
                yield kind
            at += part


def _on_device(extent: PlacedExtent, chunks: Sequence[Chunk]) -> Iterator[tuple[int, int, PlacedExtent]]:
    """Where on the device: address, length, and the file's extent."""
    if not chunks:
        yield extent.address, extent.length, extent
    for chunk in chunks:
        if chunk.logical <= extent.address < chunk.logical + chunk.length:
            for copy in chunk.copies:
                yield copy + extent.address - chunk.logical, extent.length, extent
