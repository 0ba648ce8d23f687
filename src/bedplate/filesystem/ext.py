"""ext2, ext3 and ext4: one set of tools, and on most kernels one driver.

Read back from `/proc/fs/ext4/DEVICE/options`, which lists every option with its default (the mount
table lists deviations only), and from the superblock through `dumpe2fs -h`. The default mount
options in the superblock are not the live ones.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, refuse, warnings_in
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact, not_verifiable
from bedplate.filesystem.journal import decoded_number, journal_comparisons, without_device
from bedplate.filesystem.options import OptionRules, factor_words, plan_words
from bedplate.filesystem.protocol import LABEL, CheckResult, checked_by
from bedplate.host.mount import mount, mount_entry, unmount
from bedplate.host.requirement import Need
from bedplate.model.filesystem import TRAITS
from bedplate.model.visit import Comparison
from bedplate.units import MIB, parse_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.filesystem import FilesystemTraits
    from bedplate.model.levels import Scalar

PROC = Path("/proc/fs/ext4")
JBD2 = Path("/proc/fs/jbd2")
# What mke2fs takes by itself from 512 MiB on (mke2fs.conf(5)); a journal must have the same.
_USUAL_BLOCK_BYTES = 4096

# getopt string of mke2fs 1.47 (misc/mke2fs.c): the letters followed by a colon.
_VALUED = "bCdeEgGiIJlLmMNoOrRstTUz"
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
_COMPLETE = OptionRules(_SYNONYMS, {"data_err=ignore": ("data_err=abort",)}, _UNSEEN)
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


class Ext:
    """One of ext2, ext3, ext4."""

    # Below 512 MiB mke2fs would choose other sizes (mke2fs.conf(5), usage type `small`).
    probe_bytes = 520 * MIB

    def __init__(self, type: str) -> None:  # noqa: A002
        self.traits: FilesystemTraits = TRAITS[type]

    @property
    def needs(self) -> tuple[Need, ...]:
        """All from e2fsprogs."""
        purposes = (("mke2fs", "makes"), ("dumpe2fs", "reads back"), ("e2fsck", "checks"))
        return tuple(Need(tool, "e2fsprogs", f"{does} {self.traits.type}") for tool, does in purposes)

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As `mke2fs -V` says."""
        said = commands.run(["mke2fs", "-V"]).output
        found = re.search(r"mke2fs (\S+)", said)
        if found is None:
            raise OutputNotUnderstood("mke2fs -V", expected="a version", found=said)
        return {"e2fsprogs": found[1]}

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """A block above the page size is only warned of, with status 0: the mount will tell."""
        refuse(levels, journal_path)
        own = list(_OWN)
        asked = parse_arguments(levels.mkfs_options, valued=_VALUED)
        if levels.block_size_bytes is not None:
            own.append(Argument("-b", str(levels.block_size_bytes)))
        if levels.journal == "none":
            own.append(Argument("-O", "^has_journal"))
        if journal_path is not None:
            commands.run(_journal_argv(levels, asked, journal_path), timeout_s=3600)
            own.append(Argument("-J", f"device={journal_path}"))
        words = joined(own, asked, lists=("-E", "-O"))
        argv = ["mke2fs", "-q", "-F", "-t", self.traits.type, *words, device_path]
        return warnings_in(commands.run(argv, timeout_s=3600).output)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """Barrier and data mode, then the plan's own words."""
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
        """Mount by the type's own name, whichever driver answers to it; the superblock names the journal."""
        del journal_path
        return mount(device_path, target, self.traits.type, self.mount_options(levels), commands=commands)

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From statvfs, the kernel's list of options, the superblock, and the journal's own statistics."""
        entry = mount_entry(target)
        superblock = parse_superblock(commands.run(["dumpe2fs", "-h", device.path]).stdout)
        table = {*entry.options, *entry.super_options}
        listed = read_live_options(device.name)
        shown = table if listed is None else {*table, *listed}
        source = "mountinfo" if listed is None else f"/proc/fs/ext4/{device.name}/options and mountinfo"
        rules = _DEVIATIONS if listed is None else _COMPLETE
        data = next((word.partition("=")[2] for word in shown if word.startswith("data=")), None)
        on_device = journal_device_of(superblock, journal)
        prefix = "filesystem"
        return (
            compared(f"{prefix}.type", levels.type, entry.type, "mountinfo"),
            compared(
                f"{prefix}.block_size_bytes", levels.block_size_bytes, os.statvfs(target).f_bsize, "statvfs"
            ),
            compared(
                f"{prefix}.superblock.block_size_bytes",
                levels.block_size_bytes,
                _integer(superblock, "Block size"),
                "dumpe2fs",
            ),
            compared(f"{prefix}.barrier", levels.barrier, "nobarrier" not in shown, source),
            *journal_comparisons(
                levels, journal_of(superblock), on_device, journal, "dumpe2fs and /proc/fs/jbd2"
            ),
            compared(f"{prefix}.data", levels.features.get("data"), data, source),
            *rules.compare(plan_words(levels), shown, source),
            *_compare_mkfs(parse_arguments(levels.mkfs_options, valued=_VALUED), superblock),
            *_facts(superblock),
            fact(f"{prefix}.label", superblock.get("Filesystem volume name"), "dumpe2fs"),
            fact(f"{prefix}.mount_options", ",".join(without_device(shown)), source),
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
        """`e2fsck -f -n`: everything, opened read-only; status 0 is clean (e2fsck(8))."""
        del levels
        journal = () if journal_path is None else ("-j", journal_path)
        done = commands.run(["e2fsck", "-f", "-n", *journal, device_path], timeout_s=3600, check=False)
        return checked_by(done)


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


def _journal_argv(levels: FilesystemLevels, asked: Collection[Argument], path: str) -> tuple[str, ...]:
    """Its blocks must be as large as the file system's (mke2fs(8), -J device)."""
    in_options = next((item.value for item in asked if item.flag == "-b" and item.value), None)
    block = levels.block_size_bytes or in_options or _USUAL_BLOCK_BYTES
    own = joined((*_OWN, Argument("-O", "journal_dev"), Argument("-b", str(block))), (), lists=("-E", "-O"))
    return ("mke2fs", "-q", "-F", *own, path)


