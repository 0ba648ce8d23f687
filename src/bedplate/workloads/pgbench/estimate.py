"""Time and room of pgbench's visits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.plan.workload_estimate import GROWTH, WorkloadEstimate
from bedplate.units import KIB
from bedplate.workloads.pgbench.dump import restored_bytes_of
from bedplate.workloads.pgbench.scale import bytes_per_scale, scale_units

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, Dataset, RunSpec, Throttle
    from bedplate.model.plan import DatasetScale, Load

_LOAD_S_PER_SCALE = 0.12
# On an emulated processor, loaded and idle hosts between them: the load of scale 1 takes 3 to 10 s.
_EMULATED_LOAD_S_PER_SCALE = 5.0
# `pgbench -i` writes each row twice: to the table and to the WAL.
_LOAD_WRITE_FACTOR = 2.0
# Measured: 1.2 GB of a data directory in 14 s, beside other work.
_COPY_BYTES_PER_S = 85e6
# What the page cache merges sequential writes into, at least.
_LOAD_IO_BYTES = 128 * KIB


class PgbenchEstimate(WorkloadEstimate):
    """Its runs take what they were asked to; a throttled device is reckoned from its limits."""

    def scale_units(self, scale: DatasetScale, memory_bytes: int) -> int:
        """Pgbench's scale."""
        return scale_units(scale, memory_bytes)

    def load_seconds(self, cell: Cell, dataset: Dataset, *, emulated: bool) -> float:
        """By the scale, and by what the device lets through."""
        own_bytes = restored_bytes_of(dataset.levels)
        if own_bytes:
            # A copy of files, written once and read from the cache's disk.
            return _copy_seconds(own_bytes, cell.device.throttle)
        scale = dataset.levels.integer("scale") or 0
        unthrottled = scale * (_EMULATED_LOAD_S_PER_SCALE if emulated else _LOAD_S_PER_SCALE)
        if cell.device.throttle is None:
            return unthrottled
        written = scale * bytes_per_scale(cell.build.block_size_bytes) * _LOAD_WRITE_FACTOR
        return max(unthrottled, _throttled_seconds(written, cell.device.throttle))

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- asked for
        """What was asked for."""
        return sum(run.levels.number(name) or 0.0 for name in ("warmup_s", "duration_s"))

    def dataset_bytes(self, cell: Cell, load: Load) -> float:
        """Tables, indexes, and what the runs leave dead."""
        own_bytes = restored_bytes_of(load.dataset.levels)
        if own_bytes:
            return own_bytes * GROWTH
        scale = load.dataset.levels.integer("scale") or 0
        return bytes_per_scale(cell.build.block_size_bytes) * scale * GROWTH if scale else 0.0


def _copy_seconds(size_bytes: float, throttle: Throttle | None) -> float:
    unthrottled = size_bytes / _COPY_BYTES_PER_S
    return unthrottled if throttle is None else max(unthrottled, _throttled_seconds(size_bytes, throttle))


def _throttled_seconds(written: float, throttle: Throttle) -> float:
    by_bandwidth = written / throttle.write_bytes_per_s if throttle.write_bytes_per_s else 0.0
    by_iops = written / _LOAD_IO_BYTES / throttle.write_iops if throttle.write_iops else 0.0
    return max(by_bandwidth, by_iops)


ESTIMATE = PgbenchEstimate()
