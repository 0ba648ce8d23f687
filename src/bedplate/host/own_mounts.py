"""Letting go of other people's mounts in a mount namespace of our own.

A new namespace holds a copy of every mount there was, and a copy keeps a device busy: what others unmount and detach
meanwhile would stay attached. Only called in a namespace that nobody else lives in.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.mount import read_mount_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.host.command import Commands
    from bedplate.host.mount import MountEntry

# Programs, their libraries and their configuration.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc")


def let_go_of_foreign_mounts(needed: Iterable[Path], commands: Commands) -> None:
    """Unmount what stands on a device or is served from user space, but for what holds a path of `needed` or the system."""
    system = [*_SYSTEM, *os.get_exec_path(), sys.prefix, sys.base_prefix, str(Path(__file__).resolve())]
    paths = [path.resolve() for path in (*needed, *map(Path, system))]
    for entry in reversed(foreign_mounts(read_mount_table(), paths)):
        # A parent that went before took it along.
        commands.run(["umount", "--lazy", entry.target], check=False)


def foreign_mounts(table: Sequence[MountEntry], needed: Sequence[Path]) -> list[MountEntry]:
    """The entries that keep a device or a server in user space busy and hold none of the paths, in the table's order."""
    return [
        entry
        for entry in table
        if (entry.source.startswith("/dev/") or entry.type.startswith("fuse"))
        and not any(path.is_relative_to(entry.target) for path in needed)
    ]
