"""Time and room of TPC-H's visits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.devices.latency import Law
from bedplate.plan.workload_estimate import WorkloadEstimate
from bedplate.units import KIB
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
# Seen on an emulated disk of 7200 rpm (18.6, scale factors 0.05 to 0.3): a load waits for a write of every 128 KiB of
# the database, a cold pass for a read of every fifth page. One cold pass over twice what the memory holds waited some five
# times as long, as pages are read again; a warm one is taken for the same, and was not seen.
_LOAD_REQUEST_BYTES = 128 * KIB
_READS_PER_PAGE = 0.2
_READ_AGAIN = 5.0
# Generic code runs some twenty times slower on an emulated processor.
_EMULATION = 20.0
_QUERIES = 22
_COLD = "cold"


class TpchEstimate(WorkloadEstimate):
    """Its load is a run; streams run at once and share the machine."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:
        """By the scale factor, and no longer than the limit of the queries."""
        scale_factor = load.dataset.levels.number("scale_factor") or 0.0
        slower = _EMULATION if emulated else 1.0
        device = _OnDevice(cell, scale_factor)
        if run.levels.text("kind") == LOAD:
            return _LOAD_S_PER_SCALE_FACTOR * scale_factor * slower + device.load_seconds()
        queries = _QUERIES_S_PER_SCALE_FACTOR * scale_factor * slower
        queries += device.queries_seconds(cold=run.levels.text("pass") == _COLD)
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


class _OnDevice:
    """What requests add where a device takes a time for each; nothing on any other."""

    def __init__(self, cell: Cell, scale_factor: float) -> None:
        self._latency = cell.device.latency
        self._page_bytes = cell.build.block_size_bytes
        self._bytes = database_bytes(scale_factor, self._page_bytes) if scale_factor else 0
        memory_bytes = cell.device.memory_bytes
        self._is_held = memory_bytes is None or self._bytes <= memory_bytes

    def load_seconds(self) -> float:
        """Writing the database."""
        if self._latency is None:
            return 0.0
        return self._bytes / _LOAD_REQUEST_BYTES * Law.parse(self._latency.write).mean_ns / 1e9

    def queries_seconds(self, *, cold: bool) -> float:
        """Reading what the memory does not hold."""
        if self._latency is None or (self._is_held and not cold):
            return 0.0
        reads = self._bytes / self._page_bytes * _READS_PER_PAGE
        return reads * (1.0 if self._is_held else _READ_AGAIN) * Law.parse(self._latency.read).mean_ns / 1e9


ESTIMATE = TpchEstimate()
