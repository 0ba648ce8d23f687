"""What a PostgreSQL that was killed leaves in POSIX shared memory, which nothing but a reboot would release.

A server makes its segments (`dynamic_shared_memory_type = posix`) as files of its own account under names that it draws
by lot, so they are known by their account, their age, and by nobody having them mapped any more. A living server may
have some that none of its processes maps just now (dsm_pin_segment()); its table of them, which its postmaster maps,
names them. System V segments need no care: they end with the visit's own namespace (own_mounts.py).
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- shm_open(3) has no other place
_NAMES = "PostgreSQL.*"
# src/backend/storage/ipc/dsm.c: PG_DYNSHMEM_CONTROL_MAGIC, with which such a table begins; a handle is of 32 bits.
_TABLE = (0x9A503D32).to_bytes(4, sys.byteorder)
_HANDLE_BYTES = 4


def remove_orphaned_segments(
    uid: int, since_s: float, *, directory: Path = SHARED_MEMORY, proc: Path = Path("/proc")
) -> tuple[Path, ...]:
    """Remove the segments of that account, made since then, that no process has mapped; which they were."""
    found: list[tuple[Path, bytes]] = []
    for path in directory.glob(_NAMES):
        with contextlib.suppress(FileNotFoundError):
            status, handle = path.lstat(), _handle(path)
            if status.st_uid == uid and status.st_ctime >= since_s and handle is not None:
                found.append((path, handle))
    if not found:
        return ()
    mapped = mapped_files(proc)
    tables = [_table_in(path) for path in directory.glob(_NAMES) if str(path) in mapped]
    removed = []
    for path, handle in found:
        if str(path) not in mapped and not any(handle in table for table in tables):
            path.unlink(missing_ok=True)
            removed.append(path)
    return tuple(sorted(removed))


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


def mapped_files(proc: Path = Path("/proc")) -> set[str]:
    """Every file that some process has mapped, by its name."""
    paths: set[str] = set()
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for line in (folder / "maps").read_text(errors="replace").splitlines():
                paths.add(line[line.find("/") :] if "/" in line else "")
    return paths
