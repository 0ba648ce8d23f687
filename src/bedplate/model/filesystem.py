"""What is known of each file system type without asking a kernel: the pruning rules stand on it.

What a kernel accepts in the end is read back by the adapters (room `filesystem`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from bedplate import registry
from bedplate.model.cell import Cell, ClusterLevels, DeviceLevels, FilesystemLevels
from bedplate.model.levels import Levels, as_in_a_plan
from bedplate.model.visit import LOADED, RESTORED
from bedplate.units import KIB, MIB, format_size

# What mkfs writes on each of bedplate's own file systems, and how they are known again; XFS takes twelve characters.
LABEL = "bedplate"

BARRIER_BY_MOUNT_OPTION = "mount option"
BARRIER_BY_WRITE_CACHE = "write cache"

# What the kernel says of every mount. The record holds whatever names a file system, and these lines
# carry no priority any more. A count of suppressed messages comes with the next one of their kind, often minutes later, in
# another visit (the hundreds of mounts of power cuts); the first of those that it counts stand in the log by themselves.
ROUTINE_KERNEL_MESSAGE = re.compile(
    r"""mounted\ filesystem | unmounting\ filesystem | re-mounted
    | mounting\ (v\d|ext\d)\ (filesystem|file\ system) | mounting\ V\d+\ filesystem
    | mounting\ with\ [^!]*\ mode | EXPERIMENTAL
    | ending\ clean\ mount | unmounting\ filesystem
    | ^BTRFS:?\ (info|device) | last\ unmount\ of\ filesystem
    | EXT4-fs\ \([^)]*\):\ (disabling\ barriers|mount\ options)
    | ^[\w\ -]+:\ \d+\ callbacks\ suppressed$ | detected\ capacity\ change
    | quota\ (turned|mode) | mount\ option\ is\ deprecated | supports\ timestamps\ until
    | reiserfs\ filesystem\ is\ deprecated | ^reiserfs:\ using\ flush\ barriers$""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True)
class FilesystemTraits:
    """Traits of one type.

    `kernel_types` are the names in /proc/filesystems of which one must be there. `block_sizes` are
    those that mkfs can make; one above the page size mounts only if `above_page_size` (and even then
    only on a kernel that can: a probe tells).
    A `block_is_a_cluster` is a unit of allocation, which no page has to hold.
    `features` maps a type's own factor to its allowed levels. `barrier_by` says how
    `barrier = false` is brought about; None where the type never flushes at all. No
    `barrier_on_option` where barriers are on without a word. `journal_holds_data` marks a journal
    that holds what fsync promises whatever the data mode; one that `rolls_back_whole` is after a power
    cut what it was at one moment, in every file. One that `keeps_whole_extents`
    frees an extent when its last block is overwritten, and not before. Where it `has_own_addresses`, its maps of files (FIEMAP)
    hold those and no places of the device. `label_flags` are mkfs's own for the label,
    `unasked_flags` those by which it neither asks nor talks. So many `recovery_s` an image takes after a cut, from its mount to its check,
    beyond one of ext4 or XFS: seconds on a processor that is not emulated.
    """

    type: str
    kernel_types: tuple[str, ...]
    block_sizes: tuple[int, ...]
    above_page_size: bool = False
    features: Mapping[str, tuple[str | bool, ...]] = field(default_factory=dict)
    barrier_by: str | None = BARRIER_BY_MOUNT_OPTION
    barrier_on_option: str | None = None
    barrier_off_option: str | None = None
    journals: tuple[str, ...] = ()
    needs_fsck_after_a_cut: bool = False
    block_is_a_cluster: bool = False
    journal_holds_data: bool = False
    rolls_back_whole: bool = False
    keeps_whole_extents: bool = False
    has_own_addresses: bool = False
    label_flags: tuple[str, ...] = ("-L", "--label")
    unasked_flags: tuple[str, ...] = ("-q", "-f")
    recovery_s: float = 0.0

    def checked_by_fsck(self, journal: str | None) -> bool:
        """True where nothing but fsck makes the file system whole after a power cut."""
        return self.needs_fsck_after_a_cut or journal == "none"

    @property
    def usual(self) -> Mapping[str, str | bool]:
        """The levels that hold where a plan asks for none, as far as all kernels agree on them."""
        barrier = {} if self.barrier_by is None else {"barrier": True}
        journal = {"journal": "internal"} if "internal" in self.journals else {}
        features = {name: level for name, level in _USUAL_FEATURES.items() if name in self.features}
        return {**barrier, **journal, **features}


