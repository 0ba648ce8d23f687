"""Btrfs. Read back from the mount table, from the superblock (`dump-super`) and from sysfs.

`dump-super` knows nothing of mount options; the profiles of data and metadata are in sysfs. On a
loop device btrfs would discard by itself (`discard=async`), which bedplate turns off unless asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.adapter import (
    MKFS_OPTION,
    Argument,
    Filesystem,
    Mounted,
    OptionRules,
    Site,
    compared,
    fact,
    not_verifiable,
    number,
    size_or_text,
)
from bedplate.filesystem.blocks import Layout, btrfs_layout
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.model.visit import ReadBack
from bedplate.units import MIB

SYSFS = Path("/sys/fs/btrfs")

_LOOK_LIMIT_S = 120.0
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


def option_rules(processors: int) -> OptionRules:
    """How a kernel shows the options on a machine with so many processors."""
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


class Btrfs(Filesystem):
    """Btrfs on one device."""

    traits = TRAITS["btrfs"]
    probe_bytes = 256 * MIB
    package = "btrfs-progs"
    tools = (("mkfs.btrfs", "makes"), ("btrfs", "reads back and checks"))
    version_argv = ("mkfs.btrfs", "--version")
    version_pattern = r"btrfs-progs v?(\S+)"
    mkfs_words = ("mkfs.btrfs", "-q")
    # getopt string of mkfs.btrfs 6.2 (mkfs/main.c).
    valued = "AblnsmdLROrU"
    own = (Argument("-K", None), Argument("-f", None), Argument("-L", LABEL))
    # Sectors other than the page's are only warned of, with status 0: the mount will tell.
    block_size_option = ("-s", "{}")
    discards_by_itself = True
    # Status 0 is clean.
    fsck = ("btrfs", "check", "--readonly")
    rules = option_rules(os.cpu_count() or 1)
    reader = "dump-super"
    label_key = "label"
    text_facts: Mapping[str, str] = {
        "features": "incompat_flags.names",
        "ro_features": "compat_ro_flags.names",
    }
    number_facts: Mapping[str, str] = {
        "node_bytes": "nodesize",
        "devices": "num_devices",
        "total_bytes": "total_bytes",
    }
    block_size_key = "sectorsize"

    def layout(self, site: Site) -> Layout:
        """By the chunk tree: a file's map has logical addresses."""
        words = ["btrfs", "inspect-internal", "dump-tree", "-t", "chunk", site.device.path]
        return btrfs_layout(site.commands.run(words, timeout_s=_LOOK_LIMIT_S, check=False).stdout)

    def _superblock(self, site: Site) -> Mapping[str, str]:
        argv = ["btrfs", "inspect-internal", "dump-super", site.device.path]
        superblock = parse_superblock(site.commands.run(argv).stdout)
        profiles = read_profiles(superblock["fsid"])
        return {**superblock, **{f"profile of {kind}": name for kind, name in profiles.items()}}

    def _state(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        # `nodatacow` implies `nodatasum`; both are shown. Asking for compression undoes both.
        plain, datasum = "nodatacow" in mount.shown, "nodatasum" not in mount.shown
        yield compared("filesystem.nodatacow", site.levels.features.get("nodatacow"), plain, "mountinfo")
        yield fact("filesystem.datasum", datasum, "mountinfo")

    def _compare_argument(self, argument: Argument, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        flag, value = _LONG.get(argument.flag, argument.flag), argument.value
        name = f"{MKFS_OPTION}{argument.flag}"
        if flag in _NUMBERS and value is not None:
            yield compared(name, size_or_text(value), number(superblock.get(_NUMBERS[flag])), "dump-super")
        elif flag in _PROFILES and value is not None:
            yield compared(name, value.lower(), superblock.get(_PROFILES[flag]), "sysfs")
        elif flag == "--csum":
            asked = str(value).lower()
            yield compared(name, _CHECKSUM_NAMES.get(asked, asked), _checksum(superblock), "dump-super")
        elif flag in ("-O", "-R"):
            yield from (_compare_feature(name, part, superblock) for part, _ in argument.parts)
        else:
            yield not_verifiable(name, argument.text, self.not_shown)

    def _facts(self, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        yield from super()._facts(superblock)
        yield fact("filesystem.superblock.checksum", _checksum(superblock), self.reader)
        for kind in ("data", "metadata"):
            profile = superblock.get(f"profile of {kind}")
            yield fact(f"filesystem.superblock.{kind}_profile", profile, "sysfs")


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


_NUMBERS = {"-n": "nodesize", "-s": "sectorsize"}
_PROFILES = {"-d": "profile of data", "-m": "profile of metadata"}


def _compare_feature(name: str, part: str, superblock: Mapping[str, str]) -> ReadBack:
    plain = part.lstrip("^")
    shown = _FEATURE_FLAGS.get(plain)
    if shown is None:
        return not_verifiable(f"{name}.{plain}", part, Btrfs.not_shown)
    flags = (superblock.get(f"{kind}_flags.names", "").split() for kind in ("incompat", "compat_ro"))
    effective = plain if any(shown in names for names in flags) else f"^{plain}"
    return compared(f"{name}.{plain}", part, effective, "dump-super")


def _checksum(superblock: Mapping[str, str]) -> str | None:
    found = re.search(r"\((\w+)\)", superblock.get("csum_type", ""))
    return found[1].lower() if found else None
