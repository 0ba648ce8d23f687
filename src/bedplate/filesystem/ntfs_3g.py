"""NTFS by ntfs-3g, a program in user space (FUSE), always with `permissions`.

Without `permissions` every file is root's and open to all, and PostgreSQL refuses such a directory.
The mount table shows FUSE's words, not the program's, which takes any word without complaint: so a
word that neither the table shows nor the manual knows was ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse
from bedplate.filesystem.comparison import compared
from bedplate.filesystem.ntfsprogs import MadeByMkntfs
from bedplate.filesystem.options import OptionRules, plan_words
from bedplate.host.mount import find_mount
from bedplate.host.process import pids_running, wait_until_gone
from bedplate.model.filesystem import TRAITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.filesystem.adapter import Mounted
    from bedplate.filesystem.site import Site
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.visit import ReadBack

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


class Ntfs3g(MadeByMkntfs):
    """NTFS by the program ntfs-3g."""

    traits = TRAITS["ntfs-3g"]
    tools = ((PROGRAM, "serves"), *MadeByMkntfs.tools)
    # By the program itself, since a helper for it may not stand where the system looks for one.
    mount_program = (PROGRAM,)
    shown_type = "fuseblk"
    rules = _RULES

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """`permissions`, then the plan's own words."""
        words = plan_words(levels)
        return words if _PERMISSIONS in words else (_PERMISSIONS, *words)

    def _type(self, site: Site, found: Mounted) -> ReadBack:
        type_ = "ntfs-3g" if served_words(site.target) else found.entry.type
        return compared("filesystem.type", site.levels.type, type_, "/proc")

    def _state(self, site: Site, found: Mounted) -> Iterator[ReadBack]:
        # FUSE shows this one where the program was told `permissions`.
        keeps = _PERMISSIONS in served_words(site.target) and "default_permissions" in found.shown
        yield compared("filesystem.permissions", asked=True, effective=keeps, source="/proc and mountinfo")

    def _option_comparisons(self, site: Site, found: Mounted) -> tuple[ReadBack, ...]:
        words = (word for word in plan_words(site.levels) if word != _PERMISSIONS)
        return found.rules.compare(words, found.shown, found.source)

    def unmount(self, site: Site) -> bool:
        """Until the program has ended: it holds the device a moment longer than the kernel."""
        pids = programs_of(site.target) if find_mount(site.target) is not None else ()
        done = super().unmount(site)
        if not wait_until_gone(pids, deadline_s=_END_PATIENCE_S):
            raise DeviceInUse(
                f"{PROGRAM} (process {pids[0]}) goes on {_END_PATIENCE_S:g} s after the unmount"
            )
        return done


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
