"""What killed servers and namespaces leave until a reboot, where no folder of a test shows it."""

from __future__ import annotations

import os
from pathlib import Path

from bedplate.host.block_tree import all_loops, loop_file
from bedplate.host.ledger import SHARED_MEMORY, unused_segments


def left_in_memory(place: Path | None = None) -> set[str]:
    """Segments of servers that nobody uses, and loop devices over a file that has lost its name.

    Of a place, those whose file was below it, or lies in the shared memory that is seen here; without one, everybody's.
    """
    memory = SHARED_MEMORY.stat().st_dev
    below = b"" if place is None else os.fsencode(f"{place}/")
    left = {f"{path} {inode}" for path in unused_segments() if (inode := _inode(path))}
    for name, shown in all_loops():
        found = loop_file(name)
        # The kernel shows the end of the name that it was attached by, once the file's mount is gone.
        if found is None or not found.given or not (found.device == memory or found.given.startswith(below)):
            continue
        if not os.fsencode(shown).startswith(found.given):
            left.add(f"{name} over {shown}")
    return left


def loops_below(place: Path) -> list[str]:
    """Loop devices over files that were below this folder when they were attached, whatever they are called now."""
    top = os.fsencode(f"{os.path.realpath(place)}/")
    return [
        f"loop {name} over {shown}"
        for name, shown in all_loops()
        if os.fsencode(shown).startswith(top)
        or ((found := loop_file(name)) is not None and found.given.startswith(top))
    ]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