_SMALL = (1024, 2048, 4096)
_CLUSTERS = (512, *_SMALL, 8192, 16384, 32768, 65536)

# The unit in which XFS allocates what it copies on write (xfs_io(8)); 32 blocks unless it is told.
COW_HINT = "cowextsize"

COW_HINTS = {f"{kib}k": kib * KIB for kib in (4, 8, 16, 32, 64, 128)}

# How a file system was used before the database came: as mkfs made it, or aged by a profile. And how full it is with the database.
AGED, FILL = "aged", "fill"

FRESH = "no"


@dataclass(frozen=True)
class AgeProfile:
    """Files of these sizes fill a file system up to `full_share`, and are deleted at random down to `left_share`, again and again."""

    smallest_bytes: int
    largest_bytes: int
    full_share: float
    left_share: float


# What changes a profile or the way in which it ages asks for a new version: aged images are known by it.
AGEING_VERSION = 1

AGE_PROFILES: Mapping[str, AgeProfile] = {
    # A file server: files of all sizes.
    "mixed": AgeProfile(4 * KIB, 4 * MIB, 0.90, 0.60),
    # Mail, thumbnails, a package cache: what they leave free is in small pieces.
    "small files": AgeProfile(4 * KIB, 64 * KIB, 0.90, 0.50),
}

FILLS = {f"{percent} %": percent / 100 for percent in (50, 60, 70, 75, 80, 85, 90, 95)}

_AGE: Mapping[str, tuple[str | bool, ...]] = {FILL: (FRESH, *FILLS), AGED: (FRESH, *AGE_PROFILES)}
_DATA: Mapping[str, tuple[str | bool, ...]] = {"data": ("ordered", "writeback", "journal")}

# ZFS's compression is not here: releases differ in it.
_USUAL_FEATURES: Mapping[str, str | bool] = {
    "data": "ordered",
    "nodatacow": False,
    FILL: FRESH,
    AGED: FRESH,
    "logbias": "latency",
    "sync": "standard",
}

