"""Every file system type that bedplate can make. A new one is one file and one entry here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.filesystem.btrfs import Btrfs
from bedplate.filesystem.ext import Ext
from bedplate.filesystem.xfs import Xfs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.filesystem.protocol import Filesystem

FILESYSTEMS: Mapping[str, Filesystem] = {
    filesystem.traits.type: filesystem
    for filesystem in (Ext("ext2"), Ext("ext3"), Ext("ext4"), Xfs(), Btrfs())
}


def filesystem_for(type: str) -> Filesystem:  # noqa: A002 - the plan's word
    """The adapter of a type; PlanError lists the known ones."""
    try:
        return FILESYSTEMS[type]
    except KeyError:
        known = ", ".join(sorted(FILESYSTEMS))
        raise PlanError(f"file system {type!r} cannot be made here; known are {known}") from None
