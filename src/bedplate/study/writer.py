"""Who writes a study: one process at a time, told by a lock that the kernel drops with it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import StudyError

if TYPE_CHECKING:
    from bedplate.study.layout import StudyLayout

_LOCKS = Path("/proc/locks")


def take_lock(layout: StudyLayout) -> int:
    """The study's lock as a file descriptor to be closed; StudyError names the process that has it."""
    try:
        lock = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StudyError(f"{layout.directory} cannot be written to: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = _recorded(lock) or "unknown"
        os.close(lock)
        raise StudyError(
            f"{layout.directory} is being written by process {holder}; wait for it, or end it"
        ) from None
    os.truncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def writer_of(layout: StudyLayout) -> str | None:
    """The process that writes a study now, None if nobody does or it cannot be told.

    Only looks: a reader that tried the lock itself could make a writer's start fail.
    """
    try:
        lock = os.open(layout.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        recorded = _recorded(lock)
        inode = os.fstat(lock).st_ino
        locks = _LOCKS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    finally:
        os.close(lock)
    return recorded if (recorded, inode) in flock_holders(locks) else None


def flock_holders(locks: str) -> frozenset[tuple[str, int]]:
    """Process and inode of every exclusive flock(2), from /proc/locks (proc_locks(5)).

    The device is left out: btrfs shows another one there than stat(2) does.
    """
    found = set()
    for line in locks.splitlines():
        # `3: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; who waits has `->` before the kind.
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[3] == "WRITE":
            inode = words[5].rpartition(":")[2]
            if inode.isdecimal():
                found.add((words[4], int(inode)))
    return frozenset(found)


def _recorded(lock: int) -> str:
    return os.pread(lock, 100, 0).decode(errors="replace").strip()
