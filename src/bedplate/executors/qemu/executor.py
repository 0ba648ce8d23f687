"""The QEMU executor: visits run in guests with kernels of their own. Needs no root."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, VerifyFailed
from bedplate.executors.local import filesystem_needs, other_hardware, workload_needs
from bedplate.executors.protocol import Executor, Listener, Start, StartOutcome
from bedplate.executors.qemu.guest import NEEDS
from bedplate.executors.qemu.kernels import GuestKernel, ensure_kernel, find_kernel
from bedplate.executors.qemu.zfs import ensure_zfs, find_zfs
from bedplate.host.apt import PackageTree, ensure_package_tree
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.native_driver import BuildProgress
from bedplate.host.requirement import Need, look
from bedplate.model.cell import Cell, KernelSource, is_commit_level
from bedplate.model.machine import Machine
from bedplate.model.plan import Plan
from bedplate.model.visit import ScratchDevice
from bedplate.plan.rules import GUEST_MEMORY_BYTES, QEMU

if TYPE_CHECKING:
    from bedplate.study.records import StudyFacts

# The guest sees the host's programs.
_ALWAYS = (
    Need("mount", "mount", "mounts the file systems"),
    Need("blkid", "util-linux", "recognises what is on a scratch device"),
)


class QemuExecutor(Executor):
    """Guests of this machine, one at a time."""

    name = QEMU
    runs_here = False
    estimate_words = " (reckoned for emulated processors; with KVM less)"

    def needs(self, filesystems: Iterable[str], workloads: Iterable[str]) -> tuple[Need, ...]:  # noqa: ARG002
        """QEMU itself, and what workloads need; tools of file systems come into the cache where they lack."""
        return (*NEEDS, *_ALWAYS, *workload_needs(workloads))

    def kernels(self, plan: Plan) -> tuple[str | None, ...]:
        """Those of the whole plan: a cell with ZFS is pruned until its modules are there."""
        return tuple(dict.fromkeys(levels.release for levels in plan.kernels))

    def kernels_to_build(self, plan: Plan) -> Mapping[str, float]:
        """As former builds took, or as the first one does."""
        from bedplate.executors.qemu.kernels import build_seconds  # noqa: PLC0415

        asked = self.kernels(plan)
        sources = {level: each for level, each in plan.sources.kernels.items() if level in asked}
        return build_seconds(sources, cache_directory=cache_directory(), commands=Commands())

    def prepare(self, plan: Plan, listener: Listener) -> None:
        """The kernels that the plan asks for: what they lack decides which cells can run."""
        from bedplate.executors.qemu.executor import prepare_kernels  # noqa: PLC0415

        prepare_kernels(self.kernels(plan), listener, plan.sources.kernels)

    def prepare_cells(self, cells: Iterable[Cell], listener: Listener) -> None:
        """Kernels, and tools of file systems that the machine lacks."""
        from bedplate.executors.qemu.executor import prepare_guests  # noqa: PLC0415

        prepare_guests(cells, listener)

    def device_reasons(self, devices: Iterable[str]) -> tuple[str, ...]:
        """A guest opens a device with the rights of this user."""
        return tuple(
            f"{device} cannot be read and written by this user; a guest needs that: start with sudo, or let "
            f"the user into the group that owns it (ls -l {device})"
            for device in devices
            if Path(device).exists() and not os.access(device, os.R_OK | os.W_OK)
        )

    def another_machine(self, plan: Plan, facts: StudyFacts, machine: Machine) -> str | None:  # noqa: ARG002
        """Another kernel of the host is one more machine."""
        other = other_hardware(facts, machine)
        if other is not None or facts.kernel_release == machine.kernel_release:
            return other
        return (
            f"was begun under kernel {facts.kernel_release} of this machine, this is {machine.kernel_release}, and "
            "guests are only as fast as what runs them; boot the former, or name another --study"
        )

    def run(self, start: Start) -> StartOutcome:
        """One visit after the other; those of one boot share a guest."""
        from bedplate.executors.qemu.executor import prepare_guests  # noqa: PLC0415
        from bedplate.executors.qemu.runner import GuestRunner  # noqa: PLC0415
        from bedplate.executors.qemu.slot import GuestSlot  # noqa: PLC0415

        cells = tuple(planned.cell for planned in start.expansion.planned)
        prepared = prepare_guests(cells, start.listener)
        for level, reasons in prepared.failed.items():
            of_it = {cell.id for cell in cells if cell.kernel.release == level}
            start = start.without(of_it, f"kernel {level}", reasons)
        return start.one_by_one(
            GuestRunner(
                GuestSlot(start.store.scratch_directory),
                memory_bytes=guest_memory_bytes(start.plan),
                trees=prepared.trees,
                journal=_journal_of_all(start, cells),
            )
        )


def guest_memory_bytes(plan: Plan) -> int:
    """The memory of a guest whose cell asks for none."""
    return plan.guest.memory_bytes or GUEST_MEMORY_BYTES


def _journal_of_all(start: Start, cells: tuple[Cell, ...]) -> ScratchDevice | None:
    """The device of the plan's external journals; None without any, or if there are two kinds of them."""
    journals = {start.plan.journal_device_for(cell.filesystem) for cell in cells} - {None}
    if len(journals) != 1:
        return None
    journal = journals.pop()
    return None if journal is None else start.allow_erasing(journal)