TRAITS: Mapping[str, FilesystemTraits] = {
    traits.type: traits
    for traits in (
        # The ext4 driver mounts all three where the old drivers are gone.
        FilesystemTraits(
            "ext2",
            ("ext2", "ext4"),
            _SMALL,
            barrier_on_option="barrier=1",
            barrier_off_option="barrier=0",
            needs_fsck_after_a_cut=True,
            unasked_flags=("-q", "-F"),
        ),
        FilesystemTraits(
            "ext3",
            ("ext3", "ext4"),
            _SMALL,
            features=_DATA,
            barrier_on_option="barrier=1",
            barrier_off_option="barrier=0",
            journals=("internal", "external"),
            unasked_flags=("-q", "-F"),
        ),
        FilesystemTraits(
            "ext4",
            ("ext4",),
            (*_SMALL, 8192, 16384, 32768, 65536),
            features={**_DATA, **_AGE},
            barrier_on_option="barrier=1",
            barrier_off_option="barrier=0",
            journals=("internal", "external", "none"),
            unasked_flags=("-q", "-F"),
        ),
        # The barrier options went with kernel 4.19; the device's write-cache switch remains.
        FilesystemTraits(
            "xfs",
            ("xfs",),
            (512, *_SMALL, 8192, 16384, 32768, 65536),
            above_page_size=True,
            features={COW_HINT: tuple(COW_HINTS), **_AGE},
            barrier_by=BARRIER_BY_WRITE_CACHE,
            journals=("internal", "external"),
        ),
        FilesystemTraits(
            "btrfs",
            ("btrfs",),
            (4096,),
            features={"nodatacow": (True, False), **_AGE},
            keeps_whole_extents=True,
            has_own_addresses=True,
            barrier_on_option="barrier",
            barrier_off_option="nobarrier",
        ),
        # No flush of JFS was ever counted (6.1, 6.12, 7.2): it writes its log and asks for none.
        FilesystemTraits("jfs", ("jfs",), (4096,), barrier_by=None, journals=("internal", "external")),
        # Gone with kernel 6.13.
        FilesystemTraits(
            "reiserfs",
            ("reiserfs",),
            _SMALL,
            features=_DATA,
            barrier_on_option="barrier=flush",
            barrier_off_option="barrier=none",
            journals=("internal", "external"),
            label_flags=("-l", "--label"),
        ),
        FilesystemTraits(
            "nilfs2",
            ("nilfs2",),
            _SMALL,
            barrier_on_option="barrier",
            barrier_off_option="nobarrier",
        ),
        FilesystemTraits(
            "f2fs",
            ("f2fs",),
            (4096,),
            barrier_off_option="nobarrier",
            label_flags=("-l",),
        ),
        # Neither driver of NTFS has an option for barriers; the device's write-cache switch remains. Both
        # play back a journal that Windows left, and write none (Documentation/filesystems/ntfs3.rst).
        FilesystemTraits(
            "ntfs3",
            ("ntfs3",),
            _CLUSTERS,
            barrier_by=BARRIER_BY_WRITE_CACHE,
            needs_fsck_after_a_cut=True,
            block_is_a_cluster=True,
            unasked_flags=("-q", "-F"),
        ),
        FilesystemTraits(
            "ntfs-3g",
            ("fuseblk", "fuse"),
            _CLUSTERS,
            barrier_by=BARRIER_BY_WRITE_CACHE,
            needs_fsck_after_a_cut=True,
            block_is_a_cluster=True,
            unasked_flags=("-q", "-F"),
        ),
        # Gone with kernel 6.18.
        FilesystemTraits(
            "bcachefs",
            ("bcachefs",),
            (512, *_SMALL),
            barrier_off_option="journal_flush_disabled",
            has_own_addresses=True,
            unasked_flags=("--force", f"--fs_label={LABEL}"),
        ),
        # The block is the recordsize. zfs_nocacheflush would switch off the flushes of every pool of
        # the machine; the write-cache switch is the device's own.
        FilesystemTraits(
            "zfs",
            ("zfs",),
            (*_CLUSTERS, *(2**power for power in range(17, 21))),
            features={
                "compression": ("off", "lz4", "zstd", "gzip", "zle", "lzjb"),
                "logbias": ("latency", "throughput"),
                "sync": ("standard", "always", "disabled"),
            },
            barrier_by=BARRIER_BY_WRITE_CACHE,
            journals=("internal", "external"),
            block_is_a_cluster=True,
            has_own_addresses=True,
            journal_holds_data=True,
            rolls_back_whole=True,
            # A pool's name for as long as it is imported.
            label_flags=("-t",),
            # It is imported two times, which loads the pool four times, and is scrubbed.
            recovery_s=1.5,
        ),
    )
}


def without_age(features: Levels) -> Levels:
    """The factors that mkfs, mount and the kernel know."""
    return Levels({name: level for name, level in features.items() if name not in _AGE})


def age_of(levels: FilesystemLevels) -> str | None:
    """The profile that it is aged by; None where it is as mkfs made it."""
    found = levels.features.text(AGED)
    return None if found == FRESH else found


def fill_of(levels: FilesystemLevels) -> float | None:
    """How full it is with the database, as a share; None where nothing fills it."""
    return FILLS.get(levels.features.text(FILL) or "")


def feature_levels() -> Mapping[str, tuple[str | bool, ...]]:
    """Every level of every type's own factors, by the factor's name."""
    found: dict[str, dict[str | bool, None]] = {}
    for traits in TRAITS.values():
        for name, levels in traits.features.items():
            found.setdefault(name, {}).update(dict.fromkeys(levels))
    return {name: tuple(levels) for name, levels in found.items()}


# Words that lead mkfs to a second device or to a file: what bedplate erases is its scratch device.
_MKFS_ELSEWHERE = ("device=", "logdev=", "rtdev=", "name=", "file=", "uuid=", "label=")

# Words that change what is mounted, or that lead mount(8) elsewhere.
_MOUNT_ELSEWHERE = ("loop", "offset", "sizelimit", "device", "logdev", "rtdev", "jdev", "journal_path")

# What bedplate itself says of a pool, and what stands in a key of its own.
_POOL_MOUNT = ("mountpoint", "canmount", "altroot", "cachefile", "readonly", "sharenfs", "sharesmb")

