"""What a PostgreSQL that was killed leaves in POSIX shared memory, which nothing but a reboot would release.

A server makes its segments (`dynamic_shared_memory_type = posix`) as files of its own account under names that it draws
by lot, so they are known by their account, their age, and by nobody having them open or mapped any more. A living server
may have some that none of its processes maps just now (dsm_pin_segment()); its table of them, which its postmaster maps,
names them. System V segments need no care: they end with the visit's own namespace (own_mounts.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- shm_open(3) has no other place
_NAMES = "PostgreSQL.*"
# src/backend/storage/ipc/dsm.c: PG_DYNSHMEM_CONTROL_MAGIC, with which such a table begins; a handle is of 32 bits.
_TABLE = (0x9A503D32).to_bytes(4, sys.byteorder)
_HANDLE_BYTES = 4


def remove_orphaned_segments(
    uid: int, since_s: float, *, directory: Path = SHARED_MEMORY
) -> tuple[Path, ...]:
    """Remove the segments of that account, made since then, that no server uses; which they were."""
    removed = []
    for path in unused_segments(directory):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if status.st_uid == uid and status.st_ctime >= since_s:
                path.unlink()
                removed.append(path)
    return tuple(removed)


def unused_segments(directory: Path = SHARED_MEMORY) -> tuple[Path, ...]:
    """Segments that nobody has open or mapped and no living server notes, in any namespace, by name."""
    handles = {path: _handle(path) for path in sorted(directory.glob(_NAMES))}
    used = {path for path in handles if is_in_use(path)}
    tables = [_table_in(path) for path in used]
    return tuple(
        path
        for path, handle in handles.items()
        if path not in used and handle is not None and not any(handle in table for table in tables)
    )


def is_in_use(path: Path) -> bool:
    """Whether somebody has this file open or mapped, as far as can be told; True for one that may not be asked about.

    The kernel grants a lease for writing only where nobody else holds the file (fcntl(2), F_SETLEASE). /proc would not
    do: a container that shares its host's /dev/shm does not see the host's processes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        # Who opens it before the lease ends here makes the kernel say so: by a signal that ends nobody, unlike SIGIO.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _table_in(path: Path) -> bytes:
    """What a living server notes of all its segments; empty for a segment that holds something else."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(_TABLE)) == _TABLE:
            return file.read()
    return b""


def _handle(path: Path) -> bytes | None:
    """As a table has it, somewhere; None for a name that is no server's."""
    number = path.name.partition(".")[2]
    is_one = number.isascii() and number.isdecimal() and int(number) < 2 ** (8 * _HANDLE_BYTES)
    return int(number).to_bytes(_HANDLE_BYTES, sys.byteorder) if is_one else None
