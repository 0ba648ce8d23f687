"""NTFS by the kernel's driver ntfs3 (since 5.15). It has no option for barriers: the device's switch does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from bedplate.errors import DeviceInUse, OutputNotUnderstood
from bedplate.filesystem.adapter import (
    Argument,
    Filesystem,
    Mounted,
    OptionRules,
    Site,
    compared,
    plan_words,
)
from bedplate.host.mount import find_mount
from bedplate.host.process import pids_running, wait_until_gone
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.model.visit import ReadBack
from bedplate.units import MIB


class MadeByMkntfs(Filesystem):
    """NTFS, whoever drives it. No driver has an option for a factor."""

    probe_bytes = 64 * MIB
    package = "ntfs-3g"
    tools: tuple[tuple[str, str], ...] = (
        ("mkntfs", "makes"),
        ("ntfsinfo", "reads back"),
        ("ntfsfix", "checks"),
    )
    # Of the same package as the driver ntfs-3g.
    version_argv = ("mkntfs", "--version")
    version_pattern = r"mkntfs v(\S+)"
    version_by_status = False
    # What mkntfs says about booting Windows is not among its warnings.
    mkfs_words = ("mkntfs", "-q")
    # getopt string of mkntfs 2022.10.3 (ntfsprogs/mkntfs.c).
    valued = "cHLpsSz"
    # Forced: on a whole disk without partitions it asks. Quick: it would write zeros and look for bad sectors.
    own = (Argument("-Q", None), Argument("-F", None), Argument("-L", LABEL))
    block_size_option = ("-c", "{}")
    # Not Windows' chkdsk, but it reads the tables, both boot sectors and the dirty flag.
    fsck = ("ntfsfix", "-n")
    reader = "ntfsinfo"
    block_size_key = "Cluster Size"
    label_key = "Volume Name"
    text_facts: Mapping[str, str] = {"version": "Volume Version"}
    number_facts: Mapping[str, str] = {
        "sector_bytes": "Sector Size",
        "index_block_bytes": "Index Block Size",
        "mft_record_bytes": "MFT Record Size",
        "clusters": "Volume Size in Clusters",
    }
    number_flags: Mapping[str, str] = {
        **dict.fromkeys(("-c", "--cluster-size"), "Cluster Size"),
        **dict.fromkeys(("-s", "--sector-size"), "Sector Size"),
    }
    not_shown = "ntfsinfo does not show it"

    def _superblock(self, site: Site) -> Mapping[str, str]:
        """What ntfsinfo says of the volume; forced, since it is mounted."""
        return parse_volume(site.commands.run(["ntfsinfo", "-f", "-m", site.device.path]).stdout)

    def _block_sizes(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        # The volume's own stands among what its superblock says.
        yield next(super()._block_sizes(site, mount))

    def superblock_comparisons(
        self, levels: FilesystemLevels, superblock: Mapping[str, str]
    ) -> Iterator[ReadBack]:
        """The cluster size, mkntfs's options, and the facts of the volume."""
        size = self._block_bytes(superblock)
        yield compared("filesystem.superblock.block_size_bytes", levels.block_size_bytes, size, self.reader)
        yield from super().superblock_comparisons(levels, superblock)


def parse_volume(text: str) -> Mapping[str, str]:
    """`Key: value` lines of `ntfsinfo -m`, first come; OutputNotUnderstood if it is none."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    if not {"Cluster Size", "Volume Version"} <= found.keys():
        raise OutputNotUnderstood("ntfsinfo -m", expected="the volume's cluster size", found=text)
    return found


# fs/ntfs3/super.c, ntfs_show_options: what is at its default is not shown, uid and gid always are.
_KERNEL_RULES = OptionRules(
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


class Ntfs3(MadeByMkntfs):
    """NTFS by the kernel. ntfs3 flushes at every fsync."""

    traits = TRAITS["ntfs3"]
    rules = _KERNEL_RULES


PROGRAM = "ntfs-3g"

_PERMISSIONS = "permissions"

# ntfs-3g(8). What they do is shown nowhere.
_FUSE_RULES = OptionRules(
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
    rules = _FUSE_RULES

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """`permissions`, then the plan's own words."""
        words = plan_words(levels)
        return words if _PERMISSIONS in words else (_PERMISSIONS, *words)

    def _type(self, site: Site, mount: Mounted) -> ReadBack:
        type_ = "ntfs-3g" if served_words(site.target) else mount.entry.type
        return compared("filesystem.type", site.levels.type, type_, "/proc")

    def _state(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        # FUSE shows this one where the program was told `permissions`.
        keeps = _PERMISSIONS in served_words(site.target) and "default_permissions" in mount.shown
        yield compared("filesystem.permissions", level=True, effective=keeps, source="/proc and mountinfo")

    def _option_comparisons(self, site: Site, mount: Mounted) -> tuple[ReadBack, ...]:
        words = (word for word in plan_words(site.levels) if word != _PERMISSIONS)
        return mount.rules.compare(words, mount.shown, mount.source)

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
