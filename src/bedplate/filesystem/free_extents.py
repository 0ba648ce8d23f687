"""The pieces of a mounted file system's free space, as the kernel tells them: of ext4 and XFS by GETFSMAP, of Btrfs by its trees.

No tool is needed, and nothing has to be unmounted.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import struct
from typing import TYPE_CHECKING

from bedplate.host.patience import wait_until
from bedplate.model.free_space import FreeSpace, in_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_SETTLING_S = 2.0
_SET_BITS = re.compile("1+")

# include/uapi/linux/fsmap.h: FS_IOC_GETFSMAP, struct fsmap_head without its keys, struct fsmap.
_GETFSMAP = 0xC0C0583B
_FSMAP_HEAD = struct.Struct("=IIII48x")
_FSMAP = struct.Struct("=IIQQQQ24x")
_FSMAP_AT_ONCE = 4096
_FSMAP_SPECIAL, _FSMAP_LAST = 0x10, 0x20
_FSMAP_FREE = 1
_LOWEST, _HIGHEST = (0,) * 6, (2**32 - 1, 2**32 - 1, 2**64 - 1, 2**64 - 1, 2**64 - 1, 0)

# include/uapi/linux/btrfs.h and btrfs_tree.h: BTRFS_IOC_TREE_SEARCH_V2, BTRFS_IOC_DEV_INFO, and their structures.
_TREE_SEARCH, _DEVICE_INFO = 0xC0709411, 0xD000941E
_SEARCH = struct.Struct("=7Q4I4QQ")
_ITEM = struct.Struct("=QQQII")
_SEARCH_BYTES = 1 << 20
_CHUNK = struct.Struct("<QQQQ")
_DEVICE = struct.Struct("=Q16xQQ")
_DEVICE_BYTES = 4096
_CHUNK_TREE, _FREE_SPACE_TREE = 3, 10
_CHUNK_ITEM, _FREE_EXTENT, _FREE_BITMAP = 228, 199, 200
_OF_DATA = 1
_MOST = 2**64 - 1


def free_space_of(kind: str, mount_point: Path, moment: str) -> FreeSpace:
    """Of the file system of that type at a mount point, all of which is written back first; without pieces where nothing tells them."""
    place = os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        tell = _PIECES.get(kind)
        found = None
        if tell is not None:
            # What dirty pages will take is still free on the disk.
            _sync(place, mount_point)
            with contextlib.suppress(OSError):
                found = _settled(tell, place)
        space = os.fstatvfs(place)
    finally:
        os.close(place)
    unit = space.f_frsize
    return FreeSpace(
        moment,
        filesystem_bytes=space.f_blocks * unit,
        used_bytes=(space.f_blocks - space.f_bfree) * unit,
        available_bytes=space.f_bavail * unit,
        **in_pieces(found),
    )


def _settled(tell: Callable[[int], tuple[int, ...] | None], place: int) -> tuple[int, ...] | None:
    """Counted until three counts are alike, for two seconds at most: XFS frees what deleted files had behind the call."""
    found = [tell(place)]

    def is_steady() -> bool:
        # It begins with that when somebody asks how much is free (xfs_inodegc_push).
        os.fstatvfs(place)
        found.append(tell(place))
        return len(found) > 2 and found[-3] == found[-2] == found[-1]

    wait_until(is_steady, deadline_s=_SETTLING_S, pause_s=0.1)
    return found[-1]


def write_back(mount_point: Path) -> None:
    """Everything of one file system goes to its device; OSError where it does not."""
    place = os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(place, mount_point)
    finally:
        os.close(place)


def _sync(place: int, mount_point: Path) -> None:
    if _LIBRARY.syncfs(place):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(mount_point))


def _by_map(place: int) -> tuple[int, ...]:
    """By GETFSMAP: bytes of each run that is free."""
    found: list[int] = []
    low = _LOWEST
    while True:
        buffer = bytearray(_FSMAP_HEAD.size + (2 + _FSMAP_AT_ONCE) * _FSMAP.size)
        _FSMAP_HEAD.pack_into(buffer, 0, 0, 0, _FSMAP_AT_ONCE, 0)
        _FSMAP.pack_into(buffer, _FSMAP_HEAD.size, *low)
        _FSMAP.pack_into(buffer, _FSMAP_HEAD.size + _FSMAP.size, *_HIGHEST)
        fcntl.ioctl(place, _GETFSMAP, buffer)
        entries = _FSMAP_HEAD.unpack_from(buffer)[3]
        flags = _FSMAP_LAST
        for index in range(entries):
            low = _FSMAP.unpack_from(buffer, _FSMAP_HEAD.size + (2 + index) * _FSMAP.size)
            flags, owner, length = low[1], low[3], low[5]
            if flags & _FSMAP_SPECIAL and owner == _FSMAP_FREE:
                found.append(length)
        if flags & _FSMAP_LAST:
            return tuple(found)


def _by_trees(place: int) -> tuple[int, ...] | None:
    """By Btrfs' free space tree, of its chunks for data; what no chunk has taken yet is one piece. None without that tree."""
    chunks = {
        start: start + _CHUNK.unpack_from(data)[0]
        for _, _, start, data in _items(place, _CHUNK_TREE, _CHUNK_ITEM, _CHUNK_ITEM)
        if _CHUNK.unpack_from(data)[3] & _OF_DATA
    }
    sector = os.fstatvfs(place).f_bsize
    found: list[tuple[int, int]] = []
    seen = False
    for kind, start, length, data in _items(place, _FREE_SPACE_TREE, _FREE_EXTENT - 1, _FREE_BITMAP):
        seen = True
        if not any(first <= start < end for first, end in chunks.items()):
            continue
        if kind == _FREE_EXTENT:
            found.append((start, length))
        elif kind == _FREE_BITMAP:
            found += in_bitmap(start, data, sector)
    if not seen:
        return None
    buffer = bytearray(_DEVICE_BYTES)
    _DEVICE.pack_into(buffer, 0, 1, 0, 0)
    fcntl.ioctl(place, _DEVICE_INFO, buffer)
    _, used_bytes, total_bytes = _DEVICE.unpack_from(buffer)
    pieces = joined_pieces(found)
    return (*pieces, total_bytes - used_bytes) if total_bytes > used_bytes else pieces


