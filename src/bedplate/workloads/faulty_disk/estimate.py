"""Time and room of visits whose disk fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.model.filesystem import TRAITS
from bedplate.plan.workload_estimate import FILESYSTEM_OVERHEAD_BYTES, WorkloadEstimate
from bedplate.workloads.faulty_disk.faults import CONTROLS
from bedplate.workloads.faulty_disk.model import FAULTS_LEVEL, TRIES

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.plan import Load

# Beside the clients' time: mkfs, the engine made anew, its end, and the oracle.
_SERVER_OVERHEAD_S, _LIBRARY_OVERHEAD_S = 8.0, 4.0
_EMULATED_TIMES = 5.0


class FaultyDiskEstimate(WorkloadEstimate):
    """The disk that fails is in memory; on the device is no more than the new cluster that shows the settings."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:
        """Each fault as often as it is tried, and the controls."""
        names = (run.levels.text(FAULTS_LEVEL) or "").split(",")
        tries = len(names) * (run.levels.integer(TRIES) or 1) + len(CONTROLS)
        overhead_s = _SERVER_OVERHEAD_S if _has_server(cell) else _LIBRARY_OVERHEAD_S
        overhead_s += TRAITS[cell.filesystem.type].recovery_s
        duration_s = load.dataset.levels.number("duration_s") or 0.0
        return tries * (duration_s + overhead_s * (_EMULATED_TIMES if emulated else 1.0))

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- in memory
        """Nothing."""
        return 0.0

    def device_bytes(self, cell: Cell, load: Load) -> int:  # noqa: ARG002 -- in memory
        """Without a server nothing but the file system."""
        return (2 if _has_server(cell) else 1) * FILESYSTEM_OVERHEAD_BYTES


def _has_server(cell: Cell) -> bool:
    return cell.build.engine in registry.engines_with("server")


ESTIMATE = FaultyDiskEstimate()
