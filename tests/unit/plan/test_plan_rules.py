from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bedplate.engines.postgresql.plan import IO_URING_DISABLED
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    Throttle,
)
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.reason import sentences
from bedplate.model.visit import ScratchDevice
from bedplate.plan import rules
from bedplate.plan.rules import SCHEDULERS_AVAILABLE, XFS_V4, CellContext

IMAGE = ScratchDevice(image_bytes=2**32)
DISK = ScratchDevice(device="/dev/disk/by-id/x")
GIB = 2**30
KB = 1024


def a_cell(kind: str = "ext4", **asked: Any) -> Cell:
    device = {name: asked.pop(name) for name in ("memory_bytes", "throttle", "scheduler") if name in asked}
    version = asked.pop("version", "18")
    settings = Levels(asked.pop("settings", {}))
    features = Levels({name: asked.pop(name) for name in ("data", "nodatacow") if name in asked})
    return Cell(
        DeviceLevels(**device),
        KernelLevels(),
        FilesystemLevels(kind, features=features, **asked),
        BuildLevels(version=version),
        ClusterLevels(settings=settings),
    )


MakeMachine = Callable[..., Machine]


def reasons(cell: Cell, around: CellContext) -> tuple[str, ...]:
    return sentences(rules.reasons(cell, around))


