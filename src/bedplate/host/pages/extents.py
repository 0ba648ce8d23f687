"""Where the pages of a file lie on its device, as its file system maps them (FIEMAP, or FIBMAP where it has none, as JFS)."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.model.page_writes import PageLayout

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

# include/uapi/linux/fiemap.h
_FS_IOC_FIEMAP = 0xC020660B
_HEAD = struct.Struct("=QQIIII")
_EXTENT = struct.Struct("=QQQQQIIII")
_SYNC, _LAST = 0x1, 0x1
# UNKNOWN, DELALLOC, ENCODED, DATA_INLINE, DATA_TAIL: no place at which a page could begin.
_WITHOUT_PLACE = 0x2 | 0x4 | 0x8 | 0x200 | 0x400
_AT_ONCE = 1024
# include/uapi/linux/fs.h: one block at a time, and for root alone.
_FIBMAP, _FIGETBSZ = 1, 2
_NUMBER = struct.Struct("=i")
_WITHOUT_FIEMAP = (errno.EOPNOTSUPP, errno.ENOTTY)
# 4 GiB of blocks of 4 KiB: a sparse file of a stranger may claim any length.
_BLOCKS_AT_MOST = 1 << 20


@dataclass(frozen=True)
class FileExtent:
    """A run of a file's bytes in one place; `at` is None where it has no place that a page could begin at."""

    start: int
    length: int
    at: int | None


def extents_of(path: Path, *, written_back: bool = True) -> tuple[FileExtent, ...]:
    """All extents of a file, which is `written_back` first or is mapped as it is; OSError where its file system has no map of it."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return tuple(_by_extents(file, _SYNC if written_back else 0))
    except OSError as error:
        if error.errno not in _WITHOUT_FIEMAP:
            raise
        if (blocks := _by_blocks(file, written_back=written_back)) is None:
            raise
        return tuple(blocks)
    finally:
        os.close(file)


def _by_extents(file: int, flags_asked: int) -> list[FileExtent]:
    found: list[FileExtent] = []
    start, is_last = 0, False
    while not is_last:
        some, is_last = _extents_from(file, start, flags_asked)
        found += some
        if not some:
            break
        start = some[-1].start + some[-1].length
    return found


def _by_blocks(file: int, *, written_back: bool) -> list[FileExtent] | None:
    """The same by the map of single blocks; None where there is none either, or the file is too long for it."""
    try:
        block_bytes = _number(file, _FIGETBSZ, 0)
        count = -(-os.fstat(file).st_size // block_bytes)
        if count > _BLOCKS_AT_MOST:
            return None
        if written_back:
            os.fdatasync(file)
        places = [_number(file, _FIBMAP, block) for block in range(count)]
    except OSError:
        return None
    found: list[FileExtent] = []
    for block, place in enumerate(places):
        # The kernel answers 0 for a block without a place.
        if not place:
            continue
        start, at = block * block_bytes, place * block_bytes
        last = found[-1] if found else None
        if (
            last is not None
            and last.at is not None
            and last.start + last.length == start
            and last.at + last.length == at
        ):
            found[-1] = FileExtent(last.start, last.length + block_bytes, last.at)
        else:
            found.append(FileExtent(start, block_bytes, at))
    return found


def _number(file: int, request: int, number: int) -> int:
    return int(_NUMBER.unpack(fcntl.ioctl(file, request, _NUMBER.pack(number)))[0])


def _extents_from(file: int, start: int, flags_asked: int) -> tuple[list[FileExtent], bool]:
    buffer = bytearray(_HEAD.size + _AT_ONCE * _EXTENT.size)
    _HEAD.pack_into(buffer, 0, start, 2**64 - 1 - start, flags_asked, 0, _AT_ONCE, 0)
    fcntl.ioctl(file, _FS_IOC_FIEMAP, buffer)
    mapped = _HEAD.unpack_from(buffer)[3]
    found, is_last = [], mapped == 0
    for index in range(mapped):
        logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(
            buffer, _HEAD.size + index * _EXTENT.size
        )
        found.append(FileExtent(logical, length, None if flags & _WITHOUT_PLACE else physical))
        is_last = bool(flags & _LAST)
    return found, is_last


def page_layout(files: Iterable[tuple[int, Sequence[FileExtent]]], page_bytes: int) -> PageLayout:
    """Of files by size and extents; a rest that is no whole page does not count."""
    number = pages = extents = unaligned = divided = unmapped = 0
    for size_bytes, own in files:
        whole = size_bytes // page_bytes
        if not whole:
            continue
        number, pages, extents = number + 1, pages + whole, extents + len(own)
        for places in _places(whole, own, page_bytes):
            if places is None:
                unmapped += 1
            elif len(places) > 1:
                divided += 1
            elif places[0] % page_bytes:
                unaligned += 1
    return PageLayout(number, pages, extents, unaligned, divided, unmapped)


def _places(pages: int, extents: Sequence[FileExtent], page_bytes: int) -> Iterable[list[int] | None]:
    """Where each page begins, and again wherever it goes on elsewhere; None of one that is not wholly mapped."""
    first = 0
    for page in range(pages):
        begin, end = page * page_bytes, (page + 1) * page_bytes
        while first < len(extents) and extents[first].start + extents[first].length <= begin:
            first += 1
        places: list[int] = []
        reached, expected, index = begin, None, first
        while reached < end and index < len(extents):
            extent = extents[index]
            if extent.start > reached or extent.at is None:
                break
            at = extent.at + reached - extent.start
            if at != expected:
                places.append(at)
            taken = min(end, extent.start + extent.length) - reached
            reached, expected, index = reached + taken, at + taken, index + 1
        yield places if reached == end else None
