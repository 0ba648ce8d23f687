"""Why a cell cannot exist: what file systems, kernels and servers are known to refuse.

A rule is a function from a cell and its surroundings to sentences; a cell with any is pruned and listed
with all of them. A rule that depends on the machine says nothing where the machine is not known. What
no rule knows is found by reading back, and fails the visit instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from bedplate import registry
from bedplate.model.cell import (
    UNTORN_ON,
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.filesystem import TRAITS, contradictions
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.plan import Load, model_of
from bedplate.model.reason import Reason, distinct
from bedplate.model.visit import ScratchDevice
from bedplate.units import GIB, KIB, format_size, size_in_kb

_EXT = ("ext2", "ext3", "ext4")


@dataclass(frozen=True)
class RefusedOption:
    """An option (or, with a trailing `=`, any of its values) that a type does not take.

    `since` and `until` are the first and the last kernel of which that is known.
    """

    types: tuple[str, ...]
    options: tuple[str, ...]
    reason: str
    since: tuple[int, int] | None = None
    until: tuple[int, int] | None = None

    def holds_for(self, version: tuple[int, int] | None) -> bool:
        """Whether that kernel is one of them; of an unknown one only what holds for all is said."""
        if version is None:
            return self.since is None and self.until is None
        return (self.since or version) <= version <= (self.until or version)


REFUSED: tuple[RefusedOption, ...] = (
    # "xfs: remove deprecated barrier/nobarrier mount options", 4.19.
    RefusedOption(
        ("xfs",),
        ("barrier", "nobarrier"),
        "xfs refuses it since kernel 4.19; write barrier = true or false instead",
        (4, 19),
    ),
    RefusedOption(("btrfs",), ("barrier=",), "btrfs refuses it; write barrier = true or false instead"),
    RefusedOption(("jfs",), ("barrier", "nobarrier", "barrier="), "jfs has no such option and never flushes"),
    RefusedOption(("ext2",), ("data=",), "ext2 has no journal, and the ext4 driver refuses it"),
    RefusedOption(("ext2", "ext3"), ("delalloc",), "the ext4 driver refuses it for ext2 and ext3"),
    RefusedOption(
        ("reiserfs",),
        ("barrier", "nobarrier", "barrier=0", "barrier=1"),
        "reiserfs refuses it; write barrier = true or false instead",
    ),
    RefusedOption(
        ("nilfs2", "f2fs"), ("barrier=",), "the kernel refuses it; write barrier = true or false instead"
    ),
    # Tried: 6.1 refuses it, 6.12 takes it.
    RefusedOption(
        ("f2fs",),
        ("barrier",),
        "f2fs of this kernel knows nobarrier alone; write barrier = true instead",
        until=(6, 1),
    ),
    RefusedOption(
        ("ntfs3",),
        ("barrier", "nobarrier", "barrier="),
        "ntfs3 has no such option; write barrier = true or false instead",
    ),
    RefusedOption(
        ("ntfs-3g",),
        ("barrier", "nobarrier", "barrier="),
        "ntfs-3g ignores it silently; write barrier = true or false instead",
    ),
    RefusedOption(
        ("ntfs-3g",),
        ("uid=", "gid=", "umask=", "fmask=", "dmask=", "usermapping="),
        "it gives all files one owner or mode, and the server's account must own its directory",
    ),
    RefusedOption(("jfs", "nilfs2", "f2fs", "ntfs3"), ("data=",), "it has no data modes"),
    RefusedOption(("jfs", "nilfs2", "f2fs", "ntfs3"), ("commit=",), "the kernel refuses it"),
    RefusedOption(("reiserfs",), ("discard", "nodiscard"), "reiserfs refuses it: it never discards"),
    RefusedOption(("ntfs3",), ("nodiscard",), "ntfs3 refuses it: it discards only if asked"),
    RefusedOption(_EXT, ("xip",), "the kernel refuses it; execute in place became dax"),
    RefusedOption(_EXT, ("nobh", "bh"), "the kernel ignores it silently"),
)

_BARRIERS = {
    "barrier": True,
    "barrier=1": True,
    "barrier=flush": True,
    "nobarrier": False,
    "barrier=0": False,
    "barrier=none": False,
    "fsync_mode=nobarrier": False,  # f2fs
}


def refused_mount_options(filesystem: FilesystemLevels, version: tuple[int, int] | None) -> Iterator[str]:
    """Why the kernel will not take the asked mount options, as far as that is known without trying."""
    for refused in REFUSED:
        if filesystem.type in refused.types and refused.holds_for(version):
            for word in filesystem.mount_options:
                if any(
                    word.startswith(option) if option.endswith("=") else word == option
                    for option in refused.options
                ):
                    yield f"mount option {word}: {refused.reason}"
    if filesystem.type in ("ext3", "ext4"):
        yield from _ext_journal(filesystem)


def _ext_journal(filesystem: FilesystemLevels) -> Iterator[str]:
    words = filesystem.mount_options
    asked = filesystem.features.text("data")
    by_option = next((word[5:] for word in words if word.startswith("data=")), None)
    if by_option and asked and by_option != asked:
        yield f"data = {asked} and mount option data={by_option} contradict each other"
    if by_option and filesystem.journal == "none":
        yield f"mount option data={by_option}: refused without a journal"
    mode = asked or by_option or "ordered"
    if "journal_async_commit" in words and mode == "ordered":
        yield "mount option journal_async_commit: the kernel refuses it with data = ordered"
    # "ext4: improve handling of conflicting mount options", 2011.
    for word in ("delalloc", "dioread_nolock"):
        if word in words and mode == "journal":
            yield f"mount option {word}: the kernel refuses it with data = journal"


def contradicting_mount_options(filesystem: FilesystemLevels) -> Iterator[str]:
    """Why the asked mount options cannot be in force beside one another and the plan's other keys."""
    words = filesystem.mount_options
    for word in words:
        if filesystem.barrier is not None and _BARRIERS.get(word, filesystem.barrier) != filesystem.barrier:
            yield f"barrier = {str(filesystem.barrier).lower()} and mount option {word} contradict each other"
    if filesystem.type == "btrfs":
        nodatacow = filesystem.features.flag("nodatacow")
        if nodatacow or "nodatacow" in words:
            for word in words:
                if word.startswith("compress") and word.partition("=")[2] not in ("no", "none"):
                    yield f"mount option {word}: compression and nodatacow switch each other off"
        if nodatacow is False and "nodatacow" in words:
            yield "nodatacow = false and mount option nodatacow contradict each other"
    if filesystem.type == "reiserfs":
        asked = filesystem.features.text("data")
        for word in words:
            if asked and word.startswith("data=") and word != f"data={asked}":
                yield f"data = {asked} and mount option {word} contradict each other"
    if len(set(words)) < len(words):
        yield "a mount option is listed twice"


