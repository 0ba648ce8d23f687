"""Every file system type that bedplate can make. A new one is one file and one entry here."""

from __future__ import annotations

from collections.abc import Mapping

from bedplate.errors import PlanError
from bedplate.filesystem.adapter import Filesystem
from bedplate.filesystem.bcachefs import Bcachefs
from bedplate.filesystem.btrfs import Btrfs
from bedplate.filesystem.ext import Ext
from bedplate.filesystem.f2fs import F2fs
from bedplate.filesystem.jfs import Jfs
from bedplate.filesystem.nilfs2 import Nilfs2
from bedplate.filesystem.ntfs import Ntfs3, Ntfs3g
from bedplate.filesystem.reiserfs import Reiserfs
from bedplate.filesystem.xfs import Xfs
from bedplate.filesystem.zfs import Zfs

FILESYSTEMS: Mapping[str, Filesystem] = {
    filesystem.traits.type: filesystem
    for filesystem in (
        Ext("ext2"),
        Ext("ext3"),
        Ext("ext4"),
        Xfs(),
        Btrfs(),
        Jfs(),
        Reiserfs(),
        Nilfs2(),
        F2fs(),
        Ntfs3(),
        Ntfs3g(),
        Zfs(),
        Bcachefs(),
    )
}


def filesystem_for(type: str) -> Filesystem:  # noqa: A002 - the plan's word
    """The adapter of a type; PlanError lists the known ones."""
    try:
        return FILESYSTEMS[type]
    except KeyError:
        known = ", ".join(sorted(FILESYSTEMS))
        raise PlanError(f"file system {type!r} cannot be made here; known are {known}") from None
