"""`type = "acks"` in a plan: runs of an own engine's writer."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from bedplate.model.cell import Cell, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import Load, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.estimate import WorkloadEstimate
from bedplate.plan.fields import Count, Duration, Factor, within
from bedplate.plan.table import WorkloadTable
from bedplate.units import MIB
from bedplate.workloads.acks.model import ENGINE

WarmUp: TypeAlias = Annotated[float, within(values.duration, 0)]


class AcksTable(WorkloadTable):
    """`[[workload]]` of type acks: one run for each number of clients."""

    type: Literal["acks"] = Field(description="acks")
    clients: Factor[Count] = (2,)
    """measure | clients of the writer, its `--clients` | `2` | `{ vary = [1, 8] }`"""
    warmup: WarmUp = 10.0
    """measure | a time from 0, after the writer's `begin`; recorded, and left out of every figure | `"10 s"` | `"1 min"`"""
    duration: Duration = 60.0
    """measure | the time that is measured, 1 s or more | `"60 s"` | `"10 min"`"""

    runs_on: ClassVar[tuple[str, ...]] = (ENGINE,)

    def run_count(self) -> int:
        """One for each number of clients."""
        return len(self.clients)

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- the writer draws by the visit's seed
        """Where the clients vary, their number is part of a run's name."""
        runs = tuple(
            RunSpec(
                "acks" if len(self.clients) == 1 else f"acks-clients-{clients}",
                self.type,
                Levels(clients=clients, warmup_s=self.warmup, duration_s=self.duration),
            )
            for clients in self.clients
        )
        # One dataset: each run's writer makes its own data.
        return PlannedWorkload(self.type, (), runs, self.datasets())


PLAN = AcksTable

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
