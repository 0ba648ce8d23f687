"""Time and room of visits that are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.model.engine import engine_model
from bedplate.model.filesystem import TRAITS
from bedplate.model.power_cut import CONTROLS, RECUT, RECUTS_EACH, SOUGHT_POINTS, STATES, WORKLOAD
from bedplate.model.workload import model_of
from bedplate.plan.workload_estimate import FILESYSTEM_OVERHEAD_BYTES, WorkloadEstimate

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.plan import Load

# What it takes to make the file system and the engine's data, and to read the log: 2 to 3 s on idle cores.
_RECORDING_OVERHEAD_S = 3.0
# On an emulated processor: 38 visits of LMDB with 106 cuts each took 86 min (docs/durability/journals.md).
_EMULATED_TIMES = 5.0


class PowerCutEstimate(WorkloadEstimate):
    """The recorded disk stands in memory; on the device is no more than the new cluster that tells the settings."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:
        """The recording, and each of its cuts: those that are drawn, sought or enumerated, the controls, and those in recovery."""
        levels = load.dataset.levels
        points_per_s = engine_model(model_of(WORKLOAD).engine_of(levels)).cuts_per_s
        sought = run.levels.integer("sought")
        points = (
            (run.levels.integer("points") or 0)
            + (SOUGHT_POINTS if sought is None else sought)
            + (run.levels.integer(STATES) or 0)
            + CONTROLS
        )
        again = run.levels.integer(RECUT) or 0
        # Of each recovery two more are asked about: the one that is recorded, and the whole of it.
        points += again + 2 * -(-again // RECUTS_EACH)
        cut_s = 1 / points_per_s + TRAITS[cell.filesystem.type].recovery_s
        worked_s = _RECORDING_OVERHEAD_S + points * cut_s
        return (levels.number("duration_s") or 0.0) + worked_s * (_EMULATED_TIMES if emulated else 1.0)

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- in memory
        """Nothing."""
        return 0.0

    def device_bytes(self, cell: Cell, load: Load) -> int:  # noqa: ARG002 -- in memory
        """Without a server nothing but the file system."""
        return (2 if cell.build.engine in registry.engines_with("server") else 1) * FILESYSTEM_OVERHEAD_BYTES


ESTIMATE = PowerCutEstimate()
