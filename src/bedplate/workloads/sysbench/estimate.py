"""Time and room of sysbench's visits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.plan.workload_estimate import WorkloadEstimate

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, Dataset
    from bedplate.model.plan import Load

_LOAD_S_PER_ROW = 3e-5
_EMULATED = 20.0
# 188 bytes of columns and two indexes; then what updates split and leave.
_BYTES_PER_ROW = 300
_GROWTH = 1.5


class SysbenchEstimate(WorkloadEstimate):
    """Its runs take what they were asked to."""

    def load_seconds(self, cell: Cell, dataset: Dataset, *, emulated: bool) -> float:  # noqa: ARG002 -- rough
        """By the rows."""
        return _rows(dataset) * _LOAD_S_PER_ROW * (_EMULATED if emulated else 1.0)

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- rough
        """Tables and indexes, after the runs."""
        return _rows(load.dataset) * _BYTES_PER_ROW * _GROWTH


def _rows(dataset: Dataset) -> int:
    return (dataset.levels.integer("tables") or 0) * (dataset.levels.integer("table_size") or 0)


ESTIMATE = SysbenchEstimate()