def _facts(superblock: Mapping[str, str]) -> Iterator[Comparison]:
    source = "dumpe2fs"
    features = " ".join(sorted(superblock.get("Filesystem features", "").split()))
    yield fact("filesystem.superblock.features", features, source)
    # Older e2fsprogs say "Journal size".
    journal = superblock.get("Total journal size", superblock.get("Journal size"))
    yield fact("filesystem.superblock.journal_bytes", parse_size(journal) if journal else None, source)
    for name, key in (
        ("inode_bytes", "Inode size"),
        ("inodes", "Inode count"),
        ("blocks", "Block count"),
        ("reserved_blocks", "Reserved block count"),
        ("blocks_per_group", "Blocks per group"),
        ("flex_group_size", "Flex block group size"),
        ("cluster_bytes", "Cluster size"),
        ("stride_blocks", "RAID stride"),
        ("stripe_width_blocks", "RAID stripe width"),
    ):
        yield fact(f"filesystem.superblock.{name}", _integer(superblock, key), source)
    for name, key in (("default_mount_options", "Default mount options"), ("checksum", "Checksum type")):
        yield fact(f"filesystem.superblock.{name}", superblock.get(key), source)


def _compare_mkfs(arguments: Collection[Argument], superblock: Mapping[str, str]) -> Iterator[Comparison]:
    """mke2fs(8)'s flags that leave a number or a feature in the superblock."""
    for argument in arguments:
        if argument.flag in ("-O", "-E", "-J"):
            yield from _compare_parts(argument, superblock)
            continue
        name = f"{MKFS_OPTION}{argument.flag}"
        key = {"-b": "Block size", "-I": "Inode size", "-C": "Cluster size", "-G": "Flex block group size"}
        key |= {"-g": "Blocks per group"}
        if argument.flag in key and argument.value is not None:
            asked: Scalar = _size(argument.value)
            yield compared(name, asked, _integer(superblock, key[argument.flag]), "dumpe2fs")
        elif argument.flag == "-m" and argument.value is not None:
            reserved, blocks = (_integer(superblock, f"{key}ount") for key in ("Reserved block c", "Block c"))
            yield _compare_share(name, argument.value, reserved, blocks)
        else:
            yield not_verifiable(name, argument.text, "it leaves no trace in the superblock that is known")


def _compare_parts(argument: Argument, superblock: Mapping[str, str]) -> Iterator[Comparison]:
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
            yield compared(name, _size(value), _integer(superblock, key), "dumpe2fs")
        elif argument.flag == "-J" and part == "size" and value:
            size = superblock.get("Total journal size", superblock.get("Journal size"))
            # mke2fs(8): the journal's size is in megabytes.
            wanted = int(value) * MIB if value.isdigit() else _size(value)
            yield compared(name, wanted, parse_size(size) if size else None, "dumpe2fs")
        else:
            yield not_verifiable(name, asked, "it leaves no trace in the superblock that is known")


# mke2fs takes other names for some features than dumpe2fs prints (lib/e2p/feature.c).
_FEATURE_NAMES = {"extents": "extent", "resize_inode": "resize_inode", "inline_data": "inline_data"}


def _compare_share(name: str, asked: str, reserved: int | None, blocks: int | None) -> Comparison:
    """Reserved blocks in per cent: mke2fs rounds down to a whole block."""
    if reserved is None or not blocks:
        return compared(name, asked, None, "dumpe2fs")
    try:
        wanted = int(blocks * float(asked) / 100)
    except ValueError:
        return compared(name, asked, reserved, "dumpe2fs")
    return Comparison(name, asked, f"{reserved} of {blocks} blocks", "dumpe2fs", abs(reserved - wanted) <= 1)


def _integer(superblock: Mapping[str, str], key: str) -> int | None:
    text = superblock.get(key)
    return int(text) if text is not None and text.isdigit() else None


def _size(text: str) -> Scalar:
    try:
        return parse_size(text)
    except ValueError:
        return text
