"""Time and room of a workload's visits before anything has been measured: the role `estimate` of its folder.

Rough on purpose: the asked durations are exact, the constants are what two idle cores and a local NVMe disk take.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bedplate import registry
from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.plan import Load
from bedplate.plan.settings import in_force
from bedplate.units import GIB, MIB, parse_size

_MAX_WAL_SIZE_BYTES = GIB
FILESYSTEM_OVERHEAD_BYTES = 160 * MIB  # journal, tables of inodes, template databases
GROWTH = 1.15  # dead rows, copy on write


class WorkloadEstimate:
    """Where the engine is PostgreSQL the device holds its WAL up to its limit, else files alone."""

    def load_seconds(self, cell: Cell, dataset: Dataset, *, emulated: bool) -> float:  # noqa: ARG002 -- of others' role
        """What it takes to load the dataset before the runs."""
        return 0.0

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:
        """Warm-up and measurement of a run."""
        raise NotImplementedError

    def dataset_bytes(self, cell: Cell, load: Load) -> float:
        """What the dataset and the runs' files take at the most, right after they were made."""
        raise NotImplementedError

    def device_bytes(self, cell: Cell, load: Load) -> int:
        """What a visit needs on the scratch device, the file system itself included."""
        if not cell.build.has_postgresql:
            return int(int(self.dataset_bytes(cell, load)) * GROWTH) + FILESYSTEM_OVERHEAD_BYTES
        wal = _max_wal_bytes(in_force(cell.cluster, "max_wal_size"))
        return int(self.dataset_bytes(cell, load)) + wal + FILESYSTEM_OVERHEAD_BYTES

    def prepared_bytes(self, dataset: Dataset) -> int:  # noqa: ARG002 -- of others' role
        """What is made beforehand for a dataset and kept in the cache."""
        return 0


def estimate_of(workload: str) -> WorkloadEstimate:
    """That of a type; PlanError lists the known ones."""
    estimate: WorkloadEstimate = registry.part(workload, "estimate")
    return estimate


@lru_cache(maxsize=1024)
def _max_wal_bytes(text: str | None) -> int:
    if text is None:
        return _MAX_WAL_SIZE_BYTES
    if re.fullmatch(r"\d{1,12}", text):
        return int(text) * MIB  # the server's own unit of max_wal_size
    try:
        return parse_size(text)
    except (ValueError, OverflowError):
        return _MAX_WAL_SIZE_BYTES