_POOL_KEYS = ("recordsize", "compression", "logbias", "sync")
_MOUNT_OTHERWISE = ("remount", "bind", "rbind", "move", "ro", "helper", "uhelper", "journal_dev", "abort")

# `errors=panic` of ext2 to ext4, JFS, NILFS2 and F2FS, `-e panic`, `fatal_errors=panic` of Btrfs,
# `failmode=panic` of ZFS: whatever the spelling, no option means anything else by this word.
_PANIC = "panic"

_STOPS_THE_MACHINE = (
    "an error of the file system, such as a full or a torn image, would stop the whole machine"
)


def option_words(options: Iterable[str], *, separator: str | None = None) -> tuple[str, ...]:
    """The single words of options, however the plan grouped them (`"-I 512"`, `"noatime,commit=5"`).

    `separator` is None (white space) for mkfs, a comma for mount.
    """
    return tuple(word.strip() for option in options for word in option.split(separator) if word.strip())


def unsafe_options(levels: FilesystemLevels) -> tuple[str, ...]:
    """One reason per mkfs or mount option that reaches beyond the scratch device or defeats the study.

    These are errors of the plan, not cells to be pruned: nothing may run with them.
    """
    reasons = []
    traits = TRAITS.get(levels.type)
    label_flags = traits.label_flags if traits else FilesystemTraits.label_flags
    for word in option_words(levels.mkfs_options):
        if _PANIC in word.lower():
            reasons.append(f"mkfs option {word!r}: {_STOPS_THE_MACHINE}")
        elif "/" in word or any(name in word.lower() for name in _MKFS_ELSEWHERE):
            reasons.append(
                f"mkfs option {word!r} names another device or a file; only the scratch device is used"
            )
        elif word.startswith(label_flags):
            reasons.append(
                f"mkfs option {word!r}: the label is how bedplate knows its own file systems again"
            )
    if levels.type == "zfs":
        reasons += _unsafe_properties(levels)
    for word in option_words(levels.mount_options, separator=","):
        name = word.partition("=")[0].lower()
        if _PANIC in word.lower():
            reasons.append(f"mount option {word!r}: {_STOPS_THE_MACHINE}")
        elif "/" in word or name in _MOUNT_ELSEWHERE or name.startswith("x-"):
            reasons.append(
                f"mount option {word!r} names another device or a file; only the scratch device is used"
            )
        elif name in _MOUNT_OTHERWISE:
            reasons.append(f"mount option {word!r} would not leave a fresh, writable file system to measure")
    return tuple(reasons)


def _unsafe_properties(levels: FilesystemLevels) -> Iterator[str]:
    """Of `zpool create -o name=value -O name=value`, which is all that a plan may say to it."""
    words = option_words(levels.mkfs_options)
    for before, word in zip(("", *words), words, strict=False):
        text = word[2:] if word[:2] in ("-o", "-O") else word
        name, equals, _ = text.partition("=")
        if not text:
            continue  # a lone flag: its value is the next word
        if not equals or (text == word and before not in ("-o", "-O")):
            yield f"mkfs option {word!r}: for zfs only `-o name=value` and `-O name=value` are allowed"
        elif name in _POOL_MOUNT:
            yield f"mkfs option {word!r}: bedplate itself says how the pool is mounted"
        elif name in _POOL_KEYS:
            yield f"mkfs option {word!r}: write {name} as a key of the file system"


def flushed_by_nothing(levels: FilesystemLevels) -> bool:
    """Whether the device itself is to take no flush, as the type has no other way to be without barriers."""
    return levels.barrier is False and TRAITS[levels.type].barrier_by == BARRIER_BY_WRITE_CACHE


