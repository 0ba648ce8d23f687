"""ext2, ext3 and ext4: one set of tools, and on most kernels one driver.

Read back from `/proc/fs/ext4/DEVICE/options`, which lists every option with its default (the mount
table lists deviations only), and from the superblock through `dumpe2fs -h`. The default mount
options in the superblock are not the live ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.adapter import (
    MKFS_OPTION,
    Argument,
    Filesystem,
    Mounted,
    OptionRules,
    Site,
    compared,
    decoded_number,
    fact,
    joined,
    journal_comparisons,
    not_verifiable,
    number,
    size_or_text,
)
from bedplate.filesystem.blocks import Layout, ext_layout
from bedplate.model.cell import digest
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.model.visit import ReadBack
from bedplate.units import MIB, parse_size

if TYPE_CHECKING:
    from bedplate.host.scratch_device import AttachedDevice

PROC = Path("/proc/fs/ext4")
JBD2 = Path("/proc/fs/jbd2")
_CONFIGURATION = "/etc/mke2fs.conf"
# What mke2fs takes by itself from 512 MiB on (mke2fs.conf(5)); a journal must have the same.
_USUAL_BLOCK_BYTES = 4096
_LOOK_LIMIT_S = 120.0
_OWN = (Argument("-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"), Argument("-L", LABEL))

_SYNONYMS = {
    "barrier=0": "nobarrier",
    "barrier=1": "barrier",
    "auto_da_alloc=0": "noauto_da_alloc",
    "auto_da_alloc=1": "auto_da_alloc",
    "bsdgroups": "grpid",
    "sysvgroups": "nogrpid",
    "commit=0": "commit=5",  # 0 asks for the default, JBD2_DEFAULT_MAX_COMMIT_AGE
    "dax": "dax=always",
    "dioread_lock": "nodioread_nolock",
    "init_itable": "init_itable=10",
    "iversion": "i_version",
    "no_mbcache": "nombcache",
    "noload": "norecovery",
    "quota": "usrquota",
}
# Shown nowhere although obeyed: the I/O priority of the journal's thread.
_UNSEEN = frozenset({"journal_ioprio="})
COMPLETE = OptionRules(_SYNONYMS, {"data_err=ignore": ("data_err=abort",)}, _UNSEEN)
# For a kernel without /proc/fs/ext4/DEVICE/options the mount table alone speaks, and hides these.
_DEVIATIONS = OptionRules(
    _SYNONYMS,
    {
        "barrier": ("nobarrier",),
        "nodiscard": ("discard",),
        "user_xattr": ("nouser_xattr",),
        "acl": ("noacl",),
        "delalloc": ("nodelalloc",),
        "auto_da_alloc": ("noauto_da_alloc",),
        "commit=5": ("commit=",),
        "data_err=ignore": ("data_err=abort",),
    },
    _UNSEEN,
)


class Ext(Filesystem):
    """One of ext2, ext3, ext4."""

    # Below 512 MiB mke2fs would choose other sizes (mke2fs.conf(5), usage type `small`).
    probe_bytes = 520 * MIB
    package = "e2fsprogs"
    tools = (("mke2fs", "makes"), ("dumpe2fs", "reads back"), ("e2fsck", "checks"))
    version_argv = ("mke2fs", "-V")
    version_pattern = r"mke2fs (\S+)"
    # getopt string of mke2fs 1.47 (misc/mke2fs.c): the letters followed by a colon.
    valued = "bCdeEgGiIJlLmMNoOrRstTUz"
    own = _OWN
    # A block above the page size is only warned of, with status 0: the mount will tell.
    block_size_option = ("-b", "{}")
    joined_flags = ("-E", "-O")
    # Everything, opened read-only; status 0 is clean (e2fsck(8)).
    fsck = ("e2fsck", "-f", "-n")
    fsck_journal_flag = "-j"
    rules = COMPLETE
    reader = "dumpe2fs"
    block_size_key = "Block size"
    text_facts: Mapping[str, str] = {
        "default_mount_options": "Default mount options",
        "checksum": "Checksum type",
    }
    number_facts: Mapping[str, str] = {
        "inode_bytes": "Inode size",
        "inodes": "Inode count",
        "blocks": "Block count",
        "reserved_blocks": "Reserved block count",
        "blocks_per_group": "Blocks per group",
        "flex_group_size": "Flex block group size",
        "cluster_bytes": "Cluster size",
        "stride_blocks": "RAID stride",
        "stripe_width_blocks": "RAID stripe width",
    }
    number_flags: Mapping[str, str] = {
        "-b": "Block size",
        "-I": "Inode size",
        "-C": "Cluster size",
        "-G": "Flex block group size",
        "-g": "Blocks per group",
    }
    not_shown = "it leaves no trace in the superblock that is known"

    def __init__(self, type: str) -> None:  # noqa: A002
        # It is mounted by the type's own name, whichever driver answers to it; the superblock names the journal.
        self.traits = TRAITS[type]
        self.mkfs_words = ("mke2fs", "-q", "-F", "-t", type)

    def mkfs_defaults(self) -> Mapping[str, str]:
        """Of mke2fs.conf(5), which may be a folder of files, and of the variables that mke2fs obeys."""
        variables = {name: text for name, text in os.environ.items() if name.startswith("MKE2FS_")}
        place = Path(variables.pop("MKE2FS_CONFIG", _CONFIGURATION))
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        texts = [path.read_bytes().hex() for path in files if path.is_file()]
        return {"mke2fs.conf": digest([texts, variables])}

    def layout(self, site: Site) -> Layout:
        """By dumpe2fs and debugfs."""
        run, path = site.commands.run, site.device.path
        groups = run(["dumpe2fs", path], timeout_s=_LOOK_LIMIT_S, check=False).stdout
        size = number(parse_superblock(groups).get("Block size"))
        if size is None:
            return Layout()
        journal = run(["debugfs", "-R", "stat <8>", path], timeout_s=_LOOK_LIMIT_S, check=False).stdout
        return ext_layout(groups, journal, size)

    def _mkfs_arguments(self, site: Site) -> Iterator[Argument]:
        if site.levels.journal == "none":
            yield Argument("-O", "^has_journal")
        if site.journal is not None:
            yield Argument("-J", f"device={site.journal.path}")

    def _before_mkfs(self, site: Site) -> Iterator[Sequence[str]]:
        """Its blocks must be as large as the file system's (mke2fs(8), -J device)."""
        if site.journal is None:
            return
        asked = self.mkfs_arguments(site.levels)
        in_options = next((item.value for item in asked if item.flag == "-b" and item.value), None)
        block = site.levels.block_size_bytes or in_options or _USUAL_BLOCK_BYTES
        own = (*_OWN, Argument("-O", "journal_dev"), Argument("-b", str(block)))
        yield ("mke2fs", "-q", "-F", *joined(own, (), lists=self.joined_flags), site.journal.path)

    def _look(self, site: Site) -> Mounted:
        found, name = super()._look(site), site.device.name
        listed = read_live_options(name)
        if listed is None:
            return replace(found, rules=_DEVIATIONS)
        source = f"/proc/fs/ext4/{name}/options and mountinfo"
        return replace(found, shown={*found.shown, *listed}, source=source)

    def _superblock(self, site: Site) -> Mapping[str, str]:
        return parse_superblock(site.commands.run(["dumpe2fs", "-h", site.device.path]).stdout)

    def _state(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        """The journal by its own statistics too."""
        superblock, source = mount.superblock, "dumpe2fs and /proc/fs/jbd2"
        on_device = journal_device_of(superblock, site.journal)
        yield from journal_comparisons(site.levels, journal_of(superblock), on_device, site.journal, source)
        data = next((word.partition("=")[2] for word in mount.shown if word.startswith("data=")), None)
        yield compared("filesystem.data", site.levels.features.get("data"), data, mount.source)

    def _compare_argument(self, argument: Argument, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        """mke2fs(8)'s flags that leave a number or a feature in the superblock."""
        name, value = f"{MKFS_OPTION}{argument.flag}", argument.value
        if argument.flag in ("-O", "-E", "-J"):
            yield from _compare_parts(argument, superblock)
        elif argument.flag in self.number_flags and value is not None:
            effective = number(superblock.get(self.number_flags[argument.flag]))
            yield compared(name, size_or_text(value), effective, "dumpe2fs")
        elif argument.flag == "-m" and value is not None:
            reserved, blocks = (
                number(superblock.get(key)) for key in ("Reserved block count", "Block count")
            )
            yield _compare_share(name, value, reserved, blocks)
        else:
            yield not_verifiable(name, argument.text, self.not_shown)

    def _facts(self, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        yield from super()._facts(superblock)
        features = " ".join(sorted(superblock.get("Filesystem features", "").split()))
        yield fact("filesystem.superblock.features", features, self.reader)
        yield fact("filesystem.superblock.journal_bytes", _journal_bytes(superblock), self.reader)


def read_live_options(name: str, *, proc: Path = PROC) -> tuple[str, ...] | None:
    """Every option in force on a mounted device, defaults included; None if the kernel has no list."""
    try:
        return tuple((proc / name / "options").read_text(encoding="ascii").split())
    except FileNotFoundError:
        return None


def parse_superblock(text: str) -> Mapping[str, str]:
    """`Key: value` lines of `dumpe2fs -h`; OutputNotUnderstood if it is not one."""
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith(" "))
    found = {key.strip(): value.strip() for key, _, value in pairs}
    if found.get("Filesystem magic number") != "0xEF53":
        raise OutputNotUnderstood("dumpe2fs -h", expected="a superblock with magic number 0xEF53", found=text)
    return found


def journal_of(superblock: Mapping[str, str]) -> str:
    """`internal`, `external` or `none`."""
    if "has_journal" not in superblock.get("Filesystem features", "").split():
        return "none"
    return "internal" if "Journal inode" in superblock else "external"


def journal_device_of(
    superblock: Mapping[str, str], journal: AttachedDevice | None, *, jbd2: Path = JBD2
) -> str | None:
    """`major:minor` of the device with the journal, if the kernel too has its journal on that device.

    jbd2 names its statistics after the journal's device alone if that is another one than the data's.
    """
    code = superblock.get("Journal device", "")
    if journal is None or not (jbd2 / journal.name).exists():
        return None
    return decoded_number(int(code, 16)) if code else None


def _journal_bytes(superblock: Mapping[str, str]) -> int | None:
    # Older e2fsprogs say "Journal size".
    size = superblock.get("Total journal size", superblock.get("Journal size"))
    return parse_size(size) if size else None


def _compare_parts(argument: Argument, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
    features = superblock.get("Filesystem features", "").split()
    for part, value in argument.parts:
        name = f"{MKFS_OPTION}{argument.flag}.{part.lstrip('^')}"
        asked = part if value is None else f"{part}={value}"
        if argument.flag == "-O" and part != "none":
            feature = _FEATURE_NAMES.get(part.lstrip("^"), part.lstrip("^"))
            effective = part.lstrip("^") if feature in features else f"^{part.lstrip('^')}"
            yield compared(name, asked, effective, "dumpe2fs")
        elif argument.flag == "-E" and part in ("stride", "stripe_width", "stripe-width") and value:
            key = "RAID stride" if part == "stride" else "RAID stripe width"
            yield compared(name, size_or_text(value), number(superblock.get(key)), "dumpe2fs")
        elif argument.flag == "-J" and part == "size" and value:
            # mke2fs(8): the journal's size is in megabytes.
            wanted = int(value) * MIB if value.isdigit() else size_or_text(value)
            yield compared(name, wanted, _journal_bytes(superblock), "dumpe2fs")
        else:
            yield not_verifiable(name, asked, Ext.not_shown)


# mke2fs takes other names for some features than dumpe2fs prints (lib/e2p/feature.c).
_FEATURE_NAMES = {"extents": "extent", "resize_inode": "resize_inode", "inline_data": "inline_data"}


def _compare_share(name: str, percentage: str, reserved: int | None, blocks: int | None) -> ReadBack:
    """Reserved blocks in per cent: mke2fs rounds down to a whole block."""
    if reserved is None or not blocks:
        return compared(name, percentage, None, "dumpe2fs")
    try:
        wanted = int(blocks * float(percentage) / 100)
    except ValueError:
        return compared(name, percentage, reserved, "dumpe2fs")
    return ReadBack(
        name, percentage, f"{reserved} of {blocks} blocks", "dumpe2fs", abs(reserved - wanted) <= 1
    )