# Keys of Machine.tunables that rules look at; where the fact is missing, no rule applies.
SCHEDULERS_AVAILABLE = "block.schedulers"

XFS_V4 = "kernel.config.XFS_SUPPORT_V4"
XFS_BLOCK_ABOVE_PAGE = (6, 12)
EXT4_BLOCK_ABOVE_PAGE = (6, 19)

# CONFIG_XFS_SUPPORT_V4 is off by default since then; distributions may still set it.
XFS_WITHOUT_V4 = (6, 18)


@dataclass(frozen=True)
class CellContext:
    """What a cell would run on; `machine` None where it is not known.

    `refusals` are answers that trying gave (none, or the reasons), by the levels that were tried;
    they stand in place of what the rules would guess from a kernel's version. `host` is the machine
    that guests share where `machine` is a guest. `kernel_is_known` is False where `machine` would
    have to boot another kernel first: then only the version that the cell asks for is known of it.
    """

    machine: Machine | None
    scratch_device: ScratchDevice
    refusals: Mapping[FilesystemLevels, tuple[str, ...]] = field(default_factory=dict)
    host: Machine | None = None
    kernel_is_known: bool = True

    @property
    def under_kernel(self) -> Machine | None:
        """The machine, where what its kernel has is known."""
        return self.machine if self.kernel_is_known else None

    def kernel(self, cell: Cell) -> tuple[int, int] | None:
        """Major and minor version of the kernel that the cell runs under."""
        known = self.under_kernel
        release = known.kernel_release if known else cell.kernel.release
        found = re.match(r"(\d+)\.(\d+)", release or "")
        return (int(found[1]), int(found[2])) if found else None


