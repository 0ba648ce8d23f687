"""NTFS by the kernel's driver ntfs3 (since 5.15). It has no option for barriers: the device's switch does it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.filesystem import ntfsprogs
from bedplate.filesystem.arguments import refuse
from bedplate.filesystem.comparison import compared, fact
from bedplate.filesystem.options import OptionRules, plan_words
from bedplate.host.mount import mount, mount_entry, unmount
from bedplate.model.filesystem import TRAITS
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.filesystem.protocol import CheckResult
    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.visit import Comparison

# fs/ntfs3/super.c, ntfs_show_options: what is at its default is not shown, uid and gid always are.
_RULES = OptionRules(
    synonyms={"nls=utf8": "iocharset=utf8", "no_acs_rules": "noacsrules"},
    hidden={
        "nodiscard": ("discard",),
        "noforce": ("force",),
        "nosparse": ("sparse",),
        "hidden": ("nohidden",),
        "noshowmeta": ("showmeta",),
        "noprealloc": ("prealloc",),
        "nosys_immutable": ("sys_immutable",),
        "acsrules": ("noacsrules",),
        "noacl": ("acl",),
    },
)


class Ntfs3:
    """NTFS by the kernel."""

    traits = TRAITS["ntfs3"]
    probe_bytes = 64 * MIB
    needs = ntfsprogs.needs_of("ntfs3")

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As mkntfs says."""
        return ntfsprogs.versions(commands=commands)

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """By mkntfs."""
        refuse(levels, journal_path)
        return ntfsprogs.mkfs(levels, device_path, commands=commands)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """The plan's own words: ntfs3 has no option for a factor."""
        return plan_words(levels)

    def mount(
        self,
        levels: FilesystemLevels,
        device_path: str,
        target: Path,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> MountEntry:
        """Plain."""
        del journal_path
        return mount(device_path, target, "ntfs3", self.mount_options(levels), commands=commands)

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From statvfs, the mount table, ntfsinfo and the device's write-cache switch."""
        del journal
        entry = mount_entry(target)
        volume = ntfsprogs.read_volume(device.path, commands=commands)
        shown = {*entry.options, *entry.super_options}
        # ntfs3 flushes at every fsync; whether a flush reaches the device, the switch decides.
        cache = (device.queue / "write_cache").read_text(encoding="ascii").strip()
        return (
            compared("filesystem.type", levels.type, entry.type, "mountinfo"),
            compared(
                "filesystem.block_size_bytes", levels.block_size_bytes, os.statvfs(target).f_bsize, "statvfs"
            ),
            compared("filesystem.barrier", levels.barrier, cache == "write back", "the queue's write_cache"),
            *_RULES.compare(plan_words(levels), shown, "mountinfo"),
            *ntfsprogs.volume_comparisons(levels, volume),
            fact("filesystem.mount_options", ",".join(sorted(shown)), "mountinfo"),
        )

    def unmount(self, target: Path, *, commands: Commands, journal_path: str | None = None) -> bool:
        """Plain."""
        del journal_path
        return unmount(target, commands=commands)

    def check(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> CheckResult:
        """By ntfsfix."""
        del levels, journal_path
        return ntfsprogs.check(device_path, commands=commands)
