"""Where the cells of a plan would run: under which executor, and what is known of each kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedplate.model.cell import Cell, FilesystemLevels, KernelLevels
from bedplate.model.machine import Machine
from bedplate.model.visit import ScratchDevice
from bedplate.plan.rules import CellContext
from bedplate.units import GIB

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
        kernel: KernelLevels,
        machine: Machine | None,
        scratch_device: ScratchDevice,
        refusals: Mapping[FilesystemLevels, tuple[str, ...]],
    ) -> CellContext:
        """What cells of one kernel would run on; trying speaks of the running kernel alone."""
        if self.has_guests:
            return CellContext(self.guests.get(kernel.release), scratch_device, host=machine)
        if kernel.release is None or machine is None:
            return CellContext(machine, scratch_device, refusals)
        runs = kernel.takes(machine.kernel_release)
        return CellContext(machine, scratch_device, refusals if runs else {}, kernel_is_known=runs)
