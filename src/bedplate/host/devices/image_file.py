"""Image files in memory: sparse, copied without their holes, and by reflink where the file system below can."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from typing import TYPE_CHECKING

from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# linux/fs.h: _IOW(0x94, 9, int)
_FICLONE = 0x40049409
# linux/falloc.h: FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_PUNCH_HOLE = 0x01 | 0x02
_CHUNK_BYTES = MIB
_ZEROS = bytes(_CHUNK_BYTES)
_CANNOT = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS})


def create_blank(path: Path, size_bytes: int) -> int:
    """A new file of nothing but a hole, open for reading and writing; one of that name is unlinked, not emptied.

    A loop device may still hold the former file.
    """
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, size_bytes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_all(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all of it there."""
    while data:
        written = os.pwrite(descriptor, data, offset)
        offset += written
        data = data[written:]


def is_zeros(data: memoryview) -> bool:
    """Whether there is nothing in it; cheap where there is something at its beginning."""
    if bytes(data[:8]).strip(b"\0"):
        return False
    return all(
        bytes(chunk) == _ZEROS[: len(chunk)]
        for start in range(0, len(data), _CHUNK_BYTES)
        if (chunk := data[start : start + _CHUNK_BYTES])
    )


def zero(descriptor: int, offset: int, length: int) -> None:
    """Make a range read as zeros: a hole, or written zeros where the file system below makes none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(descriptor, _PUNCH_HOLE, ctypes.c_int64(offset), ctypes.c_int64(length)) == 0:
        return
    code = ctypes.get_errno()
    if code not in _CANNOT:
        raise OSError(code, os.strerror(code))
    for start in range(0, length, _CHUNK_BYTES):
        write_all(descriptor, memoryview(_ZEROS)[: min(_CHUNK_BYTES, length - start)], offset + start)


def copy_image(source: int, target: int) -> None:
    """Give the blank file `target` the contents of `source`, sharing its blocks or leaving out its holes."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    else:
        return
    for start, end in _extents(source):
        _copy_range(source, target, start, end)


def fill_from(image: Path, target: int) -> None:
    """Give the blank file `target` the contents of an image."""
    source = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
    try:
        copy_image(source, target)
    finally:
        os.close(source)


def _extents(descriptor: int) -> Iterator[tuple[int, int]]:
    """Where a file has data, from and to; all of it where the file system below cannot tell."""
    end = 0
    while True:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from here on
                return
            if error.errno != errno.EINVAL:
                raise
            yield end, os.fstat(descriptor).st_size
            return
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


def _copy_range(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        try:
            copied = os.copy_file_range(source, target, end - start, start, start)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
            copied = 0
        if not copied:  # some kernels refuse, and some copy nothing without a word
            chunk = os.pread(source, min(_CHUNK_BYTES, end - start), start)
            write_all(target, memoryview(chunk), start)
            copied = len(chunk)
        start += copied
