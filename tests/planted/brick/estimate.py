from __future__ import annotations

from bedplate.model.cell import Cell, RunSpec
from bedplate.model.plan import Load
from bedplate.plan.estimate import WorkloadEstimate


class BrickEstimate(WorkloadEstimate):
    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:
        return 1.0

    def dataset_bytes(self, cell: Cell, load: Load) -> float:
        return 4096.0 * (load.dataset.levels.integer("bricks") or 0)


ESTIMATE = BrickEstimate()
