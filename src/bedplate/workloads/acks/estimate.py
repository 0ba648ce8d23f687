"""Time and room of runs of an own engine's writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.plan.workload_estimate import WorkloadEstimate
from bedplate.units import MIB

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.plan import Load

# Nobody knows beforehand what an engine writes: that of a thousand commits a second of two pages each.
_BYTES_PER_S = 8 * MIB
_PREPARATION_S = 2.0


class AcksEstimate(WorkloadEstimate):
    """A run takes what was asked for, and its files are gone before the next begins."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- asked for
        """Warm-up and measurement."""
        return _PREPARATION_S + _seconds(run)

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- of any cell
        """What the longest run writes."""
        return max(map(_seconds, load.runs), default=0.0) * _BYTES_PER_S


def _seconds(run: RunSpec) -> float:
    return sum(run.levels.number(name) or 0.0 for name in ("warmup_s", "duration_s"))


ESTIMATE = AcksEstimate()
