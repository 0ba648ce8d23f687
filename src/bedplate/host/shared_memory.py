"""What a PostgreSQL that was killed leaves in POSIX shared memory, which nothing but a reboot would release.

A server makes its segments (`dynamic_shared_memory_type = posix`) as files of its own account under names that it draws
by lot, so they are known by their account, their age, and by nobody having them mapped any more. System V segments need
no care: they end with the visit's own namespace (own_mounts.py).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- shm_open(3) has no other place
_NAMES = "PostgreSQL.*"


def remove_orphaned_segments(
    uid: int, since_s: float, *, directory: Path = SHARED_MEMORY, proc: Path = Path("/proc")
) -> tuple[Path, ...]:
    """Remove the segments of that account, made since then, that no process has mapped; which they were."""
    found = []
    for path in directory.glob(_NAMES):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if status.st_uid == uid and status.st_ctime >= since_s:
                found.append(path)
    if not found:
        return ()
    mapped = _mapped(proc)
    removed = []
    for path in found:
        if str(path) not in mapped:
            path.unlink(missing_ok=True)
            removed.append(path)
    return tuple(sorted(removed))


def _mapped(proc: Path) -> set[str]:
    paths: set[str] = set()
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for line in (folder / "maps").read_text(errors="replace").splitlines():
                paths.add(line[line.find("/") :] if "/" in line else "")
    return paths
