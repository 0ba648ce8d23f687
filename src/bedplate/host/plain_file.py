"""Files of others: a name of theirs may lead to a pipe, a device or a file without end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import PurePath
from typing import TYPE_CHECKING

from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from pathlib import Path

_TEXT_BYTES_MOST = MIB


def plain_bytes(path: Path, most: int, *, at: int = 0) -> bytes:
    """At most so many bytes of a regular file, from `at`; OSError, of anything else too."""
    return _content(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), most, at)


def bytes_below(top: Path, name: str, most: int) -> bytes:
    """A regular file of at most so many bytes below `top`, on a way of plain folders; OSError, of a link and of a larger one too.

    For root, where others decide what a name leads to: a link would have it read for them what they may not.
    """
    *folders, last = PurePath(name).parts
    place = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = below
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
        content = _content(file, most + 1)
    except OSError as error:
        raise OSError(
            error.errno, error.strerror if error.errno != errno.ELOOP else "it is a link", str(top / name)
        ) from None
    finally:
        os.close(place)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {format_size(most)}", str(top / name))
    return content


def _content(descriptor: int, most: int, at: int = 0) -> bytes:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no file")
        return os.pread(descriptor, most, at)
    finally:
        os.close(descriptor)


def plain_text(path: Path) -> str:
    """The text of a regular file, of its first MiB; what is no UTF-8 is replaced. OSError as above."""
    return plain_bytes(path, _TEXT_BYTES_MOST).decode(errors="replace")
