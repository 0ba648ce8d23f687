"""Where on the recorded disk the files of an engine are, and what the file system keeps for itself."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from bedplate.filesystem.blocks.owners import Layout
from bedplate.filesystem.metadata_blocks import SUPERBLOCK
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.files import folders_below
from bedplate.host.pages.extents import extents_of
from bedplate.model.fault_order import ByteRange
from bedplate.model.filesystem import TRAITS
from bedplate.model.power_cut_blame import WrittenPlace
from bedplate.workloads.faulty_disk.faults import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.filesystem.blocks.resting import AtRest, RestingBlocks
    from bedplate.host.command import Commands
    from bedplate.visit.fault_engine import FaultEngine

    FinderAtRest: TypeAlias = Callable[[Sequence[Path], Commands, Sequence[int]], RestingBlocks]

# Their FIEMAP gives addresses of the file system's own, or none; of Btrfs' the chunk tree says where they lie, and of ZFS its debugger,
# on a disk at rest (`filesystem/blocks/pool_at_rest.py`).
_OWN_ADDRESSES = ("btrfs", "zfs", "bcachefs")
# A block that is written goes to a new place, which nobody knows before.
_COPIES_ON_WRITE = (*_OWN_ADDRESSES, "nilfs2")
_EVERYWHERE = "**/*"
_SECTOR = 512
_GONE = (errno.ENOENT, errno.ENAMETOOLONG)
_NO_MAP = (errno.EOPNOTSUPP, errno.ENOTTY)
# Offset and length of the first copy, by the kernel's sources (include/uapi, include/linux, fs/*/): the part that a mount reads, as rot
# in the rest of its block shows nothing.
_SUPERBLOCKS: Mapping[str, ByteRange] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), ByteRange(1024, 1024)),
    # Behind their first sector are a name (f2fs) and what is reserved (nilfs2).
    **dict.fromkeys(("f2fs", "nilfs2"), ByteRange(1024, _SECTOR)),
    "xfs": ByteRange(0, _SECTOR),
    "btrfs": ByteRange(64 * 1024, 4096),
    "jfs": ByteRange(32 * 1024, _SECTOR),
}

# What a debugger finds of a file system that is not mounted.
_AT_REST: Mapping[Place, Callable[[AtRest, Sequence[int]], RestingBlocks]] = {
    Place.LOG: lambda disk, numbers: disk.files(numbers),
    Place.DATA: lambda disk, numbers: disk.files(numbers),
    Place.INODE: lambda disk, numbers: disk.inodes(numbers),
    Place.SUPERBLOCK: lambda disk, _: disk.superblock(),
}
# Where a layout has them. Inodes of ext are in its metadata too.
_AREAS: Mapping[Place, WrittenPlace] = {
    Place.JOURNAL: WrittenPlace.JOURNAL,
    Place.METADATA: WrittenPlace.METADATA,
}


def _copied(filesystem: str) -> str:
    return f"{filesystem} writes each block to a new place, which nobody knows before"


class PlaceUnknown(Exception):
    """A place cannot be found on the disk: then nothing is hit, and there is no result."""


def wants_layout(place: Place, filesystem: str) -> bool:
    """Whether a place is found by what the file system's own tools say of the disk."""
    if place in _AREAS or place is Place.INODE:
        return True
    return filesystem in _OWN_ADDRESSES and place in (Place.LOG, Place.DATA)


