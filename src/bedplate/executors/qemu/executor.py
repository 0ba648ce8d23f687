"""The QEMU executor: visits run in guests with kernels of their own. Needs no root."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.executors.needs import workload_needs
from bedplate.executors.other_machine import other_hardware
from bedplate.executors.protocol import Executor
from bedplate.executors.qemu.command_line import NEEDS
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.requirement import Need
from bedplate.plan.platforms import GUEST_MEMORY_BYTES, QEMU

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.executors.protocol import Listener, Start, StartOutcome
    from bedplate.model.cell import Cell
    from bedplate.model.machine import Machine
    from bedplate.model.plan import Plan
    from bedplate.model.visit import ScratchDevice
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
        from bedplate.executors.qemu.own_kernel.build import build_seconds  # noqa: PLC0415

        asked = self.kernels(plan)
        sources = {level: each for level, each in plan.sources.kernels.items() if level in asked}
        return build_seconds(sources, cache_directory=cache_directory(), commands=Commands())

    def prepare(self, plan: Plan, listener: Listener) -> None:
        """The kernels that the plan asks for: what they lack decides which cells can run."""
        from bedplate.executors.qemu.preparation import prepare_kernels  # noqa: PLC0415

        prepare_kernels(self.kernels(plan), listener, plan.sources.kernels)

    def prepare_cells(self, cells: Iterable[Cell], listener: Listener) -> None:
        """Kernels, and tools of file systems that the machine lacks."""
        from bedplate.executors.qemu.preparation import prepare_guests  # noqa: PLC0415

        prepare_guests(cells, listener)

    def device_reasons(self, devices: Iterable[str]) -> tuple[str, ...]:
        """A guest opens a device with the rights of this user."""
        return tuple(
            f"{device} cannot be read and written by this user; a guest needs that: start with sudo, or let "
            f"the user into the group that owns it (ls -l {device})"
            for device in devices
            if Path(device).exists() and not os.access(device, os.R_OK | os.W_OK)
        )

    def another_machine(self, plan: Plan, begun: StudyFacts, machine: Machine) -> str | None:  # noqa: ARG002
        """Another kernel of the host is one more machine."""
        other = other_hardware(begun, machine)
        if other is not None or begun.kernel_release == machine.kernel_release:
            return other
        return (
            f"was begun under kernel {begun.kernel_release} of this machine, this is {machine.kernel_release}, and "
            "guests are only as fast as what runs them; boot the former, or name another --study"
        )

    def run(self, start: Start) -> StartOutcome:
        """One visit after the other; those of one boot share a guest."""
        from bedplate.executors.qemu.guest_slot import GuestSlot  # noqa: PLC0415
        from bedplate.executors.qemu.preparation import prepare_guests  # noqa: PLC0415
        from bedplate.executors.qemu.runner import GuestRunner  # noqa: PLC0415

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
    return None if journal is None else start.allowed(journal)