def contradictions(levels: FilesystemLevels) -> tuple[str, ...]:
    """One reason per asked level that the type can never have, on any kernel: such cells are pruned."""
    traits = TRAITS.get(levels.type)
    if traits is None:
        return (f"file system {levels.type!r} is not known; known are {', '.join(sorted(TRAITS))}",)
    reasons = []
    if levels.block_size_bytes is not None and levels.block_size_bytes not in traits.block_sizes:
        sizes = ", ".join(format_size(size) for size in traits.block_sizes)
        reasons.append(f"{traits.type} has no {format_size(levels.block_size_bytes)} blocks; it has {sizes}")
    if levels.journal is not None and levels.journal not in traits.journals:
        known = ", ".join(traits.journals) or "no choice"
        reasons.append(f"{traits.type} has no journal = {levels.journal!r}; it has {known}")
    if levels.journal_device is not None and levels.journal != "external":
        reasons.append(f"journal_device = {levels.journal_device!r} needs journal = 'external'")
    if levels.barrier is not None and traits.barrier_by is None:
        reasons.append(f"{traits.type} never flushes the device: it has no barriers to switch")
    for name, level in levels.features.items():
        allowed = traits.features.get(name, ())
        if level not in allowed:
            known = ", ".join(map(as_in_a_plan, allowed)) or "no such choice"
            shown = as_in_a_plan(level) if isinstance(level, bool) else repr(level)
            reasons.append(f"{traits.type} has no {name} = {shown}; it has {known}")
    if levels.barrier and levels.features.get("sync") == "disabled":
        reasons.append("sync = 'disabled' flushes nothing for fsync: barrier = true cannot hold")
    hint_bytes, block_bytes = (
        COW_HINTS.get(levels.features.text(COW_HINT) or ""),
        levels.block_size_bytes or 0,
    )
    if hint_bytes is not None and hint_bytes < block_bytes:
        reasons.append(f"cowextsize is counted in blocks, and one of {format_size(block_bytes)} is more")
    if age_of(levels) is not None and levels.journal == "external":
        reasons.append("aged: an aged file system is restored from an image, which holds no external journal")
    if levels.journal == "none" and "data" in levels.features:
        reasons.append(f"{traits.type} without a journal has no data mode")
    return tuple(reasons)


DATASETS = (LOADED, RESTORED)

# The role `kept_data` of an engine.
_ROLE = "kept_data"

# On which restored datasets were tried (tests/host/test_restored_dataset.py). `benchmarks/run restored` holds their figures against loaded ones.
RESTORABLE = ("ext2", "ext3", "ext4", "xfs", "btrfs")

# Mount options that say when and how what is written reaches the device, or what is noted of reading: none of where a block is put.
_MOUNT_ONLY = frozenset(
    (
        *(
            "noatime",
            "relatime",
            "strictatime",
            "nodiratime",
            "lazytime",
            "nolazytime",
            "nodev",
            "noexec",
            "nosuid",
        ),
        *("barrier", "nobarrier", "commit", "journal_checksum", "journal_async_commit"),
        *(
            "min_batch_time",
            "max_batch_time",
            "logbufs",
            "logbsize",
            "flushoncommit",
            "noflushoncommit",
            "notreelog",
        ),
    )
)

# Both allocate late and write in place; what is in the journal does not.
_SAME_FILES = {"data": ("ordered", "writeback")}


class KeptData(Protocol):
    """Which of an engine's settings decide the files that a load leaves."""

    def deciding(self, cluster: ClusterLevels) -> ClusterLevels:
        """The levels without the settings that are known to leave those files alone."""


def kept_data_of(engine: str) -> KeptData | None:
    """That of an engine; None where nobody has looked at its settings."""
    found: KeptData | None = registry.engine_part_or_none(engine, _ROLE)
    return found


def deciding(cell: Cell) -> Cell:
    """The cell in which an image is made: those that share it differ in nothing else. ValueError of an engine without the role."""
    kept = kept_data_of(cell.build.engine)
    if kept is None:
        raise ValueError(f"{cell.build.engine} has no role {_ROLE}")
    return replace(
        cell,
        # What a load leaves in the page cache is restored too, and that is as much as the memory holds.
        device=DeviceLevels(memory_bytes=cell.device.memory_bytes),
        filesystem=_filesystem(cell.filesystem),
        cluster=kept.deciding(cell.cluster),
    )


def _filesystem(levels: FilesystemLevels) -> FilesystemLevels:
    options = option_words(levels.mount_options, separator=",")
    features = {
        name: level for name, level in levels.features.items() if level not in _SAME_FILES.get(name, ())
    }
    return replace(
        levels,
        mount_options=tuple(word for word in options if word.partition("=")[0] not in _MOUNT_ONLY),
        barrier=None,
        features=Levels(features),
    )
