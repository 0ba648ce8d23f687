"""Pages of files: where they lie on their device, which writes of them a file system takes whole, and which are cached."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import re
import signal
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bedplate.cuts.records import PageLayout
from bedplate.host.interruption import defer_interruptions
from bedplate.host.process import end_with

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
        block_bytes = _ioctl_number(file, _FIGETBSZ, 0)
        count = -(-os.fstat(file).st_size // block_bytes)
        if count > _BLOCKS_AT_MOST:
            return None
        if written_back:
            os.fdatasync(file)
        places = [_ioctl_number(file, _FIBMAP, block) for block in range(count)]
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


def _ioctl_number(file: int, code: int, number: int) -> int:
    return int(_NUMBER.unpack(fcntl.ioctl(file, code, _NUMBER.pack(number)))[0])


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


def page_layout(extents_by_file: Iterable[tuple[int, Sequence[FileExtent]]], page_bytes: int) -> PageLayout:
    """Of files by size and extents; a rest that is no whole page does not count."""
    number = pages = extents = unaligned = divided = unmapped = 0
    for size_bytes, own in extents_by_file:
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


PROC = Path("/proc")


def direct_files(below: Path, *, proc: Path = PROC) -> frozenset[Path]:
    """Those below a directory that any process of the same mounts has open with O_DIRECT just now."""
    found: set[Path] = set()
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        # It may end meanwhile.
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    path = link.readlink()
                    if path.is_relative_to(below) and _is_direct(process / "fdinfo" / link.name):
                        found.add(path)
    return frozenset(found)


def _is_direct(information: Path) -> bool:
    for line in information.read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return bool(int(value, 8) & os.O_DIRECT)
    return False


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CHUNK_BYTES = 256 * 1024
_MAP_FAILED = ctypes.c_void_p(-1).value

# mincore(2): the lowest bit of a page's byte says that it is there; the others are reserved.
_THERE = re.compile(rb"[\x01\x03]+")


@dataclass(frozen=True)
class CachedFile:
    """A file below some directory, and what of it is cached: from which byte, and how many."""

    path: str
    ranges: tuple[tuple[int, int], ...]


def cached_files(directory: Path) -> tuple[CachedFile, ...]:
    """Those of a directory, the one that was written last at the end; nothing is read for it. Others may be at work in them."""
    found: list[tuple[int, CachedFile]] = []
    for path in sorted(directory.rglob("*")):
        with suppress(FileNotFoundError):
            if path.is_symlink() or not path.is_file() or not (ranges := cached_ranges(path)):
                continue
            found.append((path.stat().st_mtime_ns, CachedFile(str(path.relative_to(directory)), ranges)))
    return tuple(file for _, file in sorted(found, key=lambda each: each[0]))


def cached_ranges(path: Path) -> tuple[tuple[int, int], ...]:
    """From which byte and how many, in whole pages. OSError where the file cannot be opened or mapped."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        pages = b"" if not size else _pages_there(descriptor, size)
    finally:
        os.close(descriptor)
    return tuple(
        (match.start() * _PAGE_BYTES, (match.end() - match.start()) * _PAGE_BYTES)
        for match in _THERE.finditer(pages)
    )


def read_into_cache(
    directory: Path, cached_files: tuple[CachedFile, ...], enter_group: Callable[[], None]
) -> None:
    """Read the same parts, in that order, by a process within the group, which the pages then belong to.

    A file that is gone is left out. OSError with the reader's words where it failed. Begin it where no other thread runs.
    """
    words, tell = os.pipe()
    parent, reader, status = os.getpid(), 0, 0
    with open(words, "rb") as said:  # noqa: PTH123 -- a descriptor
        try:
            with defer_interruptions():
                reader = os.fork()
                if not reader:
                    _become_the_reader(parent, directory, cached_files, enter_group, tell)
                os.close(tell)
            failure = said.read().decode(errors="replace")
            with defer_interruptions():
                ended, reader = reader, 0
                status = os.waitpid(ended, 0)[1]
        except BaseException:
            # An abandoned visit unmounts next, and no reader may keep it from that.
            if reader:
                os.kill(reader, signal.SIGKILL)
                os.waitpid(reader, 0)
            raise
    if status:
        raise OSError(failure or "its reader was killed")


