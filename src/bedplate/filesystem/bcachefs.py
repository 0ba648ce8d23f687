"""bcachefs, in kernels 6.7 to 6.17. Written after its manual and never tried: no Debian release has its tools.

Read back from the mount table and from `bcachefs show-super`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood, PlanError
from bedplate.filesystem.arguments import refuse, warnings_in
from bedplate.filesystem.comparison import compared, fact
from bedplate.filesystem.options import OptionRules, factor_words, plan_words
from bedplate.filesystem.protocol import LABEL, CheckResult, checked_by
from bedplate.host.mount import mount, mount_entry, unmount
from bedplate.host.requirement import Need
from bedplate.model.filesystem import TRAITS
from bedplate.units import MIB, parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.visit import Comparison

_REASON = "makes, reads back and checks bcachefs; no Debian release has it, so build it from its source"
_RULES = OptionRules(hidden={"nodiscard": ("discard",)})


class Bcachefs:
    """bcachefs on one device."""

    traits = TRAITS["bcachefs"]
    probe_bytes = 512 * MIB
    needs = (Need("bcachefs", "bcachefs-tools", _REASON),)

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As `bcachefs version` says."""
        said = commands.run(["bcachefs", "version"]).output
        found = re.search(r"v?(\d\S*)", said)
        if found is None:
            raise OutputNotUnderstood("bcachefs version", expected="a version", found=said)
        return {"bcachefs-tools": found[1]}

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """Without discarding, which is its default; mkfs options are not taken, as none was ever tried."""
        refuse(levels, journal_path)
        if levels.mkfs_options:
            raise PlanError("bcachefs: mkfs_options were never tried; leave them out")
        size = [] if levels.block_size_bytes is None else [f"--block_size={levels.block_size_bytes}"]
        argv = ["bcachefs", "format", "--force", f"--fs_label={LABEL}", *size, device_path]
        return warnings_in(commands.run(argv, timeout_s=3600).output)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """The barrier, then the plan's own words."""
        return (*factor_words(levels), *plan_words(levels))

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
        return mount(device_path, target, "bcachefs", self.mount_options(levels), commands=commands)

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From statvfs, the mount table and the superblock."""
        del journal
        entry = mount_entry(target)
        superblock = parse_superblock(commands.run(["bcachefs", "show-super", device.path]).stdout)
        shown = {*entry.options, *entry.super_options}
        asked = levels.block_size_bytes
        size = parse_size(superblock["block_size"])
        flushes = "journal_flush_disabled" not in shown
        return (
            compared("filesystem.type", levels.type, entry.type, "mountinfo"),
            compared("filesystem.block_size_bytes", asked, os.statvfs(target).f_bsize, "statvfs"),
            compared("filesystem.superblock.block_size_bytes", asked, size, "show-super"),
            compared("filesystem.barrier", levels.barrier, flushes, "mountinfo"),
            *_RULES.compare(plan_words(levels), shown, "mountinfo"),
            fact("filesystem.label", superblock.get("Label"), "show-super"),
            fact("filesystem.superblock.version", superblock.get("Version"), "show-super"),
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
        """`bcachefs fsck -n`: status 0 is clean (bcachefs(8))."""
        del levels, journal_path
        done = commands.run(["bcachefs", "fsck", "-n", device_path], timeout_s=3600, check=False)
        return checked_by(done)


def parse_superblock(text: str) -> Mapping[str, str]:
    """`Key: value` lines of `bcachefs show-super`, first come; OutputNotUnderstood without a block size."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    if "External UUID" not in found or "block_size" not in found:
        raise OutputNotUnderstood("bcachefs show-super", expected="a superblock of bcachefs", found=text)
    return found
