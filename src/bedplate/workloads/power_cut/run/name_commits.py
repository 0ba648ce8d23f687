"""A neighbour of a recovery: as soon as a name changes below a folder, it fsyncs a file of its own, which commits the file system.

Any program may do so at any moment. Where a recovery renames or removes a file before the other is on the disk, the file
system then has the new name, and nothing yet behind it. What a cut before such a commit shows is shown all the same.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError
from bedplate.host.files import folders_below

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# linux/inotify.h: IN_MOVED_TO, IN_DELETE; IN_CLOEXEC and IN_NONBLOCK are those of open(2).
_MOVED_TO, _DELETE = 0x80, 0x200
_EVENTS_BYTES = 64 * 1024
_NOTHING_TO_WATCH = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES})


class NameCommits:
    """From `with` on until its end. `folder` and those that are below it then are watched; `file` is made on the same file system."""

    def __init__(self, folder: Path, file: Path) -> None:
        self._folder = folder
        self._file = file
        self._thread = threading.Thread(target=self._work, name="neighbour", daemon=True)

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._events < 0:
            code = ctypes.get_errno()
            raise BedplateError(_unwatched(str(self._folder), code))
        try:
            self._watch(libc.inotify_add_watch)
        except BaseException:
            os.close(self._events)
            raise
        self._over, self._end = os.pipe2(os.O_CLOEXEC)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        self._thread.join()
        os.close(self._over)
        os.close(self._events)

    def _watch(self, add_watch: Callable[[int, bytes, int], int]) -> None:
        for folder, _ in folders_below(self._folder):
            if add_watch(self._events, os.fsencode(folder), _MOVED_TO | _DELETE) >= 0:
                continue
            code = ctypes.get_errno()
            # One that is gone meanwhile, or cannot be read, has no names that change.
            if code not in _NOTHING_TO_WATCH:
                raise BedplateError(_unwatched(folder, code))

    def _work(self) -> None:
        # A file system that gives errors is the engine's to complain of.
        with suppress(OSError):
            file = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                self._commit(file)
            finally:
                os.close(file)

    def _commit(self, file: int) -> None:
        while True:
            ready, _, _ = select.select([self._events, self._over], [], [])
            if self._events not in ready:
                return
            os.write(file, b"%d\n" % len(os.read(self._events, _EVENTS_BYTES)))
            os.fsync(file)


def _unwatched(folder: str, code: int) -> str:
    said = f"nothing tells what is renamed in {folder}: {os.strerror(code)}"
    if code != errno.ENOSPC:
        return said
    return f"{said}, which is the limit of watches of a user; raise fs.inotify.max_user_watches"
