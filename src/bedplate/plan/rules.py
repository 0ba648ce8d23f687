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
from bedplate.model.reason import Reason, distinct
from bedplate.model.visit import ScratchDevice
from bedplate.plan.mount_rules import contradicting_mount_options, refused_mount_options
from bedplate.units import KIB, format_size, size_in_kb

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


def kernel_refusals(filesystem: FilesystemLevels, guest: Machine) -> tuple[str, ...]:
    """Why the kernel of a guest refuses these levels, as far as is known without trying."""
    cell = Cell(DeviceLevels(), KernelLevels(), filesystem, BuildLevels(), ClusterLevels())
    return tuple(kernel_takes_it(cell, CellContext(guest, ScratchDevice(), host=guest)))


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
            f"`bedplate setup --zfs --kernel {machine.kernel_release}` builds them once, in some minutes"
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


def _above_page_size(cell: Cell, around: CellContext, size: int, page: int) -> Iterator[str]:
    kind = cell.filesystem.type
    since = {"xfs": XFS_BLOCK_ABOVE_PAGE, "ext4": EXT4_BLOCK_ABOVE_PAGE}.get(kind)
    kernel = around.kernel(cell)
    if since is None:
        yield f"{kind} blocks of {size_in_kb(size)} are larger than the page of {size_in_kb(page)}; no kernel mounts them"
    elif kernel is not None and kernel < since:
        yield (
            f"{kind} blocks of {size_in_kb(size)} are larger than the page of {size_in_kb(page)}; "
            f"that needs kernel {since[0]}.{since[1]}, this is {kernel[0]}.{kernel[1]}"
        )


def mount_options(cell: Cell, around: CellContext) -> Iterator[str]:
    """Mount options that contradict the plan or its device."""
    filesystem = cell.filesystem
    yield from contradicting_mount_options(filesystem)
    if around.scratch_device.is_image and _discards(filesystem):
        yield (
            "discard on an image file punches holes into it, and rewriting them is measured instead of the "
            "file system; name a real device to measure discard"
        )


def _discards(filesystem: FilesystemLevels) -> bool:
    return any(word == "discard" or word.startswith("discard=") for word in filesystem.mount_options)


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
