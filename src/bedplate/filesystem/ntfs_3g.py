"""NTFS by ntfs-3g, a program in user space (FUSE), always with `permissions`.

Without `permissions` every file is root's and open to all, and PostgreSQL refuses such a directory.
The mount table shows FUSE's words, not the program's, which takes any word without complaint: so a
word that neither the table shows nor the manual knows was ignored.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse
from bedplate.filesystem import ntfsprogs
from bedplate.filesystem.arguments import refuse
from bedplate.filesystem.comparison import compared, fact
from bedplate.filesystem.options import OptionRules, plan_words
from bedplate.host.mount import find_mount, mount, mount_entry, unmount
from bedplate.host.process import pids_running, wait_until_gone
from bedplate.host.requirement import Need
from bedplate.model.filesystem import TRAITS
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.filesystem.protocol import CheckResult
    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.visit import Comparison

PROGRAM = "ntfs-3g"
_PERMISSIONS = "permissions"
# ntfs-3g(8). What they do is shown nowhere.
_RULES = OptionRules(
    unseen=frozenset(
        {
            *("acl", "big_writes", "compression", "nocompression", "delay_mtime", "delay_mtime="),
            *("efs_raw", "hide_dot_files", "hide_hid_files", "ignore_case", "inherit", "locale="),
            *("max_read=", "no_def_opts", "norecover", "recover", "remove_hiberfile", "show_sys_files"),
            *("silent", "special_files=", "streams_interface=", "user_xattr", "windows_names"),
        }
    )
)
# The program writes what is in its hands once the kernel has let go.
_END_PATIENCE_S = 300.0


class Ntfs3g:
    """NTFS by the program ntfs-3g."""

    traits = TRAITS["ntfs-3g"]
    probe_bytes = 64 * MIB
    needs = (Need(PROGRAM, "ntfs-3g", "serves ntfs-3g"), *ntfsprogs.needs_of("ntfs-3g"))

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As mkntfs says, which is of the same package."""
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
        """`permissions`, then the plan's own words."""
        words = plan_words(levels)
        return words if _PERMISSIONS in words else (_PERMISSIONS, *words)

    def mount(
        self,
        levels: FilesystemLevels,
        device_path: str,
        target: Path,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> MountEntry:
        """By the program itself, since a helper for it may not stand where the system looks for one."""
        del journal_path
        return mount(
            device_path,
            target,
            "ntfs-3g",
            self.mount_options(levels),
            commands=commands,
            program=(PROGRAM,),
            shown_as="fuseblk",
        )

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From statvfs, the mount table, the program's command line, ntfsinfo and the write-cache switch."""
        del journal
        entry = mount_entry(target)
        volume = ntfsprogs.read_volume(device.path, commands=commands)
        shown = {*entry.options, *entry.super_options}
        served = served_words(target)
        cache = (device.queue / "write_cache").read_text(encoding="ascii").strip()
        # FUSE shows this one where the program was told `permissions`.
        keeps = _PERMISSIONS in served and "default_permissions" in shown
        return (
            compared("filesystem.type", levels.type, "ntfs-3g" if served else entry.type, "/proc"),
            compared(
                "filesystem.block_size_bytes", levels.block_size_bytes, os.statvfs(target).f_bsize, "statvfs"
            ),
            compared("filesystem.barrier", levels.barrier, cache == "write back", "the queue's write_cache"),
            compared("filesystem.permissions", asked=True, effective=keeps, source="/proc and mountinfo"),
            *_RULES.compare(
                (word for word in plan_words(levels) if word != _PERMISSIONS), shown, "mountinfo"
            ),
            *ntfsprogs.volume_comparisons(levels, volume),
            fact("filesystem.mount_options", ",".join(sorted(shown)), "mountinfo"),
        )

    def unmount(self, target: Path, *, commands: Commands, journal_path: str | None = None) -> bool:
        """Until the program has ended: it holds the device a moment longer than the kernel."""
        del journal_path
        pids = programs_of(target) if find_mount(target) is not None else ()
        done = unmount(target, commands=commands)
        if not wait_until_gone(pids, deadline_s=_END_PATIENCE_S):
            raise DeviceInUse(
                f"{PROGRAM} (process {pids[0]}) goes on {_END_PATIENCE_S:g} s after the unmount"
            )
        return done

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


def programs_of(target: Path) -> tuple[int, ...]:
    """The processes that serve this mount point."""
    return pids_running(PROGRAM, str(target))


def served_words(target: Path) -> tuple[str, ...]:
    """The words after `-o` that the serving program was started with; none if nobody serves it."""
    for pid in programs_of(target):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if "-o" in words:
            return tuple(words[words.index("-o") + 1].split(","))
    return ()
