"""Time and room of the visits of the microbenchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engine import engine_model
from bedplate.plan.workload_estimate import WorkloadEstimate
from bedplate.units import MIB
from bedplate.workloads.microbenchmark.model import MODEL
from bedplate.workloads.microbenchmark.tests import TPCB, is_synchronous, tests_of

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.plan import Load

# What a local NVMe disk does through a file system, and one fsync on it.
_BYTES_PER_S = 400e6
_FSYNC_S = 0.002
_OPERATIONS_PER_S = 300_000.0

_KEY_BYTES = 16
_LARGE_VALUE_BYTES = 100_000
# The driver's map: 3.2 times the keys and values of its largest test, and 16 MiB.
_MAP_SHARE = 3.2
_MAP_BYTES = 16 * MIB


class MicrobenchmarkEstimate(WorkloadEstimate):
    """By the flushes of commits that wait for them, and by what is moved."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- the disk's
        """All tests of a run."""
        entries = load.dataset.levels.integer("entries") or 0
        names = tests_of(run)
        # What has a time of its own takes that long, beside filling its tables.
        asked_s = run.levels.number("duration_s") or 0.0
        moved = _map_bytes(load, run) / _MAP_SHARE * len(names)
        return (
            asked_s
            + sum(_flushes(cell, load, run, name) for name in names) * _FSYNC_S
            + len(names) * entries / _OPERATIONS_PER_S
            + moved / _BYTES_PER_S
        )

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- of others' role
        """The map of LMDB, as it is asked for or as the driver makes it; with a copy beside it, as room for any other engine."""
        asked = load.dataset.levels.integer("map_bytes")
        return asked or max((_map_bytes(load, run) for run in load.runs), default=0)


def _flushes(cell: Cell, load: Load, run: RunSpec, test: str) -> float:
    """How many of a test's commits wait for the device: of every fill and overwrite, where the engine's settings say so."""
    entries = load.dataset.levels.integer("entries") or 0
    model, settings = engine_model(cell.build.engine), cell.cluster.settings
    # The writer of readwhilewriting writes no longer than its readers read.
    if (
        not MODEL.fills(run)
        or test == TPCB
        or not model.waits_in_test(settings, synchronous=is_synchronous(test))
    ):
        return 0.0
    if test.endswith("batch"):
        return entries / (run.levels.integer("batch") or 1)
    return entries / 1000 if is_synchronous(test) or test.endswith("100K") else float(entries)


def _map_bytes(load: Load, run: RunSpec) -> int:
    entries = load.dataset.levels.integer("entries") or 0
    value_bytes = load.dataset.levels.integer("value_bytes") or 0
    if "100K" in str(run.levels.get("tests", "")):
        entries, value_bytes = entries // 1000, _LARGE_VALUE_BYTES
    return int(_MAP_SHARE * entries * (_KEY_BYTES + value_bytes)) + _MAP_BYTES


ESTIMATE = MicrobenchmarkEstimate()
