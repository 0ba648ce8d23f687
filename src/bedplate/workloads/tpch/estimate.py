"""Time and room of TPC-H's visits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.plan.workload_estimate import WorkloadEstimate
from bedplate.workloads.tpch.model import LOAD
from bedplate.workloads.tpch.size import database_bytes, temporary_bytes, tpch_data_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.cell import Cell, Dataset, RunSpec
    from bedplate.model.plan import Load

# At 8 kB on two idle cores (18.6, scale factor 1): load 36 s, keys and indexes 23, ANALYZE 15, then
# 93 s for the queries; with less memory than data a disk decides instead, and it takes longer.
_LOAD_S_PER_SCALE_FACTOR = 80.0
_QUERIES_S_PER_SCALE_FACTOR = 95.0
# Generic code runs some twenty times slower on an emulated processor.
_EMULATION = 20.0
_QUERIES = 22


class TpchEstimate(WorkloadEstimate):
    """Its load is a run; streams run at once and share the machine."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- any block
        """By the scale factor, and no longer than the limit of the queries."""
        scale_factor = load.dataset.levels.number("scale_factor") or 0.0
        slower = _EMULATION if emulated else 1.0
        if run.levels.text("kind") == LOAD:
            return _LOAD_S_PER_SCALE_FACTOR * scale_factor * slower
        queries = _QUERIES_S_PER_SCALE_FACTOR * scale_factor * slower
        longest = _QUERIES * (run.levels.number("query_timeout_s") or float("inf"))
        return min(queries, longest) * (run.levels.integer("streams") or 1)

    def dataset_bytes(self, cell: Cell, load: Load) -> float:
        """The loaded database, and what sorts and joins spill."""
        scale_factor = load.dataset.levels.number("scale_factor")
        if scale_factor is None:
            return 0.0
        return database_bytes(scale_factor, cell.build.block_size_bytes) + temporary_bytes(scale_factor)

    def prepared_bytes(self, dataset: Dataset, cells: Sequence[Cell]) -> int:  # noqa: ARG002 -- one for all cells
        """Its CSV files."""
        scale_factor = dataset.levels.number("scale_factor")
        return 0 if scale_factor is None else tpch_data_bytes(scale_factor)


ESTIMATE = TpchEstimate()