Rule = Callable[[Cell, CellContext], Iterator[str]]

# The role `rules` of a workload: of a cell and the levels of a dataset.
DatasetRule = Callable[[Cell, Levels], Iterator[str]]


def reasons(cell: Cell, around: CellContext) -> tuple[Reason, ...]:
    """Every reason why the cell cannot exist; empty where it can."""
    return distinct(
        Reason(code, words)
        for code, rule in _rules(cell.build.engine).items()
        for words in rule(cell, around)
    )


def dataset_reasons(cell: Cell, dataset: Dataset) -> tuple[Reason, ...]:
    """Every reason why the cell cannot have the dataset; empty where it can."""
    return distinct(
        Reason(code, words)
        for code, rule in _dataset_rules(dataset.workload).items()
        for words in rule(cell, dataset.levels)
    )


def kernel_refusals(filesystem: FilesystemLevels, machine: Machine) -> tuple[str, ...]:
    """Why the kernel of a guest refuses these levels, as far as is known without trying."""
    cell = Cell(DeviceLevels(), KernelLevels(), filesystem, BuildLevels(), ClusterLevels())
    return tuple(kernel_takes_it(cell, CellContext(machine, ScratchDevice(), host=machine)))


def traits(cell: Cell, around: CellContext) -> Iterator[str]:  # noqa: ARG001
    """Levels that the type cannot have on any kernel."""
    yield from contradictions(cell.filesystem)


def kernel_takes_it(cell: Cell, around: CellContext) -> Iterator[str]:
    """What this kernel refuses: as trying has shown, else as far as its version tells."""
    tried = around.refusals.get(cell.filesystem)
    if tried is not None:
        yield from tried
        return
    yield from _filesystem_in_kernel(cell, around)
    yield from _block_size(cell, around)
    yield from refused_mount_options(cell.filesystem, around.kernel(cell))


def _filesystem_in_kernel(cell: Cell, around: CellContext) -> Iterator[str]:
    machine, kind = around.under_kernel, cell.filesystem.type
    if machine is None or kind not in TRAITS or set(TRAITS[kind].kernel_types) & set(machine.filesystems):
        return
    names = " or ".join(TRAITS[kind].kernel_types)
    if kind == "zfs" and around.host is not None:
        yield (
            f"zfs's modules are not built for kernel {machine.kernel_release}; "
            f"`bedplate doctor --install --zfs --kernel {machine.kernel_release}` builds them once, in some minutes"
        )
    elif around.host is not None:
        yield (
            f"the guest's kernel {machine.kernel_release} has no {names}, built in or as a module; "
            "name another one with kernel in [machine]"
        )
    else:
        yield (
            f"the running kernel {machine.kernel_release} has no {names}, built in or as a module; "
            'an executor with another kernel is needed: executor = "qemu", or "auto"'
        )


def _block_size(cell: Cell, around: CellContext) -> Iterator[str]:
    filesystem = cell.filesystem
    size = filesystem.block_size_bytes
    known = TRAITS[filesystem.type]
    if size is None or known.block_is_a_cluster or size not in known.block_sizes:
        return
    if filesystem.type == "xfs" and size == 512:
        yield from _xfs_512(cell, around)
    page = around.machine.page_size_bytes if around.machine else 4 * KIB
    if size > page:
        yield from _above_page_size(cell, around, size, page)


def _xfs_512(cell: Cell, around: CellContext) -> Iterator[str]:
    kernel = around.kernel(cell)
    configured = around.under_kernel.tunables.get(XFS_V4) if around.under_kernel else None
    lacks = configured == "n" or (configured is None and kernel is not None and kernel >= XFS_WITHOUT_V4)
    if lacks:
        yield (
            "xfs blocks of 512 B need the old format (V4, without checksums of metadata), "
            "and this kernel is built without it (CONFIG_XFS_SUPPORT_V4)"
        )


