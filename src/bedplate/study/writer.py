"""Who writes a study: one process at a time, told by a lock that the kernel drops with it."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import no_links
from bedplate.study.layout import StudyLayout

if TYPE_CHECKING:
    from bedplate.study.folder import Folder

_LOCKS = Path("/proc/locks")


def take_lock(folder: Folder) -> int:
    """The study's lock as a file descriptor to be closed; StudyError names the process that has it."""
    path = StudyLayout(folder.directory).lock
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = os.open(path.name, flags, 0o644, dir_fd=folder.descriptor)
    except OSError as error:
        raise StudyError(f"{folder.directory} cannot be written to: {error.strerror}") from error
    status = os.fstat(lock)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(lock)
        # It is the one file of a study that is written to in its place.
        raise StudyError(f"{path} is no plain file, or has another name beside this one; remove it")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = _recorded(lock) or "unknown"
        os.close(lock)
        raise StudyError(
            f"{folder.directory} is being written by process {holder}; wait for it, or end it"
        ) from None
    os.truncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def writer_of(layout: StudyLayout) -> str | None:
    """The process that writes a study now, None if nobody does or it cannot be told.

    Only looks: a reader that tried the lock itself could make a writer's start fail.
    """
    try:
        lock = no_links.open_without_links(layout.lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
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
