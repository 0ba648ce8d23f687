"""`type = "fio"` in a plan: a run for each job, and pg_test_fsync where it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator

from bedplate.model.engines import NO_ENGINE, POSTGRESQL
from bedplate.model.levels import Levels
from bedplate.model.plan import PlannedWorkload
from bedplate.plan.fields import Flag
from bedplate.plan.table import at_least_one
from bedplate.plan.workload_table import WorkloadTable
from bedplate.workloads.fio.jobs import FioRun, fio_jobs, fio_run_specs
from bedplate.workloads.fio.words import PG_TEST_FSYNC

FioJobs: TypeAlias = Annotated[tuple[FioRun, ...], PlainValidator(fio_jobs)]


class FioTable(WorkloadTable):
    """`[[workload]]` of type fio: one run for each job."""

    type: Literal["fio"] = Field(description="fio")
    job: Annotated[tuple[FioJobs, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[workload.job]] tables"
    )
    """– | one or more `[[workload.job]]` tables, made in this order | required | –"""
    pg_test_fsync: Flag = Field(default=False, description="true or false: pg_test_fsync after the jobs")
    """measure | `true`: PostgreSQL's pg_test_fsync after the jobs, 2 s for each of its 16 measurements. The program is that of the
    plan's first build, so another workload of type pgbench or tpch must be there | `false` | `true`"""

    runs_key: ClassVar[str] = "job"

    def run_count(self) -> int:
        """One for each job and combination of its options."""
        return sum(map(len, self.job)) + self.pg_test_fsync

    def dataset_count(self) -> int:
        """One: each job makes its own files."""
        return 1

    def engines(self) -> tuple[str, ...]:
        """None: the file system itself."""
        return (NO_ENGINE,)

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- its defaults have one version
        """What pg_test_fsync needs is made ready for a dataset, before the visit."""
        specs = fio_run_specs(self.job, pg_test_fsync=self.pg_test_fsync)
        levels = Levels({PG_TEST_FSYNC: True} if self.pg_test_fsync else {})
        return PlannedWorkload(self.type, (), specs, (levels,))

    def against(self, others: Sequence[WorkloadTable]) -> tuple[str, ...]:
        """pg_test_fsync without a PostgreSQL that it comes with."""
        if not self.pg_test_fsync or any(POSTGRESQL in table.engines() for table in others):
            return ()
        words = (
            "it is a program of PostgreSQL, and nothing here builds one; add a workload of type pgbench or tpch, or "
            "take the key out"
        )
        return (f".{PG_TEST_FSYNC}: {words}",)


PLAN = FioTable
