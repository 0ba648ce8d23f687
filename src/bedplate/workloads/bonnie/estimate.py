"""Time and room of bonnie++'s visits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.plan.workload_estimate import WorkloadEstimate

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.plan import Load

# What a local NVMe disk does through a file system.
_BYTES_PER_S = 400e6
_SEEKS_S = 20.0
_FILES_PER_S = 30_000.0


class BonnieEstimate(WorkloadEstimate):
    """One file, then many small ones."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- the disk's
        """Written, rewritten (read and written) and read."""
        file_s = 4 * self.dataset_bytes(cell, load) / _BYTES_PER_S
        return file_s + _SEEKS_S + 6 * (run.levels.integer("files") or 0) / _FILES_PER_S

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- of others' role
        """The file."""
        return load.dataset.levels.integer("file_bytes") or 0


ESTIMATE = BonnieEstimate()
