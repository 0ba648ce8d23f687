"""Files of others: a name of theirs may lead to a pipe, a device or a file without end."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from bedplate.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

_TEXT_BYTES_MOST = MIB


def plain_bytes(path: Path, most: int, *, at: int = 0) -> bytes:
    """At most so many bytes of a regular file, from `at`; OSError, of anything else too."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no file")
        return os.pread(descriptor, most, at)
    finally:
        os.close(descriptor)


def plain_text(path: Path) -> str:
    """The text of a regular file, of its first MiB; what is no UTF-8 is replaced. OSError as above."""
    return plain_bytes(path, _TEXT_BYTES_MOST).decode(errors="replace")
