"""Btrfs. Read back from the mount table, from the superblock (`dump-super`) and from sysfs.

`dump-super` knows nothing of mount options; the profiles of data and metadata are in sysfs. On a
loop device btrfs would discard by itself (`discard=async`), which bedplate turns off unless asked.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, refuse, warnings_in
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact, not_verifiable
from bedplate.filesystem.options import OptionRules, factor_words, plan_words
from bedplate.filesystem.protocol import LABEL, CheckResult, checked_by
from bedplate.host.mount import mount, mount_entry, unmount
from bedplate.host.requirement import Need
from bedplate.model.filesystem import TRAITS
from bedplate.units import MIB, parse_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import Comparison

SYSFS = Path("/sys/fs/btrfs")

# getopt string of mkfs.btrfs 6.2 (mkfs/main.c).
_VALUED = "AblnsmdLROrU"
_OWN = (Argument("-K", None), Argument("-f", None), Argument("-L", LABEL))
_LONG = {
    "--nodesize": "-n",
    "--leafsize": "-n",
    "--sectorsize": "-s",
    "--metadata": "-m",
    "--data": "-d",
    "--features": "-O",
    "--runtime-features": "-R",
    "--checksum": "--csum",
}
_CHECKSUM_NAMES = {"xxhash": "xxhash64", "blake2": "blake2b"}
# mkfs.btrfs(8)'s features and the flags that `dump-super` prints for them.
_FEATURE_FLAGS = {
    "mixed-bg": "MIXED_GROUPS",
    "extref": "EXTENDED_IREF",
    "raid56": "RAID56",
    "skinny-metadata": "SKINNY_METADATA",
    "no-holes": "NO_HOLES",
    "zoned": "ZONED",
    "free-space-tree": "FREE_SPACE_TREE",
    "fst": "FREE_SPACE_TREE",
    "block-group-tree": "BLOCK_GROUP_TREE",
    "bgt": "BLOCK_GROUP_TREE",
    "squota": "SIMPLE_QUOTA",
    "raid-stripe-tree": "RAID_STRIPE_TREE",
}

# fs/btrfs/super.c, btrfs_show_options: what is at its default is not shown.
_NEGATED_BY_NO = (
    *("barrier", "datacow", "datasum", "treelog", "acl"),  # on unless `no…` is shown
)
_OFF_UNLESS_SHOWN = ("autodefrag", "flushoncommit", "enospc_debug", "discard", "ssd", "ssd_spread")


def _rules(processors: int) -> OptionRules:
    threads = min(processors + 2, 8)  # fs/btrfs/disk-io.c: thread_pool's default
    return OptionRules(
        synonyms={
            "compress": "compress=zlib",
            "compress-force": "compress-force=zlib",
            "compress=none": "compress=no",
            "discard=sync": "discard",
            "space_cache": "space_cache=v1",
            # A level is shown only for algorithms that have one.
            **{
                f"{key}=lzo:{level}": f"{key}=lzo"
                for key in ("compress", "compress-force")
                for level in range(16)
            },
        },
        hidden={
            **{word: (f"no{word}",) for word in _NEGATED_BY_NO},
            **{f"no{word}": (word, f"{word}=") for word in _OFF_UNLESS_SHOWN},
            "compress=no": ("compress=", "compress-force="),
            "commit=30": ("commit=",),
            f"thread_pool={threads}": ("thread_pool=",),
            "max_inline=2048": ("max_inline=",),
            "max_inline=2k": ("max_inline=",),
            "fatal_errors=bug": ("fatal_errors=",),
        },
        unseen=frozenset({"clear_cache", "device", "subvol="}),
    )


class Btrfs:
    """Btrfs on one device."""

    traits = TRAITS["btrfs"]
    probe_bytes = 256 * MIB
    needs = (
        Need("mkfs.btrfs", "btrfs-progs", "makes btrfs"),
        Need("btrfs", "btrfs-progs", "reads back and checks btrfs"),
    )

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As `mkfs.btrfs --version` says."""
        said = commands.run(["mkfs.btrfs", "--version"]).output
        found = re.search(r"btrfs-progs v?(\S+)", said)
        if found is None:
            raise OutputNotUnderstood("mkfs.btrfs --version", expected="a version", found=said)
        return {"btrfs-progs": found[1]}

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """Sectors other than the page's are only warned of, with status 0: the mount will tell."""
        refuse(levels, journal_path)
        own = list(_OWN)
        if levels.block_size_bytes is not None:
            own.append(Argument("-s", str(levels.block_size_bytes)))
        words = joined(own, parse_arguments(levels.mkfs_options, valued=_VALUED), lists=())
        return warnings_in(commands.run(["mkfs.btrfs", "-q", *words, device_path], timeout_s=3600).output)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """No discard of its own, barrier and copy-on-write as asked, then the plan's own words."""
        asked = plan_words(levels)
        words = []
        if not any(word.partition("=")[0] in ("discard", "nodiscard") for word in asked):
            words.append("nodiscard")
        words += factor_words(levels)
        if "nodatacow" in levels.features:
            words.append("nodatacow" if levels.features.flag("nodatacow") else "datacow")
        return (*words, *asked)

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
        return mount(device_path, target, "btrfs", self.mount_options(levels), commands=commands)

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From statvfs, the mount table, the superblock and sysfs."""
        del journal
        entry = mount_entry(target)
        argv = ["btrfs", "inspect-internal", "dump-super", device.path]
        superblock = parse_superblock(commands.run(argv).stdout)
        profiles = read_profiles(superblock["fsid"])
        shown = {*entry.options, *entry.super_options}
        rules = _rules(os.cpu_count() or 1)
        asked = levels.block_size_bytes
        size, sector = os.statvfs(target).f_bsize, _number(superblock.get("sectorsize"))
        # `nodatacow` implies `nodatasum`; both are shown. Asking for compression undoes both.
        plain = "nodatacow" in shown
        datasum = "nodatasum" not in shown
        own = () if "nodiscard" not in self.mount_options(levels) else ("nodiscard",)
        words = tuple(dict.fromkeys((*own, *plan_words(levels))))
        return (
            compared("filesystem.type", levels.type, entry.type, "mountinfo"),
            compared("filesystem.block_size_bytes", asked, size, "statvfs"),
            compared("filesystem.superblock.block_size_bytes", asked, sector, "dump-super"),
            compared("filesystem.barrier", levels.barrier, "nobarrier" not in shown, "mountinfo"),
            compared("filesystem.nodatacow", levels.features.get("nodatacow"), plain, "mountinfo"),
            fact("filesystem.datasum", datasum, "mountinfo"),
            *rules.compare(words, shown, "mountinfo"),
            *_compare_mkfs(parse_arguments(levels.mkfs_options, valued=_VALUED), superblock, profiles),
            *_facts(superblock, profiles),
            fact("filesystem.label", superblock.get("label"), "dump-super"),
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
        """`btrfs check --readonly`; status 0 is clean."""
        del levels, journal_path
        argv = ["btrfs", "check", "--readonly", device_path]
        done = commands.run(argv, timeout_s=3600, check=False)
        return checked_by(done)


def parse_superblock(text: str) -> Mapping[str, str]:
    """`key value` lines of `dump-super`; the flags' names stand under `key.names`, sorted.

    OutputNotUnderstood if it is no superblock of btrfs.
    """
    found: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if line[:1].isspace():
            names = re.findall(r"[A-Z][A-Z0-9_]+", line)
            found[f"{key}.names"] = " ".join(sorted({*found.get(f"{key}.names", "").split(), *names}))
            continue
        fields = re.match(r"(\S+)(?: \(deprecated\))?\t+(.*)", line)
        if fields:
            key = fields[1]
            found[key] = fields[2].strip()
    if not found.get("magic", "").startswith("_BHRfS_M") or "fsid" not in found:
        raise OutputNotUnderstood("btrfs dump-super", expected="magic _BHRfS_M", found=text)
    return found


def read_profiles(fsid: str, *, sysfs: Path = SYSFS) -> Mapping[str, str]:
    """The profile of `data` and `metadata` (`single`, `dup`, …) of a mounted file system."""
    found = {}
    for kind in ("data", "metadata"):
        profiles = sorted(path.name for path in (sysfs / fsid / "allocation" / kind).glob("*/"))
        if profiles:
            found[kind] = " ".join(profiles)
    return found


def _facts(superblock: Mapping[str, str], profiles: Mapping[str, str]) -> Iterator[Comparison]:
    source = "dump-super"
    for name, key in (("node_bytes", "nodesize"), ("devices", "num_devices"), ("total_bytes", "total_bytes")):
        yield fact(f"filesystem.superblock.{name}", _number(superblock.get(key)), source)
    yield fact("filesystem.superblock.checksum", _checksum(superblock), source)
    yield fact("filesystem.superblock.features", superblock.get("incompat_flags.names"), source)
    yield fact("filesystem.superblock.ro_features", superblock.get("compat_ro_flags.names"), source)
    for kind in ("data", "metadata"):
        yield fact(f"filesystem.superblock.{kind}_profile", profiles.get(kind), "sysfs")


def _compare_mkfs(
    arguments: Collection[Argument], superblock: Mapping[str, str], profiles: Mapping[str, str]
) -> Iterator[Comparison]:
    flags = {
        *superblock.get("incompat_flags.names", "").split(),
        *superblock.get("compat_ro_flags.names", "").split(),
    }
    numbers = {"-n": "nodesize", "-s": "sectorsize"}
    kinds = {"-d": "data", "-m": "metadata"}
    for argument in arguments:
        flag, value = _LONG.get(argument.flag, argument.flag), argument.value
        name = f"{MKFS_OPTION}{argument.flag}"
        if flag in numbers and value is not None:
            yield compared(name, _size(value), _number(superblock.get(numbers[flag])), "dump-super")
        elif flag in kinds and value is not None:
            yield compared(name, value.lower(), profiles.get(kinds[flag]), "sysfs")
        elif flag == "--csum":
            asked = str(value).lower()
            yield compared(name, _CHECKSUM_NAMES.get(asked, asked), _checksum(superblock), "dump-super")
        elif flag in ("-O", "-R"):
            yield from (_compare_feature(name, part, flags) for part, _ in argument.parts)
        else:
            yield not_verifiable(name, argument.text, "the superblock does not show it")


def _compare_feature(name: str, part: str, flags: Collection[str]) -> Comparison:
    plain = part.lstrip("^")
    shown = _FEATURE_FLAGS.get(plain)
    if shown is None:
        return not_verifiable(f"{name}.{plain}", part, "the superblock does not show it")
    effective = plain if shown in flags else f"^{plain}"
    return compared(f"{name}.{plain}", part, effective, "dump-super")


def _checksum(superblock: Mapping[str, str]) -> str | None:
    found = re.search(r"\((\w+)\)", superblock.get("csum_type", ""))
    return found[1].lower() if found else None


def _size(text: str) -> Scalar:
    try:
        return parse_size(text)
    except ValueError:
        return text


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