ZFS = "zfs"

_NO_TREE = "it is not in the cache, and the plan does not name its tree"

# By the level of a commit.
_FAILED: dict[str, tuple[str, ...]] = {}


def kernels_of(cells: Iterable[Cell]) -> tuple[str | None, ...]:
    """The kernels that these cells ask for, each once; None is the executor's own."""
    return tuple(dict.fromkeys(cell.kernel.release for cell in cells))


@dataclass(frozen=True)
class PreparedKernels:
    """What there is now; `failed` are the reasons of builds that failed, by the level of their commits."""

    kernels: tuple[GuestKernel, ...]
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def prepare_kernels(
    kernel_names: Iterable[str | None], listener: Listener, sources: Mapping[str, KernelSource] | None = None
) -> PreparedKernels:
    """Every kernel that is asked for, fetched now where the cache lacks it; a commit of `sources` is built.

    A build that fails is said, and the next kernel is its own matter; it is not tried again by this process. RequirementMissing where something can be had from nowhere: a
    kernel of the distribution, a tool of the build.
    """
    kernels: list[GuestKernel] = []
    failed: dict[str, tuple[str, ...]] = {}
    for name in kernel_names:
        source = None if name is None else (sources or {}).get(name)
        what = f"kernel {name or 'for guests'}"
        missing = find_kernel(name, cache_directory=cache_directory()) is None
        if missing and name is not None and is_commit_level(name) and (source is None or name in _FAILED):
            failed[name] = _FAILED.get(name, (_NO_TREE,))
            continue

        def tell(step: str, item: str = what) -> None:
            listener.preparing(f"{item}: {step}", 0, 0)

        try:
            kernel = ensure_kernel(
                name,
                cache_directory=cache_directory(),
                commands=Commands(),
                progress=tell,
                kernel_source=source,
            )
        except (CommandFailed, VerifyFailed) as error:
            if source is None:
                raise
            failed[source.level] = _FAILED[source.level] = error.reasons
            listener.note("\n".join(error.reasons))
            continue
        if missing:
            how = "is in the cache now" if source is None else "was built"
            listener.note(f"kernel {kernel.release} {how} ({kernel.origin})")
        kernels.append(kernel)
    return PreparedKernels(tuple(kernels), failed)


def prepare_zfs(kernels: Iterable[GuestKernel], listener: Listener) -> None:
    """ZFS's modules for every kernel, built now where the cache lacks them: minutes each."""
    for kernel in kernels:
        what = f"ZFS for kernel {kernel.release}"

        def tell(progress: BuildProgress, item: str = what) -> None:
            listener.preparing(f"{item}: {progress.step}", progress.done or 0, progress.total or 0)

        made_now = find_zfs(kernel, cache_directory()) is None
        tree = ensure_zfs(kernel, cache_directory=cache_directory(), commands=Commands(), progress=tell)
        if made_now:
            listener.note(f"built {what}: {tree.version}, {tree.build_seconds:.0f} s")


@dataclass(frozen=True)
class PreparedGuests:
    """Private trees of the tools that the machine lacks; and builds of kernels that failed, as in `PreparedKernels`."""

    trees: tuple[PackageTree, ...]
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def prepare_guests(cells: Iterable[Cell], listener: Listener) -> PreparedGuests:
    """The kernels of these cells, and the tools of their file systems. Commits were built before (`prepare_kernels`).

    RequirementMissing where something can be had from nowhere.
    """
    cells = tuple(cells)
    failed = prepare_kernels(kernels_of(cells), listener).failed
    kinds = dict.fromkeys(cell.filesystem.type for cell in cells if cell.filesystem.type != ZFS)
    needs = dict.fromkeys(filesystem_needs(kinds))
    packages = sorted({item.package for item in look(needs) if not item.found})
    trees: list[PackageTree] = []
    if packages:

        def tell(step: str) -> None:
            listener.preparing(f"tools of the file systems: {step}", 0, 0)

        trees.append(
            ensure_package_tree(
                packages, cache_directory=cache_directory(), commands=Commands(), progress=tell
            )
        )
    return PreparedGuests(tuple(trees), failed)
