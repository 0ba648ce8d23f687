"""`type = "sysbench"` in a plan: tables of rows, and sysbench's OLTP scripts on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field

from bedplate import registry
from bedplate.engines.postgresql.visit import too_many_clients, too_short
from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.engines import MARIADB, POSTGRESQL
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import Load, Plan, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.estimate import WorkloadEstimate
from bedplate.plan.fields import Count, Duration, Factor, RunTable, run_specs, within
from bedplate.plan.table import InnerTables, WorkloadTable, at_least_one
from bedplate.workloads.sysbench.model import READ_ONLY, SCRIPTS

if TYPE_CHECKING:
    from bedplate.plan.differences import PlanWarnings

# Those whose servers speak SQL to sysbench.
SQL_ENGINES = registry.engines_with("sql")

SysbenchScript: TypeAlias = Annotated[str, within(values.one_of, SCRIPTS)]
TableCount: TypeAlias = Annotated[int, within(values.whole_number, 1, 1000)]


class SysbenchRunTable(RunTable):
    """`[[workload.run]]`: one run, or several where a key varies."""

    script: Factor[SysbenchScript] = Field(description=f"one of {', '.join(SCRIPTS)}")
    """measure | `oltp_read_only`, `oltp_read_write`, `oltp_update_index`, `oltp_write_only` | required | `"oltp_read_write"`"""
    threads: Factor[Count] = (4,)
    """measure | threads of sysbench, each with a session | `4` | `{ vary = [1, 16] }`"""
    warmup: Factor[Annotated[float, within(values.duration, 0)]] = (10.0,)
    """measure | a time from 0; recorded, and left out of every figure | `"10 s"` | `"2 min"`"""
    duration: Factor[Duration] = (60.0,)
    """measure | the time that is measured, 1 s or more | `"60 s"` | `"10 min"`"""
    rate: Factor[Annotated[float | None, within(values.rate)]] = (None,)
    """measure | transactions offered a second, or `"unlimited"`; the latency then begins when sysbench sends one | `"unlimited"` | `500`"""

    varying: ClassVar[tuple[str, ...]] = ("script", "threads", "warmup", "duration", "rate")


class SysbenchTable(WorkloadTable):
    """`[[workload]]` of type sysbench: a dataset, and the runs on it."""

    type: Literal["sysbench"] = Field(description="sysbench")
    engine: Factor[Annotated[str, within(values.one_of, SQL_ENGINES)]] = (MARIADB,)
    """build | `mariadb`, `postgresql`: set up as in `[mariadb]` and `[postgresql]` | `"mariadb"` | `{ vary = ["mariadb", "postgresql"] }`"""
    tables: Factor[TableCount] = Field(default=(4,), description="a whole number from 1: tables")
    """load | 1 to 1000: tables | `4` | `16`"""
    table_size: Factor[Annotated[int, within(values.whole_number, 100, 10**9)]] = Field(
        default=(100_000,), description="a whole number from 100: rows of a table"
    )
    """load | 100 to 1000000000: rows of each table, about 240 bytes each with its indexes | `100000` | `{ vary = [100_000, 1_000_000] }`"""
    run: Annotated[tuple[SysbenchRunTable, ...], AfterValidator(at_least_one)] = Field(
        default=tuple(
            SysbenchRunTable.model_validate({"script": name}) for name in (READ_ONLY, "oltp_read_write")
        ),
        description="one or more [[workload.run]] tables",
    )
    """– | one or more `[[workload.run]]` tables, made in this order | `oltp_read_only` and `oltp_read_write`, 60 s each | –"""

    dataset_key: ClassVar[str] = ".table_size"
    inner_tables: ClassVar[InnerTables] = {"run": SysbenchRunTable}

    def run_count(self) -> int:
        """Every combination of each table's levels."""
        return sum(table.run_count() for table in self.run)

    def dataset_factors(self) -> Mapping[str, tuple[Scalar, ...]]:
        """Number of tables and their size; every server has the same."""
        return {"tables": self.tables, "table_size": self.table_size}

    def engines(self) -> tuple[str, ...]:
        """Those that are asked."""
        return self.engine

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- it draws by the visit's seed
        """The same for each server; ValueError where two runs have one name."""
        specs = run_specs(self.run, self.type, defaults)
        return PlannedWorkload(self.type, (), specs, self.datasets(), engines=self.engine)


PLAN = SysbenchTable

_LOAD_S_PER_ROW = 3e-5
_EMULATED = 20.0

# 188 bytes of columns and two indexes; then what updates split and leave.
_BYTES_PER_ROW = 300

_GROWTH = 1.5


class SysbenchEstimate(WorkloadEstimate):
    """Its runs take what they were asked to."""

    def load_seconds(self, cell: Cell, dataset: Dataset, *, emulated: bool) -> float:  # noqa: ARG002 -- rough
        """By the rows."""
        return _rows(dataset) * _LOAD_S_PER_ROW * (_EMULATED if emulated else 1.0)

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- rough
        """Tables and indexes, after the runs."""
        return _rows(load.dataset) * _BYTES_PER_ROW * _GROWTH


def _rows(dataset: Dataset) -> int:
    return (dataset.levels.integer("tables") or 0) * (dataset.levels.integer("table_size") or 0)


ESTIMATE = SysbenchEstimate()

CANARY = Load(
    Dataset("sysbench", Levels(tables=2, table_size=10_000)),
    (
        RunSpec(
            "canary",
            "sysbench",
            Levels(script="oltp_read_write", threads=2, warmup_s=2.0, duration_s=8.0),
        ),
    ),
)


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences; of a server with fuzzy checkpoints nobody knows beforehand how soon its log turns over."""
    for workload in plan.workloads:
        if workload.type == "sysbench" and plan.runs_on(workload, POSTGRESQL):
            for run in workload.runs:
                yield from too_many_clients(plan, run, run.levels.integer("threads") or 1)
                if run.levels.text("script") != READ_ONLY:
                    yield from too_short(plan, run, run.levels.number("warmup_s"))


WARNINGS: PlanWarnings = of_plan
