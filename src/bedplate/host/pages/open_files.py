"""Files that programs have open for direct I/O, from /proc."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PROC = Path("/proc")


def direct_files(below: Path, *, proc: Path = PROC) -> frozenset[Path]:
    """Those below a directory that any process of the same mounts has open with O_DIRECT just now."""
    found: set[Path] = set()
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        # It may end meanwhile.
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    path = link.readlink()
                    if path.is_relative_to(below) and _is_direct(process / "fdinfo" / link.name):
                        found.add(path)
    return frozenset(found)


def _is_direct(information: Path) -> bool:
    for line in information.read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return bool(int(value, 8) & os.O_DIRECT)
    return False