def _above_page_size(cell: Cell, around: CellContext, size: int, page_bytes: int) -> Iterator[str]:
    kind = cell.filesystem.type
    since = {"xfs": XFS_BLOCK_ABOVE_PAGE, "ext4": EXT4_BLOCK_ABOVE_PAGE}.get(kind)
    kernel = around.kernel(cell)
    if since is None:
        yield f"{kind} blocks of {size_in_kb(size)} are larger than the page of {size_in_kb(page_bytes)}; no kernel mounts them"
    elif kernel is not None and kernel < since:
        yield (
            f"{kind} blocks of {size_in_kb(size)} are larger than the page of {size_in_kb(page_bytes)}; "
            f"that needs kernel {since[0]}.{since[1]}, this is {kernel[0]}.{kernel[1]}"
        )


def mount_options(cell: Cell, around: CellContext) -> Iterator[str]:
    """Mount options that contradict the plan or its device."""
    filesystem = cell.filesystem
    yield from contradicting_mount_options(filesystem)
    if around.scratch_device.is_image and any(
        word == "discard" or word.startswith("discard=") for word in filesystem.mount_options
    ):
        yield (
            "discard on an image file punches holes into it, and rewriting them is measured instead of the "
            "file system; name a real device to measure discard"
        )


def memory(cell: Cell, around: CellContext) -> Iterator[str]:
    """A memory limit needs a cgroup and more memory than the limit."""
    limit = cell.device.memory_bytes
    if limit is None:
        return
    if around.host is not None:
        # The guest is that small; no cgroup is needed for it.
        if limit >= around.host.memory_bytes:
            yield (
                f"memory = {format_size(limit)} leaves nothing to a machine "
                f"with {format_size(around.host.memory_bytes)}"
            )
        return
    if around.machine is None:
        return
    if around.machine.cgroup_version is None:
        yield f"memory = {format_size(limit)} needs a cgroup that limits memory, and this machine has none"
    elif cell.filesystem.type == "zfs":
        # Tried on 6.12: of 200 MiB written inside, nothing was charged to the group.
        yield (
            f"memory = {format_size(limit)}: a cgroup does not hold zfs's own cache; "
            'executor = "qemu" makes a machine of that size'
        )
    if limit >= around.machine.memory_bytes:
        yield (
            f"memory = {format_size(limit)} cannot be emulated on a machine "
            f"with {format_size(around.machine.memory_bytes)}"
        )


def throttle(cell: Cell, around: CellContext) -> Iterator[str]:
    """A throttle needs a cgroup."""
    if around.machine is None or cell.device.throttle is None:
        return
    if around.machine.cgroup_version is None:
        yield f"throttle {cell.device.throttle.name} needs a cgroup that limits I/O, and this machine has none"
    elif cell.filesystem.type == "zfs" and around.machine.cgroup_version == 2:
        # Tried on 6.12: 88 fsyncs a second under a limit of 5 writes.
        yield (
            f"throttle {cell.device.throttle.name}: zfs writes by kernel threads, "
            "which no cgroup of version 2 holds back"
        )


def scheduler(cell: Cell, around: CellContext) -> Iterator[str]:
    """The kernel must have the scheduler."""
    if around.under_kernel is None or cell.device.scheduler is None:
        return
    available = around.under_kernel.tunables.get(SCHEDULERS_AVAILABLE)
    if (
        available is not None
        and cell.device.scheduler not in available.replace("[", "").replace("]", "").split()
    ):
        yield f"this kernel has no I/O scheduler {cell.device.scheduler}; it has {available}"


# By the code of their reasons.
RULES: Mapping[str, Rule] = {
    "type-never-has-it": traits,
    "kernel-refuses-it": kernel_takes_it,
    "mount-options-contradict": mount_options,
    "memory-limit-impossible": memory,
    "throttle-impossible": throttle,
    "scheduler-missing": scheduler,
}


@cache
def _dataset_rules(workload: str) -> Mapping[str, DatasetRule]:
    found: Mapping[str, DatasetRule] = registry.parts("rules").get(registry.type_today(workload), {})
    return found


@cache
def _rules(engine: str) -> Mapping[str, Rule]:
    """Those of every cell, and those of an engine; a plan may have 20,000 cells."""
    return {**RULES, **registry.engine_parts("rules").get(engine, {})}