def _become_the_reader(
    parent: int,
    directory: Path,
    cached_files: tuple[CachedFile, ...],
    enter_group: Callable[[], None],
    tell: int,
) -> NoReturn:
    """It ends with its parent, and keeps none of the parent's locks and pipes should it be slow in that."""
    try:
        # The parent's would give back what is the parent's.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        _close_all_but(tell)
        if end_with(parent, signal.SIGKILL):
            enter_group()
            for file in cached_files:
                with suppress(FileNotFoundError):
                    _read(directory / file.path, file.ranges)
            os._exit(0)
    except BaseException as error:  # noqa: BLE001 -- a copy of the visit must not go on as one
        os.write(tell, repr(error).encode()[:512])
    finally:
        os._exit(1)


def _close_all_but(descriptor: int) -> None:
    """By the list of those that are open: without close_range(2), which came with Linux 5.9, os.closerange tries every number."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 -- numbers, not paths
        if int(name) != descriptor:
            with suppress(OSError):
                os.close(int(name))


def _read(path: Path, ranges: tuple[tuple[int, int], ...]) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Without it the kernel reads ahead, behind what is asked for.
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        for start, length in ranges:
            for offset in range(start, start + length, _CHUNK_BYTES):
                os.pread(descriptor, min(_CHUNK_BYTES, start + length - offset), offset)
    finally:
        os.close(descriptor)


def _pages_there(descriptor: int, size: int) -> bytes:
    """A byte for each page, by mincore(2); mmap.mmap would need to be writable to have an address."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        there = ctypes.create_string_buffer((size + _PAGE_BYTES - 1) // _PAGE_BYTES)
        if libc.mincore(address, size, there):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return there.raw
    finally:
        libc.munmap(address, size)


# include/uapi/linux/stat.h and fs.h
_STATX_WRITE_ATOMIC = 0x00010000

_STATX_BYTES = 256
_MASK_AT, _MIN_AT, _MAX_AT, _MAX_OPTIMISED_AT = 0, 168, 172, 184

RWF_ATOMIC = 0x00000040

_AT_FDCWD = -100

TAKEN = "taken"


@dataclass(frozen=True)
class UntornUnit:
    """The smallest and the largest untorn write in bytes, and the largest without copy on write; 0 for none."""

    min_bytes: int
    max_bytes: int
    max_optimised_bytes: int


def untorn_unit(path: Path) -> UntornUnit | None:
    """As statx says of a file; None where the kernel says nothing of it (before 6.11). OSError for no such file."""
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "statx"):
        return None
    if library.statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_WRITE_ATOMIC, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
    if not _number_at(buffer, _MASK_AT) & _STATX_WRITE_ATOMIC:
        return None
    return UntornUnit(
        _number_at(buffer, _MIN_AT), _number_at(buffer, _MAX_AT), _number_at(buffer, _MAX_OPTIMISED_AT)
    )


def probe_untorn_write(path: Path, page_bytes: int) -> str:
    """Write a page to the new file `path` and write it again untorn: `taken`, or the name of the error. The file goes again."""
    file = -1
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT, 0o600)
        with mmap.mmap(-1, page_bytes) as page:
            os.pwritev(file, [page], 0)
            os.pwritev(file, [page], 0, RWF_ATOMIC)
    except OSError as error:
        # Linux has one number for it and ENOTSUP.
        return (
            "EOPNOTSUPP"
            if error.errno == errno.EOPNOTSUPP
            else errno.errorcode.get(error.errno or errno.EIO, f"error {error.errno}")
        )
    finally:
        if file >= 0:
            os.close(file)
            path.unlink()
    return TAKEN


def _number_at(buffer: ctypes.Array[ctypes.c_char], offset: int) -> int:
    (found,) = struct.unpack_from("=I", buffer, offset)
    return int(found)
