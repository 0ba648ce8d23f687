"""Where this machine's control groups are: version 1, version 2, or both at once (hybrid)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bedplate.host.mount import parse_mount_table

_V1 = "cgroup"
_V2 = "cgroup2"
_PLACE = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Hierarchy:
    """`v1` maps a controller (`memory`, `blkio`, `cpuacct`) to the mount that has it.

    `v2` is the unified mount, with `v2_controllers` those that are not bound to version 1. None where
    it is not mounted.
    """

    v1: dict[str, Path]
    v2: Path | None
    v2_controllers: frozenset[str]

    def version_of(self, controller: str, v2_name: str | None = None) -> int | None:
        """1 or 2, whichever has the controller; None where neither does."""
        if (v2_name or controller) in self.v2_controllers:
            return 2
        return 1 if controller in self.v1 else None


def read_hierarchy(mount_table: Path = Path("/proc/self/mountinfo")) -> Hierarchy:
    """From the kernel's own mount table; needs no root.

    A hierarchy may be mounted many times, also within somebody's container or chroot: the system's own place wins,
    else the first.
    """
    v1: dict[str, Path] = {}
    v2: Path | None = None
    table = parse_mount_table(os.fsdecode(mount_table.read_bytes()))
    for entry in sorted(table, key=lambda entry: not Path(entry.target).is_relative_to(_PLACE)):
        if entry.type == _V1:
            # A controller's name is an option of the super block; so are other words, which do no harm.
            v1 = {word: Path(entry.target) for word in entry.super_options if "=" not in word} | v1
        elif entry.type == _V2:
            v2 = v2 or Path(entry.target)
    controllers: frozenset[str] = frozenset()
    if v2 is not None:
        try:
            controllers = frozenset((v2 / "cgroup.controllers").read_text().split())
        except OSError:
            controllers = frozenset()
    return Hierarchy({name: path for name, path in v1.items() if name not in {"rw", "ro"}}, v2, controllers)
