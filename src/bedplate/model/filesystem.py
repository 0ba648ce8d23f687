"""What is known of each file system type without asking a kernel: the pruning rules stand on it.

What a kernel accepts in the end is read back by the adapters (room `filesystem`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BARRIER_BY_MOUNT_OPTION = "mount option"
BARRIER_BY_WRITE_CACHE = "write cache"


@dataclass(frozen=True)
class FilesystemTraits:
    """Traits of one type.

    `kernel_types` are the names in /proc/filesystems of which one must be there. `block_sizes` are
    those that mkfs can make; which of them mount depends on the page size (`above_page_size`).
    `features` maps a type's own factor to its allowed levels. `barrier_by` says how
    `barrier = false` is brought about; None where the type never flushes at all.
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


_SMALL = (1024, 2048, 4096)
_DATA = {"data": ("ordered", "writeback", "journal")}

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
        ),
        FilesystemTraits(
            "ext3",
            ("ext3", "ext4"),
            _SMALL,
            features=_DATA,
            barrier_on_option="barrier=1",
            barrier_off_option="barrier=0",
            journals=("internal", "external"),
        ),
        FilesystemTraits(
            "ext4",
            ("ext4",),
            (*_SMALL, 8192, 16384, 32768, 65536),
            features=_DATA,
            barrier_on_option="barrier=1",
            barrier_off_option="barrier=0",
            journals=("internal", "external", "none"),
        ),
        # The barrier options went with kernel 4.19; the device's write-cache switch remains.
        FilesystemTraits(
            "xfs",
            ("xfs",),
            (512, *_SMALL, 8192, 16384, 32768, 65536),
            above_page_size=True,
            barrier_by=BARRIER_BY_WRITE_CACHE,
            journals=("internal", "external"),
        ),
        FilesystemTraits(
            "btrfs",
            ("btrfs",),
            (4096,),
            features={"nodatacow": (True, False)},
            barrier_on_option="barrier",
            barrier_off_option="nobarrier",
        ),
        FilesystemTraits("jfs", ("jfs",), (4096,), barrier_by=None, journals=("internal", "external")),
        FilesystemTraits(
            "reiserfs",
            ("reiserfs",),
            _SMALL,
            barrier_on_option="barrier=flush",
            barrier_off_option="barrier=none",
            journals=("internal", "external"),
        ),
        FilesystemTraits(
            "nilfs2",
            ("nilfs2",),
            _SMALL,
            barrier_on_option="barrier",
            barrier_off_option="nobarrier",
        ),
    )
}
