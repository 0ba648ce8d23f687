"""Which writes a file system takes whole: what statx says, and what one such write comes to."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
    if not _number(buffer, _MASK_AT) & _STATX_WRITE_ATOMIC:
        return None
    return UntornUnit(_number(buffer, _MIN_AT), _number(buffer, _MAX_AT), _number(buffer, _MAX_OPTIMISED_AT))


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


def _number(buffer: ctypes.Array[ctypes.c_char], at: int) -> int:
    (found,) = struct.unpack_from("=I", buffer, at)
    return int(found)