@dataclass(frozen=True)
class DiskMap:
    """Whose the blocks of a recorded disk are: the engine's files by their maps, the file system's own by its tools, as `layout`.

    `journal_bytes` is the size of an external journal's device, None without one.
    """

    engine: FaultEngine
    data_directory: Path
    filesystem: str
    layout: Layout = field(default_factory=Layout)
    journal_bytes: int | None = None

    def is_on_journal(self, place: Place) -> bool:
        """Whether a place is the device of an external journal, and no part of the disk."""
        return place is Place.JOURNAL and self.journal_bytes is not None

    def ranges(self, place: Place, *, is_written: bool = False) -> tuple[ByteRange, ...]:
        """The blocks of a place as they are now, none for anywhere; PlaceUnknown where they cannot be found, with the reason.

        `is_written` asks for where the next writes go.
        """
        if place is Place.ANYWHERE:
            return ()
        if place is Place.SUPERBLOCK:
            if self.filesystem not in _SUPERBLOCKS:
                raise PlaceUnknown(f"where {self.filesystem} has its superblock is not known here")
            return (_SUPERBLOCKS[self.filesystem],)
        if place is Place.JOURNAL and self.journal_bytes is not None:
            return (ByteRange(0, self.journal_bytes),)
        if place in _AREAS:
            return self._own(place, is_written=is_written)
        if place is Place.INODE:
            return self._inodes()
        return self._files(place, is_written=is_written)

    def strangers(self, hit: ByteRange, place: Place) -> tuple[Path, ...]:
        """Files of the engine that have a part of what was hit and are of another place: blocks are given away while clients write."""
        others = {Place.LOG: Place.DATA, Place.DATA: Place.LOG}
        if place not in others:
            return ()
        paths, mine = self.files(others[place]), self.files(place)
        return tuple(
            path
            for path in paths
            if path not in mine and any(_meet(hit, each) for each in self._extents([path]))
        )

    def files(self, place: Place) -> tuple[Path, ...]:
        """The files of a place."""
        patterns = self.engine.log_files if place is Place.LOG else self.engine.data_files
        found = (path for pattern in patterns for path in self._matching(pattern))
        return tuple(path for path in found if path.is_file() and not path.is_symlink())

    def _matching(self, pattern: str) -> Sequence[Path]:
        """A stranger's folders may lie thousands deep, which a glob follows by calling itself."""
        if pattern != _EVERYWHERE:
            return sorted(self.data_directory.glob(pattern))
        below = folders_below(self.data_directory)
        return sorted(Path(entry.path) for _, entries in below for entry in entries)

    def numbers(self, place: Place) -> tuple[int, ...]:
        """The inode numbers of a place's files, by which they are found at rest; none of what is no file's. PlaceUnknown without a file."""
        if place in (Place.SUPERBLOCK, Place.METADATA):
            return ()
        if place is Place.INODE:
            return tuple(sorted(self._engine_inodes()))
        patterns = self._patterns(place)
        found = self._inode_numbers(place)
        if not found:
            raise PlaceUnknown(f"there is no file of {', '.join(patterns)} yet")
        return tuple(sorted(found))

    def _inode_numbers(self, *places: Place) -> set[int]:
        return {path.stat().st_ino for place in places for path in self.files(place)}

    def _patterns(self, place: Place) -> tuple[str, ...]:
        patterns = self.engine.log_files if place is Place.LOG else self.engine.data_files
        if not patterns:
            raise PlaceUnknown("the engine has no log of its own")
        return patterns

    def _files(self, place: Place, *, is_written: bool) -> tuple[ByteRange, ...]:
        patterns = self._patterns(place)
        if is_written and self.filesystem in _COPIES_ON_WRITE:
            raise PlaceUnknown(_copied(self.filesystem))
        if self.filesystem in _OWN_ADDRESSES and not self.layout.chunks:
            raise PlaceUnknown(
                f"{self.filesystem} does not say where on the disk a file is, as long as it is mounted"
            )
        found = self._extents(self.files(place))
        if not found:
            raise PlaceUnknown(f"no file of {', '.join(patterns)} has a block of the disk yet")
        return found

    def _own(self, place: Place, *, is_written: bool) -> tuple[ByteRange, ...]:
        own = (area for area in self.layout.areas if area.place is _AREAS[place])
        # Superblocks are a place of their own.
        areas = [area for area in own if not area.words.endswith(SUPERBLOCK)]
        if not areas:
            if place is Place.JOURNAL and not TRAITS[self.filesystem].journals:
                raise PlaceUnknown(f"{self.filesystem} has no journal")
            if is_written and place is Place.METADATA and self.filesystem in _COPIES_ON_WRITE:
                raise PlaceUnknown(_copied(self.filesystem))
            raise PlaceUnknown(
                f"where {self.filesystem} has its {place.value} on this disk is not known here"
            )
        return joined([ByteRange(area.first, area.end - area.first) for area in areas])

    def _inodes(self) -> tuple[ByteRange, ...]:
        inodes = self.layout.inodes
        if inodes is None:
            raise PlaceUnknown(f"where {self.filesystem} has an inode is not known here")
        found = [
            ByteRange(at, inodes.size)
            for number in self._engine_inodes()
            if (at := inodes.place(number)) is not None
        ]
        return tuple(sorted(found))

    def _engine_inodes(self) -> set[int]:
        found = self._inode_numbers(Place.DATA, Place.LOG)
        if not found:
            raise PlaceUnknown("the engine has no file yet")
        return found

    def _extents(self, paths: Sequence[Path]) -> tuple[ByteRange, ...]:
        """As they are: to write them back first would write what the fault is to hit. PlaceUnknown where the file system maps no file."""
        found: list[ByteRange] = []
        for path in paths:
            try:
                mapped = extents_of(path, written_back=False)
            except OSError as error:
                # An engine deletes files while it works.
                if error.errno in _GONE:
                    continue
                if error.errno in _NO_MAP:
                    raise PlaceUnknown(
                        f"the kernel does not say where a file of {self.filesystem} lies on the disk (FIEMAP, FIBMAP), so "
                        "nothing was made to fail"
                    ) from error
                raise
            for each in mapped:
                if each.at is not None:
                    found += starmap(ByteRange, self.layout.on_device(each.at, each.length))
        return joined(found)


def finder_at_rest(filesystem: str, place: Place) -> FinderAtRest | None:
    """What finds a place on the images of a file system that is not mounted, of files by their inode numbers.

    None where what is mounted says it.
    """
    adapter = filesystem_for(filesystem)
    if place is Place.METADATA and (metadata := adapter.metadata_at_rest) is not None:
        return lambda images, commands, _: metadata(images, commands).metadata()
    at_rest, found = adapter.at_rest, _AT_REST.get(place)
    if at_rest is None or found is None:
        return None
    return lambda images, commands, numbers: found(at_rest(images, commands), numbers)


def ranges_at_rest(found: RestingBlocks) -> tuple[ByteRange, ...]:
    """The blocks of a place; PlaceUnknown with the reason where none can be named."""
    if not found.ranges:
        said = "; ".join(found.left_out) or "its files hold nothing"
        raise PlaceUnknown(f"no block of the disk can be named: {said}")
    return joined(found.ranges)


def _meet(one: ByteRange, other: ByteRange) -> bool:
    return one.start < other.start + other.length and other.start < one.start + one.length


def joined(ranges: Sequence[ByteRange]) -> tuple[ByteRange, ...]:
    """Those that touch as one, in the order of the disk."""
    found: list[ByteRange] = []
    for each in sorted(ranges):
        if found and each.start <= found[-1].start + found[-1].length:
            end = max(found[-1].start + found[-1].length, each.start + each.length)
            found[-1] = ByteRange(found[-1].start, end - found[-1].start)
        else:
            found.append(each)
    return tuple(found)