# fs/xfs: by copying on write; before, and on ext4, only where the device itself says that it writes so much whole.
_TAKES_UNTORN_WRITES = ("xfs", "ext4")

_XFS_ALONE_SINCE = (6, 16)


def filesystem_refusals(cell: Cell, around: CellContext) -> Iterator[str]:
    """Why the cell's file system takes no untorn write of a page; nothing where none is asked for."""
    filesystem, page_bytes = cell.filesystem, cell.database_block_bytes
    if cell.cluster.untorn_writes != UNTORN_ON or page_bytes is None:
        return
    asked = f"untorn_writes = {UNTORN_ON}"
    if filesystem.type not in _TAKES_UNTORN_WRITES:
        yield f"{asked}: {filesystem.type} takes no untorn write; {' and '.join(_TAKES_UNTORN_WRITES)} can"
    elif (filesystem.block_size_bytes or 0) > page_bytes:
        yield (
            f"{asked}: a page of {format_size(page_bytes)} is less than a block of {format_size(filesystem.block_size_bytes or 0)}, "
            "and no less than a block is written untorn; take smaller blocks or larger pages"
        )
    kernel = around.kernel(cell)
    if filesystem.type == "xfs" and kernel is not None and kernel < _XFS_ALONE_SINCE:
        yield (
            f"{asked}: under kernel {kernel[0]}.{kernel[1]} XFS needs a device that says what it writes whole; "
            f"since {_XFS_ALONE_SINCE[0]}.{_XFS_ALONE_SINCE[1]} it needs none"
        )


LOCAL = "local"
QEMU = "qemu"
SLURM = "slurm"

# A guest's memory where neither a cell nor the plan says how much.
GUEST_MEMORY_BYTES = 2 * GIB


@dataclass(frozen=True)
class Platform:
    """An executor, and the kernels of its guests.

    `guests` are the machines that guests would be, by the kernel that is asked for (None: the
    executor's own); a kernel that was not fetched yet is not among them. `chosen` is the kernel of
    cells whose plan leaves it open, where it is not the executor's own.
    """

    executor: str = LOCAL
    guests: Mapping[str | None, Machine] = field(default_factory=dict)
    chosen: Mapping[FilesystemLevels, str] = field(default_factory=dict)

    @property
    def has_guests(self) -> bool:
        """True where a visit runs in a guest, with a kernel and a memory of its own."""
        return self.executor == QEMU

    def settled(self, cell: Cell) -> Cell:
        """The cell with its kernel, where that was chosen."""
        if cell.kernel.release is not None or cell.filesystem not in self.chosen:
            return cell
        return Cell(
            cell.device,
            KernelLevels(self.chosen[cell.filesystem]),
            cell.filesystem,
            cell.build,
            cell.cluster,
        )

    def surroundings(
        self,
        kernel_levels: KernelLevels,
        machine: Machine | None,
        scratch_device: ScratchDevice,
        refusals: Mapping[FilesystemLevels, tuple[str, ...]],
    ) -> CellContext:
        """What cells of one kernel would run on; trying speaks of the running kernel alone."""
        if self.has_guests:
            return CellContext(self.guests.get(kernel_levels.release), scratch_device, host=machine)
        if kernel_levels.release is None or machine is None:
            return CellContext(machine, scratch_device, refusals)
        runs = kernel_levels.takes(machine.kernel_release)
        return CellContext(machine, scratch_device, refusals if runs else {}, kernel_is_known=runs)


def latency_reasons(cell: Cell, load: Load, *, executor: str) -> Iterator[Reason]:
    """Why a cell cannot have its latency with this dataset; nothing where it asks for none."""
    latency = cell.device.latency
    if latency is None:
        return
    if executor != LOCAL:
        yield Reason(
            "latency-impossible",
            f"latency {latency.name}: what the way to the device takes is measured on the machine itself, which guests and nodes "
            'are not; use executor = "local"',
        )
    if model_of(load.dataset.workload).has_own_disk:
        yield Reason(
            "latency-impossible",
            f"latency {latency.name}: {load.dataset.workload} has a disk of its own in memory, which the latency of the scratch device "
            "does not reach; give it a plan of its own without latency",
        )
