"""What of a file is in the page cache, and how the same is put there again."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from bedplate.host.interruption import held
from bedplate.host.process import end_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def read_into_cache(directory: Path, files: tuple[CachedFile, ...], enter_group: Callable[[], None]) -> None:
    """Read the same parts, in that order, by a process within the group, which the pages then belong to.

    A file that is gone is left out. OSError with the reader's words where it failed. Begin it where no other thread runs.
    """
    words, tell = os.pipe()
    parent, reader, status = os.getpid(), 0, 0
    with open(words, "rb") as said:  # noqa: PTH123 -- a descriptor
        try:
            with held():
                reader = os.fork()
                if not reader:
                    _become_the_reader(parent, directory, files, enter_group, tell)
                os.close(tell)
            failure = said.read().decode(errors="replace")
            with held():
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
    parent: int, directory: Path, files: tuple[CachedFile, ...], enter_group: Callable[[], None], tell: int
) -> NoReturn:
    """It ends with its parent, and keeps none of the parent's locks and pipes should it be slow in that."""
    try:
        # The parent's would give back what is the parent's.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        _close_all_but(tell)
        if end_with(parent, signal.SIGKILL):
            enter_group()
            for file in files:
                with suppress(FileNotFoundError):
                    _read(directory / file.path, file.ranges)
            os._exit(0)
    except BaseException as error:  # noqa: BLE001 -- a copy of the visit must not go on as one
        os.write(tell, repr(error).encode()[:512])
    finally:
        os._exit(1)


def _close_all_but(kept: int) -> None:
    """By the list of those that are open: without close_range(2), which came with Linux 5.9, os.closerange tries every number."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 -- numbers, not paths
        if int(name) != kept:
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
