"""Where the pages of a file lie on its device, as its file system maps them (FIEMAP)."""

from __future__ import annotations

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


@dataclass(frozen=True)
class FileExtent:
    """A run of a file's bytes in one place; `at` is None where it has no place that a page could begin at."""

    start: int
    length: int
    at: int | None


def extents_of(path: Path, *, written_back: bool = True) -> tuple[FileExtent, ...]:
    """All extents of a file, which is `written_back` first or is mapped as it is; OSError where its file system has no map of it."""
    found: list[FileExtent] = []
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        start, is_last = 0, False
        while not is_last:
            some, is_last = _extents_from(file, start, _SYNC if written_back else 0)
            found += some
            if not some:
                break
            start = some[-1].start + some[-1].length
    finally:
        os.close(file)
    return tuple(found)


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
