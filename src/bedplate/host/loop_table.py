"""Which file is behind which loop device, from sysfs: no program, no ioctl."""

from __future__ import annotations

import os
from pathlib import Path

SYS_BLOCK = Path("/sys/block")
# The kernel appends it when the file has no name any more.
_DELETED = " (deleted)"


def backing_file(name: str, sys_block: Path | None = None) -> str | None:
    """The file behind `loop3`; None if nothing is attached."""
    try:
        text = os.fsdecode(((sys_block or SYS_BLOCK) / name / "loop/backing_file").read_bytes())
    except OSError:
        return None
    return text.removesuffix("\n").removesuffix(_DELETED)


def all_loops(sys_block: Path | None = None) -> tuple[tuple[str, str], ...]:
    """Every loop device that has a file, with that file, by number."""
    names = [entry.name for entry in (sys_block or SYS_BLOCK).iterdir() if entry.name.startswith("loop")]
    files = [
        (name, backing_file(name, sys_block)) for name in sorted(names, key=lambda name: (len(name), name))
    ]
    return tuple((name, file) for name, file in files if file is not None)


def attached_to(image: Path, sys_block: Path | None = None) -> tuple[str, ...]:
    """The names of all loop devices over this file, by number."""
    wanted = os.path.realpath(image)
    return tuple(name for name, file in all_loops(sys_block) if file == wanted)
