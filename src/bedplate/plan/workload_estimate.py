"""Time and room of a workload's visits before anything has been measured: the role `estimate` of its folder.

Rough on purpose: the asked durations are exact, the constants are what two idle cores and a local NVMe disk take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bedplate import registry
from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.plan import DatasetScale, Load
from bedplate.units import MIB

FILESYSTEM_OVERHEAD_BYTES = 160 * MIB  # journal, tables of inodes, template databases
GROWTH = 1.15  # dead rows, copy on write


class EngineEstimate(Protocol):
    """The role `estimate` of an engine; one that keeps nothing beside its data has no such file."""

    def log_bytes(self, cell: Cell) -> int:
        """How large its log becomes."""
        ...


class WorkloadEstimate:
    """Where the engine keeps a log the device holds it up to its limit, else files alone."""

    def scale_units(self, scale: DatasetScale, memory_bytes: int) -> int:
        """How many units are loaded; `memory_bytes` 0 is not known. Of workloads whose datasets have a scale."""
        raise NotImplementedError

    def load_seconds(self, cell: Cell, dataset: Dataset, *, emulated: bool) -> float:  # noqa: ARG002 -- of others' role
        """What it takes to load the dataset before the runs."""
        return 0.0

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- of those that end by themselves
        """Warm-up and measurement of a run, as they are asked for."""
        return sum(run.levels.number(name) or 0.0 for name in ("warmup_s", "duration_s"))

    def dataset_bytes(self, cell: Cell, load: Load) -> float:
        """What the dataset and the runs' files take at the most, right after they were made."""
        raise NotImplementedError

    def device_bytes(self, cell: Cell, load: Load) -> int:
        """What a visit needs on the scratch device, the file system itself included."""
        engine: EngineEstimate | None = registry.engine_part_or_none(cell.build.engine, "estimate")
        if engine is None:
            return int(int(self.dataset_bytes(cell, load)) * GROWTH) + FILESYSTEM_OVERHEAD_BYTES
        return int(self.dataset_bytes(cell, load)) + engine.log_bytes(cell) + FILESYSTEM_OVERHEAD_BYTES

    def prepared_bytes(self, dataset: Dataset, cells: Sequence[Cell]) -> int:  # noqa: ARG002 -- of others' role
        """What is made beforehand for a dataset of these cells and kept in the cache."""
        return 0

    def prepared_seconds(self, dataset: Dataset, cells: Sequence[Cell]) -> float:  # noqa: ARG002 -- of others' role
        """What making it takes, on this machine itself; 0 where it is not reckoned."""
        return 0.0


def estimate_of(workload: str) -> WorkloadEstimate:
    """That of a type; PlanError lists the known ones."""
    estimate: WorkloadEstimate = registry.part(workload, "estimate")
    return estimate
