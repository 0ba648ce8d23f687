"""`type = "tpch"` in a plan: the load, the passes over the queries, the streams at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import Load, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.estimate import WorkloadEstimate
from bedplate.plan.fields import Duration, Factor, Passes, within
from bedplate.plan.table import WorkloadTable
from bedplate.units import KIB
from bedplate.workloads.tpch.model import (
    DRAWN,
    LOAD,
    POWER,
    THROUGHPUT,
    VALIDATION,
    WORKLOAD,
    database_bytes,
    temporary_bytes,
    tpch_data_bytes,
)

ScaleFactor: TypeAlias = Annotated[float, within(values.scale_factor)]
Streams: TypeAlias = Annotated[int, within(values.whole_number, 0, 100)]


class TpchTable(WorkloadTable):
    """`[[workload]]` of type tpch: its load, passes over the 22 queries, and streams of them at once."""

    type: Literal["tpch"] = Field(description="tpch")
    scale_factor: Factor[ScaleFactor] = Field(description="a number from 0.01 to 10000, such as 1")
    """load | 0.01 to 10000, at most two digits behind the point; 1 is a gigabyte of data and about 1.7 GB of tables and indexes |
    required | `{ vary = [1, 10] }`"""
    query_timeout: Duration | None = None
    """measure | the longest that a query may take; one that is stopped counts as censored, not as failed | none | `"300 s"`"""
    passes: Passes = ("cold", "warm")
    """measure | a list of passes over the queries, in order: `cold` begins with everything dropped (server stopped, file system
    mounted again), `warm` with what the run before it left | `["cold", "warm"]` | `["cold", "warm", "warm"]`"""
    streams: Streams = 0
    """measure | so many streams at once, each all queries in its own order: the throughput test; `0` is none | `0` | `2`"""
    parameters: Annotated[str, within(values.one_of, (VALIDATION, DRAWN))] = "validation"
    """measure | `validation`: the specification's own; `drawn`: from the plan's seed, the same in every cell and repetition |
    `"validation"` | `"drawn"`"""

    @model_validator(mode="after")
    def _asks_for_something(self) -> TpchTable:
        if not self.passes and not self.streams:
            raise ValueError('there is nothing to run: give passes = ["cold", "warm"], streams = 2, or both')
        return self

    dataset_key: ClassVar[str] = ".scale_factor"
    runs_on: ClassVar[tuple[str, ...]] = (POSTGRESQL,)

    def run_count(self) -> int:
        """The load, each pass, and all streams as one."""
        return 1 + len(self.passes) + (self.streams > 0)

    def dataset_factors(self) -> Mapping[str, tuple[Scalar, ...]]:
        """The scale factor."""
        return {"scale_factor": self.scale_factor}

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- its defaults have one version
        """The load first."""
        return PlannedWorkload(self.type, (), tpch_runs(self, seed), self.datasets())


def tpch_runs(table: TpchTable, seed: int) -> tuple[RunSpec, ...]:
    """The runs in their order. A pass that comes again has its number behind its name: `warm-2`.

    Drawn parameters depend on the plan's seed alone: every cell and repetition asks the same.
    """
    asked: dict[str, Scalar] = {"parameters": table.parameters}
    if table.parameters == DRAWN:
        asked["parameter_seed"] = seed
    if table.query_timeout is not None:
        asked["query_timeout_s"] = table.query_timeout
    found = [RunSpec(LOAD, WORKLOAD, Levels(kind=LOAD))]
    seen: Counter[str] = Counter()
    for number, kind in enumerate(table.passes, start=1):
        seen[kind] += 1
        name = kind if seen[kind] == 1 else f"{kind}-{seen[kind]}"
        levels = Levels({**asked, "kind": POWER, "pass": kind, "pass_number": number})
        found.append(RunSpec(name, WORKLOAD, levels))
    if table.streams:
        levels = Levels({**asked, "kind": THROUGHPUT, "streams": table.streams})
        found.append(RunSpec(THROUGHPUT, WORKLOAD, levels))
    return tuple(found)


PLAN = TpchTable

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
        return self._bytes / _LOAD_REQUEST_BYTES * self._latency.mean_ns("write", _LOAD_REQUEST_BYTES) / 1e9

    def queries_seconds(self, *, cold: bool) -> float:
        """Reading what the memory does not hold."""
        if self._latency is None or (self._is_held and not cold):
            return 0.0
        reads = self._bytes / self._page_bytes * _READS_PER_PAGE
        return (
            reads
            * (1.0 if self._is_held else _READ_AGAIN)
            * self._latency.mean_ns("read", self._page_bytes)
            / 1e9
        )


ESTIMATE = TpchEstimate()
