"""The schema of `[[workload]]`: one class per type of workload; a new one is one more class and entry."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from bedplate.plan.fields import (
    Count,
    Duration,
    Factor,
    Passes,
    Protocol,
    QueryParameters,
    Rate,
    RunName,
    ScaleFactor,
    ScaleLevel,
    ScriptLevel,
    Streams,
    WarmUp,
)
from bedplate.plan.table import Table, at_least_one
from bedplate.plan.values import UNTIL_STEADY


class RunTable(Table):
    """`[[workload.run]]`: one run, or several where a key varies."""

    name: RunName | None = Field(default=None, description="name of the run")
    script: Factor[ScriptLevel] = Field(description="read-only, read-write, simple-update, or an own script")
    clients: Factor[Count] = Field(default=(1,), description="sessions at once")
    jobs: Factor[Count] = Field(default=(), description="threads of pgbench")
    warmup: Factor[WarmUp] = Field(default=(30.0,), description=f'a time, or "{UNTIL_STEADY}"')
    warmup_limit: Duration | None = Field(default=None, description=f'longest warm-up with "{UNTIL_STEADY}"')
    duration: Factor[Duration] = Field(description='time that is measured, such as "5 min"')
    rate: Factor[Rate] = Field(default=(None,), description="transactions offered a second")
    protocol: Factor[Protocol] = Field(default=("prepared",), description="query protocol")

    @model_validator(mode="after")
    def _fits_together(self) -> RunTable:
        reasons = []
        if self.warmup_limit is not None and UNTIL_STEADY not in self.warmup:
            reasons.append(f'warmup_limit is for warmup = "{UNTIL_STEADY}" only')
        if self.jobs and max(self.jobs) > min(self.clients):
            reasons.append(
                f"jobs = {max(self.jobs)} with clients = {min(self.clients)}: pgbench starts no more threads "
                "than clients"
            )
        if reasons:
            raise ValueError("; ".join(reasons))
        return self


class PgbenchTable(Table):
    """`[[workload]]` of type pgbench: a dataset, and the runs on it."""

    type: Literal["pgbench"] = Field(description="pgbench")
    scale: Factor[ScaleLevel] = Field(description='pgbench scale, or "4x memory"')
    run: Annotated[tuple[RunTable, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[workload.run]] tables"
    )


class TpchTable(Table):
    """`[[workload]]` of type tpch: its load, passes over the 22 queries, and streams of them at once."""

    type: Literal["tpch"] = Field(description="tpch")
    scale_factor: Factor[ScaleFactor] = Field(description="a number from 0.01 to 10000, such as 1")
    query_timeout: Duration | None = Field(
        default=None, description='longest time of a query, such as "300 s"'
    )
    passes: Passes = Field(default=("cold", "warm"), description='a list of "cold" and "warm"')
    streams: Streams = Field(default=0, description="a whole number from 0 to 100: streams at once")
    parameters: QueryParameters = Field(default="validation", description='"validation" or "drawn"')

    @model_validator(mode="after")
    def _asks_for_something(self) -> TpchTable:
        if not self.passes and not self.streams:
            raise ValueError('there is nothing to run: give passes = ["cold", "warm"], streams = 2, or both')
        return self


AnyWorkload: TypeAlias = Annotated[PgbenchTable | TpchTable, Field(discriminator="type")]
# By the type, and by the type and the tables in it.
WORKLOAD_TABLES: dict[tuple[str, ...], type[Table]] = {
    ("pgbench",): PgbenchTable,
    ("pgbench", "run"): RunTable,
    ("tpch",): TpchTable,
}
WORKLOAD_TYPES = tuple(dict.fromkeys(names[0] for names in WORKLOAD_TABLES))