def joined_pieces(found: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Lengths of pieces by start and length, those that touch as one: a bitmap ends where another begins."""
    lengths: list[int] = []
    reached = None
    for start, length in sorted(found):
        if start == reached:
            lengths[-1] += length
        else:
            lengths.append(length)
        reached = start + length
    return tuple(lengths)


def in_bitmap(start: int, data: bytes, sector: int) -> Iterator[tuple[int, int]]:
    """Runs of set bits, each a sector that is free."""
    bits = bin(int.from_bytes(data, "little"))[:1:-1]
    for run in _SET_BITS.finditer(bits):
        yield start + run.start() * sector, (run.end() - run.start()) * sector


def _items(place: int, tree: int, first: int, last: int) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, the key's two numbers and content of a tree's items of these types."""
    start, kind, offset = 0, first, 0
    while True:
        buffer = bytearray(_SEARCH.size + _SEARCH_BYTES)
        key = (tree, start, _MOST, offset, _MOST, 0, _MOST, kind, 255, 2**32 - 1, 0, 0, 0, 0, 0)
        _SEARCH.pack_into(buffer, 0, *key, _SEARCH_BYTES)
        fcntl.ioctl(place, _TREE_SEARCH, buffer)
        number, at = _SEARCH.unpack_from(buffer)[9], _SEARCH.size
        if not number:
            return
        for _ in range(number):
            _, start, offset, kind, length = _ITEM.unpack_from(buffer, at)
            at += _ITEM.size
            if first <= kind <= last:
                yield kind, start, offset, bytes(buffer[at : at + length])
            at += length
        if offset == _MOST:
            return
        offset += 1


_PIECES: Mapping[str, Callable[[int], tuple[int, ...] | None]] = {
    "ext4": _by_map,
    "xfs": _by_map,
    "btrfs": _by_trees,
}
