"""One holder at a time, over processes: a lock on a file that the kernel drops with its holder."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


# Whoever may read a file may lock it: a program of others, as an account without rights, would hold up everybody.
_MODE = 0o600


@contextmanager
def file_lock(path: Path, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold `path` exclusively; waits for another holder after calling `on_wait` once.

    The file stays behind, empty: removing it would let a third start lock another file of the
    same name. A holder that is killed holds nothing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, _MODE)
        if not take_lock(descriptor):
            if on_wait is not None:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def file_lock_if_free(path: Path) -> Iterator[bool]:
    """Hold `path` if nobody does; yields whether it is held. Never waits, never makes the file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        yield take_lock(descriptor)
    finally:
        os.close(descriptor)


def take_lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file exclusively, or `shared` with others of that kind, for as long as it is open; False if somebody else holds it.

    One that was taken so can be taken anew as the other kind; where that fails it may be lost (flock(2)).
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
