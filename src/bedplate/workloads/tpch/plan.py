"""`type = "tpch"` in a plan: the load, the passes over the queries, the streams at once."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, PlainValidator, model_validator

from bedplate.model.cell import RunSpec
from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import PlannedWorkload
from bedplate.plan import values
from bedplate.plan.fields import Duration, Factor, Passes, within
from bedplate.plan.workload_table import WorkloadTable, datasets
from bedplate.workloads.tpch.model import DRAWN, LOAD, POWER, THROUGHPUT, VALIDATION, WORKLOAD

ScaleFactor: TypeAlias = Annotated[float, PlainValidator(values.scale_factor)]
Streams: TypeAlias = Annotated[int, within(values.whole_number, 0, 100)]
QueryParameters: TypeAlias = Annotated[str, within(values.one_of, (VALIDATION, DRAWN))]


class TpchTable(WorkloadTable):
    """`[[workload]]` of type tpch: its load, passes over the 22 queries, and streams of them at once."""

    type: Literal["tpch"] = Field(description="tpch")
    scale_factor: Factor[ScaleFactor] = Field(description="a number from 0.01 to 10000, such as 1")
    """load | 0.01 to 10000, at most two digits behind the point; 1 is a gigabyte of data and about 1.7 GB of tables and indexes |
    required | `{ vary = [1, 10] }`"""
    query_timeout: Duration | None = Field(
        default=None, description='longest time of a query, such as "300 s"'
    )
    """measure | the longest that a query may take; one that is stopped counts as censored, not as failed | none | `"300 s"`"""
    passes: Passes = Field(default=("cold", "warm"), description='a list of "cold" and "warm"')
    """measure | a list of passes over the queries, in order: `cold` begins with everything dropped (server stopped, file system
    mounted anew), `warm` with what the run before it left | `["cold", "warm"]` | `["cold", "warm", "warm"]`"""
    streams: Streams = Field(default=0, description="a whole number from 0 to 100: streams at once")
    """measure | so many streams at once, each all queries in its own order: the throughput test; `0` is none | `0` | `2`"""
    parameters: QueryParameters = Field(default="validation", description='"validation" or "drawn"')
    """measure | `validation`: the specification's own; `drawn`: from the plan's seed, the same in every cell and repetition |
    `"validation"` | `"drawn"`"""

    @model_validator(mode="after")
    def _asks_for_something(self) -> TpchTable:
        if not self.passes and not self.streams:
            raise ValueError('there is nothing to run: give passes = ["cold", "warm"], streams = 2, or both')
        return self

    dataset_key: ClassVar[str] = ".scale_factor"

    def run_count(self) -> int:
        """The load, each pass, and all streams as one."""
        return 1 + len(self.passes) + (self.streams > 0)

    def dataset_count(self) -> int:
        """One for each scale factor."""
        return len(self.scale_factor)

    def engines(self) -> tuple[str, ...]:
        """PostgreSQL."""
        return (POSTGRESQL,)

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- its defaults have one version
        """The load first."""
        return PlannedWorkload(self.type, (), tpch_runs(self, seed), datasets(scale_factor=self.scale_factor))


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
