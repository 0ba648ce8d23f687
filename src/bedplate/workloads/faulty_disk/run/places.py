"""Where on the recorded disk the files of an engine are, and the file system's superblock."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from bedplate.host.pages.extents import extents_of
from bedplate.model.fault_order import ByteRange
from bedplate.workloads.faulty_disk.faults import Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.visit.fault_engine import FaultEngine

# Their FIEMAP gives addresses of the file system's own, or none: a place of a file is not known on the disk.
_OWN_ADDRESSES = ("btrfs", "zfs", "bcachefs")
# Offset and length of the first copy, by the kernel's sources (include/uapi, fs/*/).
_SECTOR = 512
_NOT_MAPPED = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENOTTY)
_SUPERBLOCKS: Mapping[str, ByteRange] = {
    **dict.fromkeys(("ext2", "ext3", "ext4", "f2fs", "nilfs2"), ByteRange(1024, 1024)),
    "xfs": ByteRange(0, _SECTOR),
    "btrfs": ByteRange(64 * 1024, 4096),
    "jfs": ByteRange(32 * 1024, 4096),
}


class PlaceUnknown(Exception):
    """A place cannot be found on the disk: then nothing is hit, and there is no result."""


def ranges_of(
    place: Place, engine: FaultEngine, data_directory: Path, filesystem: str
) -> tuple[ByteRange, ...]:
    """The blocks of a place as they are now, none for anywhere; PlaceUnknown where they cannot be found, with the reason."""
    if place is Place.ANYWHERE:
        return ()
    if place is Place.SUPERBLOCK:
        if filesystem not in _SUPERBLOCKS:
            raise PlaceUnknown(f"where {filesystem} has its superblock is not known here")
        return (_SUPERBLOCKS[filesystem],)
    patterns = engine.log_files if place is Place.LOG else engine.data_files
    if not patterns:
        raise PlaceUnknown("the engine has no log of its own")
    if filesystem in _OWN_ADDRESSES:
        raise PlaceUnknown(f"{filesystem} does not say where on the disk a file is")
    found = _extents(files_of(place, engine, data_directory))
    if not found:
        raise PlaceUnknown(f"no file of {', '.join(patterns)} has a block of the disk yet")
    return found


def strangers_in(hit: ByteRange, place: Place, engine: FaultEngine, data_directory: Path) -> tuple[Path, ...]:
    """Files of the engine that have a part of what was hit and are of another place: blocks are given away while clients write."""
    others = {Place.LOG: Place.DATA, Place.DATA: Place.LOG}
    if place not in others:
        return ()
    paths = files_of(others[place], engine, data_directory)
    mine = files_of(place, engine, data_directory)
    return tuple(
        path for path in paths if path not in mine and any(_meet(hit, each) for each in _extents([path]))
    )


def _meet(one: ByteRange, other: ByteRange) -> bool:
    return one.start < other.start + other.length and other.start < one.start + one.length


def files_of(place: Place, engine: FaultEngine, data_directory: Path) -> tuple[Path, ...]:
    """The files of a place."""
    patterns = engine.log_files if place is Place.LOG else engine.data_files
    found = (path for pattern in patterns for path in sorted(data_directory.glob(pattern)))
    return tuple(path for path in found if path.is_file() and not path.is_symlink())


def _extents(paths: Sequence[Path]) -> tuple[ByteRange, ...]:
    """As they are: to write them back first would write what the fault is to hit."""
    found: list[ByteRange] = []
    for path in paths:
        try:
            mapped = extents_of(path, written_back=False)
        except OSError as error:
            # An engine deletes files while it works, and some file systems have no map of any.
            if error.errno in _NOT_MAPPED:
                continue
            raise
        found += (ByteRange(each.at, each.length) for each in mapped if each.at is not None)
    return joined(found)


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