@pytest.mark.parametrize(
    ("cell", "facts", "reason"),
    [
        (a_cell("nilfs2"), {}, "has no nilfs2"),
        (a_cell("ext3"), {"filesystems": ("xfs",)}, "has no ext3 or ext4"),
        (a_cell(block_size_bytes=8 * KB), {}, "needs kernel 6.19, this is 6.18"),
        (a_cell(block_size_bytes=512), {}, "ext4 has no 512 B blocks"),
        (a_cell("ext2", block_size_bytes=8 * KB), {}, "ext2 has no 8 KiB blocks"),
        (a_cell("xfs", block_size_bytes=512), {}, "CONFIG_XFS_SUPPORT_V4"),
        (
            a_cell("xfs", block_size_bytes=512),
            {"kernel_release": "6.1.0", "tunables": {XFS_V4: "n"}},
            "CONFIG_XFS_SUPPORT_V4",
        ),
        (
            a_cell("xfs", block_size_bytes=16 * KB),
            {"kernel_release": "6.1.0-56"},
            "needs kernel 6.12, this is 6.1",
        ),
        (a_cell("btrfs", block_size_bytes=2 * KB), {}, "btrfs has no 2 KiB blocks; it has 4 KiB"),
        (a_cell("xfs", mount_options=("nobarrier",)), {}, "refuses it since kernel 4.19"),
        (a_cell("btrfs", mount_options=("barrier=0",)), {}, "btrfs refuses it"),
        (a_cell("ext2", data="writeback"), {}, "ext2 has no data = 'writeback'"),
        (a_cell("ext2", mount_options=("data=writeback",)), {}, "ext2 has no journal"),
        (a_cell(journal="none", data="writeback"), {}, "without a journal has no data mode"),
        (a_cell(journal="none", mount_options=("data=ordered",)), {}, "refused without a journal"),
        (a_cell(mount_options=("journal_async_commit",)), {}, "refuses it with data = ordered"),
        (a_cell(data="ordered", mount_options=("journal_async_commit",)), {}, "with data = ordered"),
        (a_cell(data="journal", mount_options=("delalloc",)), {}, "with data = journal"),
        (a_cell(data="journal", mount_options=("data=ordered",)), {}, "contradict each other"),
        (a_cell("ext3", mount_options=("delalloc",)), {}, "refuses it for ext2 and ext3"),
        (a_cell("ext2", mount_options=("nobh",)), {}, "ignores it silently"),
        (a_cell("ext2", mount_options=("xip",)), {}, "refuses it"),
        (a_cell("xfs", journal="none"), {}, "xfs has no journal = 'none'"),
        (a_cell("btrfs", journal="none"), {}, "it has no choice"),
        (a_cell("xfs", nodatacow=True), {}, "xfs has no nodatacow = true"),
        (a_cell("btrfs", nodatacow=True, mount_options=("compress=zstd:3",)), {}, "switch each other off"),
        (a_cell("btrfs", mount_options=("nodatacow", "compress-force")), {}, "switch each other off"),
        (a_cell("btrfs", nodatacow=False, mount_options=("nodatacow",)), {}, "contradict each other"),
        (a_cell(barrier=True, mount_options=("nobarrier",)), {}, "barrier = true and mount option nobarrier"),
        (a_cell(barrier=False, mount_options=("barrier=1",)), {}, "contradict each other"),
        (a_cell("jfs", barrier=True), {"filesystems": ("jfs",)}, "never flushes"),
        (
            a_cell("reiserfs", mount_options=("nobarrier",)),
            {"filesystems": ("reiserfs",)},
            "write barrier = true or false",
        ),
        (
            a_cell("reiserfs", data="journal", mount_options=("data=ordered",)),
            {"filesystems": ("reiserfs",)},
            "contradict each other",
        ),
        (a_cell("nilfs2", mount_options=("barrier=1",)), {"filesystems": ("nilfs2",)}, "refuses it"),
        (
            a_cell("f2fs", barrier=True, mount_options=("fsync_mode=nobarrier",)),
            {"filesystems": ("f2fs",)},
            "contradict each other",
        ),
        (a_cell("f2fs", mount_options=("data=ordered",)), {"filesystems": ("f2fs",)}, "no data modes"),
        (
            a_cell("f2fs", mount_options=("barrier",)),
            {"filesystems": ("f2fs",), "kernel_release": "6.1.0-56-amd64"},
            "knows nobarrier alone",
        ),
        (a_cell("ntfs3", mount_options=("nobarrier",)), {"filesystems": ("ntfs3",)}, "no such option"),
        (a_cell("ntfs-3g", mount_options=("nobarrier",)), {"filesystems": ("fuseblk",)}, "ignores it"),
        (a_cell("ntfs-3g", mount_options=("uid=33",)), {"filesystems": ("fuse",)}, "one owner or mode"),
        (a_cell("ntfs-3g"), {}, "has no fuseblk or fuse"),
        (a_cell("bcachefs"), {}, "has no bcachefs"),
        (a_cell(mount_options=("noatime", "discard")), {}, "name a real device"),
        (a_cell(mount_options=("noatime", "noatime")), {}, "listed twice"),
        (a_cell(memory_bytes=GIB), {"cgroup_version": None}, "needs a cgroup that limits memory"),
        (a_cell(memory_bytes=24 * GIB), {}, "cannot be emulated on a machine with 24 GiB"),
        (a_cell(throttle=Throttle("hdd-7200", 150)), {"cgroup_version": None}, "needs a cgroup"),
        (
            a_cell("zfs", memory_bytes=GIB),
            {"filesystems": ("zfs",), "cgroup_version": 1},
            "does not hold zfs's own cache",
        ),
        (
            a_cell("zfs", throttle=Throttle("hdd-7200", 150)),
            {"filesystems": ("zfs",), "cgroup_version": 2},
            "zfs writes by kernel threads",
        ),
        (
            a_cell(scheduler="bfq"),
            {"tunables": {SCHEDULERS_AVAILABLE: "[none] mq-deadline"}},
            "no I/O scheduler bfq",
        ),
        (a_cell(version="17", settings={"io_method": "sync"}), {}, "came with 18"),
        (
            a_cell(settings={"io_method": "io_uring"}),
            {"tunables": {IO_URING_DISABLED: "2"}},
            "this machine forbids it",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_cell_that_cannot_exist_has_its_one_reason(
    machine: MakeMachine, cell: Cell, facts: dict[str, Any], reason: str
) -> None:
    (found,) = reasons(cell, CellContext(machine(**facts), IMAGE))
    assert reason in found


@pytest.mark.parametrize(
    ("cell", "facts"),
    [
        (a_cell(), {}),
        (a_cell("ext2"), {"filesystems": ("ext4",)}),
        (a_cell(block_size_bytes=8 * KB), {"kernel_release": "6.19.0"}),
        (a_cell(block_size_bytes=8 * KB), {"kernel_release": "7.2.13+deb14"}),
        (a_cell(block_size_bytes=64 * KB), {"page_size_bytes": 64 * KB}),
        (a_cell("xfs", block_size_bytes=512), {"kernel_release": "6.1.0-56"}),
        (a_cell("xfs", block_size_bytes=512), {"tunables": {XFS_V4: "y"}}),
        (a_cell("xfs", block_size_bytes=64 * KB), {}),
        (a_cell("xfs", mount_options=("nobarrier",)), {"kernel_release": "4.18.0"}),
        (a_cell("xfs", barrier=False), {}),
        (a_cell(data="writeback", mount_options=("journal_async_commit",)), {}),
        (a_cell(barrier=False, mount_options=("nobarrier",)), {}),
        (a_cell("btrfs", nodatacow=True, mount_options=("compress=no",)), {}),
        (a_cell("btrfs", nodatacow=False, mount_options=("compress=zstd",)), {}),
        (a_cell(mount_options=("nodiscard",)), {}),
        (a_cell(memory_bytes=GIB), {"cgroup_version": 2}),
        (a_cell("zfs", throttle=Throttle("hdd-7200", 150)), {"filesystems": ("zfs",), "cgroup_version": 1}),
        (a_cell("zfs", block_size_bytes=1024 * KB), {"filesystems": ("zfs",)}),
        (a_cell("ntfs3", block_size_bytes=64 * KB), {"filesystems": ("ntfs3",)}),
        (a_cell("reiserfs", mount_options=("barrier=flush", "commit=30")), {"filesystems": ("reiserfs",)}),
        (a_cell("nilfs2", mount_options=("nogc", "nobarrier")), {"filesystems": ("nilfs2",)}),
        (a_cell("f2fs", mount_options=("nobarrier", "mode=lfs")), {"filesystems": ("f2fs",)}),
        (a_cell("f2fs", mount_options=("barrier",)), {"filesystems": ("f2fs",), "kernel_release": "6.12.1"}),
        (a_cell("f2fs", mount_options=("barrier",)), {"filesystems": ("f2fs",), "kernel_release": "mine"}),
        (a_cell("ntfs-3g", mount_options=("permissions", "big_writes")), {"filesystems": ("fuse",)}),
        (a_cell(scheduler="bfq"), {}),
        (a_cell(scheduler="none"), {"tunables": {SCHEDULERS_AVAILABLE: "[none] mq-deadline"}}),
        (a_cell(settings={"io_method": "io_uring"}), {"tunables": {IO_URING_DISABLED: "0"}}),
        (a_cell(settings={"io_method": "io_uring"}), {}),
    ],
    ids=repr,
)
def test_a_cell_that_can_exist_is_kept(machine: MakeMachine, cell: Cell, facts: dict[str, Any]) -> None:
    assert reasons(cell, CellContext(machine(**facts), IMAGE)) == ()


def test_a_guest_is_as_small_as_the_memory_asked_for_zfs(machine: MakeMachine) -> None:
    guest = machine(filesystems=("zfs",), cgroup_version=2)
    cell = a_cell("zfs", memory_bytes=GIB)
    assert reasons(cell, CellContext(guest, IMAGE, host=machine(memory_bytes=8 * GIB))) == ()


def test_discard_is_kept_on_a_real_device(machine: MakeMachine) -> None:
    cell = a_cell(mount_options=("discard",))
    assert reasons(cell, CellContext(machine(), DISK)) == ()


def test_all_reasons_come_together(machine: MakeMachine) -> None:
    cell = a_cell("nilfs2", block_size_bytes=8 * KB, data="journal", memory_bytes=64 * GIB)
    found = reasons(cell, CellContext(machine(cgroup_version=None), IMAGE))
    assert len(found) == 5


@pytest.mark.parametrize("kind", list(TRAITS))
def test_without_a_machine_only_what_holds_everywhere_is_judged(kind: str) -> None:
    around = CellContext(None, IMAGE)
    assert reasons(a_cell(kind, memory_bytes=GIB), around) == ()
    assert reasons(a_cell(kind, block_size_bytes=4 * KB), around) == ()


def test_a_kernel_of_unknown_version_is_not_judged(machine: MakeMachine) -> None:
    around = CellContext(machine(kernel_release="custom"), IMAGE)
    assert reasons(a_cell("xfs", block_size_bytes=16 * KB), around) == ()


def test_what_was_tried_stands_in_place_of_what_is_guessed(machine: MakeMachine) -> None:
    old_format = a_cell("xfs", block_size_bytes=512)
    large = a_cell("xfs", block_size_bytes=16 * KB)
    tried = {old_format.filesystem: (), large.filesystem: ("mount: refused",)}
    around = CellContext(machine(), IMAGE, tried)
    assert reasons(old_format, around) == ()
    assert reasons(large, around) == ("mount: refused",)


def test_trying_does_not_lift_what_the_plan_contradicts(machine: MakeMachine) -> None:
    cell = a_cell("xfs", mount_options=("discard",), memory_bytes=64 * GIB)
    around = CellContext(machine(), IMAGE, {cell.filesystem: ()})
    assert len(reasons(cell, around)) == 2
