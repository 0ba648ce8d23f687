"""A folder of which the kernel says whether anything in it was opened, read, made, changed or removed (inotify(7))."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HEAD = struct.Struct("iIII")
# IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_OPEN, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE
_ANY = 0x1 | 0x2 | 0x4 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200
_NONBLOCK = os.O_NONBLOCK


class Watched:
    """What happened in a folder and the folders below it since it was asked last."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(_NONBLOCK | os.O_CLOEXEC)
        self._folders: dict[int, Path] = {}
        for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            self._folders[libc.inotify_add_watch(self._descriptor, os.fsencode(place), _ANY)] = place

    def events(self) -> list[str]:
        """The names of what was touched, in order."""
        seen = []
        try:
            while data := os.read(self._descriptor, 1 << 16):
                at = 0
                while at < len(data):
                    watch, mask, _, length = _HEAD.unpack_from(data, at)
                    at += _HEAD.size + length
                    name = data[at - length : at].rstrip(b"\0").decode(errors="replace")
                    seen.append(f"{self._folders.get(watch, watch)}/{name}: {mask & _ANY:#x}")
        except BlockingIOError:
            pass
        return seen

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    found = Watched(folder)
    try:
        yield found
    finally:
        found.close()
