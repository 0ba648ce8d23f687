"""Time and room of visits that are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import LMDB
from bedplate.model.power_cut import ENGINE
from bedplate.plan.workload_estimate import FILESYSTEM_OVERHEAD_BYTES, WorkloadEstimate

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.plan import Load

# Two cores; and what it takes to make the file systems and the engine's data, and to go through the controls.
_POSTGRESQL_POINTS_PER_S = 100 / 60
_LMDB_POINTS_PER_S = 400 / 60
_RECORDING_OVERHEAD_S = 12.0


class PowerCutEstimate(WorkloadEstimate):
    """The recorded disk stands in memory; on the device is no more than the new cluster that tells the settings."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- any cell
        """The recording, and each point of it."""
        levels = load.dataset.levels
        points_per_s = _LMDB_POINTS_PER_S if levels.get(ENGINE) == LMDB else _POSTGRESQL_POINTS_PER_S
        points = run.levels.integer("points") or 0
        return (levels.number("duration_s") or 0.0) + _RECORDING_OVERHEAD_S + points / points_per_s

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- in memory
        """Nothing."""
        return 0.0

    def device_bytes(self, cell: Cell, load: Load) -> int:  # noqa: ARG002 -- in memory
        """Without a server nothing but the file system."""
        return (2 if cell.build.has_postgresql else 1) * FILESYSTEM_OVERHEAD_BYTES


ESTIMATE = PowerCutEstimate()
