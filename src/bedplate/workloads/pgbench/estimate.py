"""Time and room of pgbench's visits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.plan.workload_estimate import GROWTH, WorkloadEstimate
from bedplate.units import KIB
from bedplate.workloads.pgbench.dump import database_bytes
from bedplate.workloads.pgbench.own_database import DUMP
from bedplate.workloads.pgbench.scale import bytes_per_scale, scale_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.cell import Cell, Dataset, Throttle
    from bedplate.model.plan import DatasetScale, Load

_LOAD_S_PER_SCALE = 0.12
# On an emulated processor, loaded and idle hosts between them: the load of scale 1 takes 3 to 10 s.
_EMULATED_LOAD_S_PER_SCALE = 5.0
# `pgbench -i` writes each row twice: to the table and to the WAL.
_LOAD_WRITE_FACTOR = 2.0
# Measured: 1.2 GB of a data directory in 14 s, beside other work.
_COPY_BYTES_PER_S = 85e6
# On an emulated processor, over 9p: 98 MB in 461 s in a guest that had 8.6 % of a processor, which is 40 s of one.
_EMULATED_COPY_BYTES_PER_S = 2.5e6
# Measured: 1.2 GB in 32 s with two jobs.
_RESTORE_BYTES_PER_S = 37e6
# initdb, the start of a server, VACUUM and the shutdown, of the smallest.
_RESTORE_OVERHEAD_S = 6.0
# What the page cache merges sequential writes into, at least.
_LOAD_IO_BYTES = 128 * KIB


class PgbenchEstimate(WorkloadEstimate):
    """Its runs take what they were asked to; a throttled device is reckoned from its limits."""

    def scale_units(self, scale: DatasetScale, memory_bytes: int) -> int:
        """Pgbench's scale."""
        return scale_units(scale, memory_bytes)

    def load_seconds(self, cell: Cell, dataset: Dataset, *, emulated: bool) -> float:
        """By the scale or by the bytes that are copied, and by what the device lets through."""
        own_bytes = database_bytes(dataset.levels)
        if own_bytes:
            # A copy of files, written once and read from the cache's disk.
            return _copy_seconds(own_bytes, cell.device.throttle, emulated=emulated)
        scale = dataset.levels.integer("scale") or 0
        unthrottled = scale * (_EMULATED_LOAD_S_PER_SCALE if emulated else _LOAD_S_PER_SCALE)
        if cell.device.throttle is None:
            return unthrottled
        written = scale * bytes_per_scale(cell.build.block_size_bytes) * _LOAD_WRITE_FACTOR
        return max(unthrottled, _throttled_seconds(written, cell.device.throttle))

    def dataset_bytes(self, cell: Cell, load: Load) -> float:
        """Tables, indexes, and what the runs leave dead."""
        own_bytes = database_bytes(load.dataset.levels)
        if own_bytes:
            return own_bytes * GROWTH
        scale = load.dataset.levels.integer("scale") or 0
        return bytes_per_scale(cell.build.block_size_bytes) * scale * GROWTH if scale else 0.0

    def prepared_bytes(self, dataset: Dataset, cells: Sequence[Cell]) -> int:
        """A restored database for each build and choice of checksums; a data directory is copied from where it is."""
        return int(_restores(dataset, cells) * database_bytes(dataset.levels))

    def prepared_seconds(self, dataset: Dataset, cells: Sequence[Cell]) -> float:
        """Restoring as many; not what `prepare` and `settle` take."""
        each_s = _RESTORE_OVERHEAD_S + database_bytes(dataset.levels) / _RESTORE_BYTES_PER_S
        return _restores(dataset, cells) * each_s


def _restores(dataset: Dataset, cells: Sequence[Cell]) -> int:
    return len({(cell.build, cell.cluster.data_checksums) for cell in cells}) if DUMP in dataset.levels else 0


def _copy_seconds(size_bytes: float, throttle: Throttle | None, *, emulated: bool) -> float:
    unthrottled = size_bytes / (_EMULATED_COPY_BYTES_PER_S if emulated else _COPY_BYTES_PER_S)
    return unthrottled if throttle is None else max(unthrottled, _throttled_seconds(size_bytes, throttle))


def _throttled_seconds(written: float, throttle: Throttle) -> float:
    by_bandwidth = written / throttle.write_bytes_per_s if throttle.write_bytes_per_s else 0.0
    by_iops = written / _LOAD_IO_BYTES / throttle.write_iops if throttle.write_iops else 0.0
    return max(by_bandwidth, by_iops)


ESTIMATE = PgbenchEstimate()
