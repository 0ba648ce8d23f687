"""`type = "fio"` in a plan: a run for each job, and pg_test_fsync where it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field

from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.engines import NO_ENGINE, POSTGRESQL
from bedplate.model.levels import Levels
from bedplate.model.plan import Load, PlannedWorkload
from bedplate.plan.estimate import WorkloadEstimate
from bedplate.plan.fields import Flag, within
from bedplate.plan.table import WorkloadTable, at_least_one
from bedplate.plan.values import TEXT, Form
from bedplate.units import parse_duration_s, parse_size
from bedplate.workloads.fio.jobs import READY_FIO_JOBS, fio_jobs, fio_run_specs
from bedplate.workloads.fio.model import PG_TEST_FSYNC, TEST_FSYNC_SECONDS, WORKLOAD, is_pg_test_fsync

# Options are left to fio's own check: an allow-list of forms that this schema does not know.
JOB: Form = {"type": "object", "properties": {"job": {"enum": list(READY_FIO_JOBS)}, "name": TEXT}}

FioJobs: TypeAlias = Annotated[tuple[RunSpec, ...], within(fio_jobs, form=JOB)]


class FioTable(WorkloadTable):
    """`[[workload]]` of type fio: one run for each job."""

    type: Literal["fio"] = Field(description="fio")
    job: Annotated[tuple[FioJobs, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[workload.job]] tables"
    )
    """– | one or more `[[workload.job]]` tables, made in this order | required | –"""
    pg_test_fsync: Flag = False
    """measure | `true`: PostgreSQL's pg_test_fsync after the jobs, 2 s for each of its 16 measurements. The program is that of the
    plan's first build, so another workload of type pgbench or tpch must be there | `false` | `true`"""

    runs_key: ClassVar[str] = "job"
    runs_on: ClassVar[tuple[str, ...]] = (NO_ENGINE,)

    def run_count(self) -> int:
        """One for each job and combination of its options."""
        return sum(map(len, self.job)) + self.pg_test_fsync

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- its defaults have one version
        """One dataset, as each job makes its own files; what pg_test_fsync needs is made ready for it, before the visit."""
        specs = fio_run_specs(self.job, pg_test_fsync=self.pg_test_fsync)
        levels = Levels({PG_TEST_FSYNC: True} if self.pg_test_fsync else {})
        return PlannedWorkload(self.type, (), specs, (levels,))

    def against(self, tables: Sequence[WorkloadTable]) -> tuple[str, ...]:
        """pg_test_fsync without a PostgreSQL that it comes with."""
        if not self.pg_test_fsync or any(POSTGRESQL in table.engines() for table in tables):
            return ()
        words = (
            "it is a program of PostgreSQL, and nothing here builds one; add a workload of type pgbench or tpch, or "
            "take the key out"
        )
        return (f".{PG_TEST_FSYNC}: {words}",)


PLAN = FioTable

# What a local NVMe disk does through a file system, and one fsync on it.
_BYTES_PER_S = 400e6

_FSYNC_S = 0.002
_TEST_FSYNC_MEASUREMENTS = 16


class FioEstimate(WorkloadEstimate):
    """By `runtime` where a job has one, else by what it moves."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- the disk's
        """A job, or pg_test_fsync."""
        if is_pg_test_fsync(run):
            return _TEST_FSYNC_MEASUREMENTS * (run.levels.integer(TEST_FSYNC_SECONDS) or 1)
        if "runtime" in run.levels:
            return parse_duration_s(run.levels["runtime"])
        synced = bool(run.levels.get("fsync") or run.levels.get("fdatasync"))
        moved_bytes = _moved_bytes(run.levels)
        operations = moved_bytes / max(1, parse_size(str(run.levels.get("bs", 4096))))
        # The file is laid out first, where the job does not make it itself.
        laid_out_s = _file_bytes(run.levels) / _BYTES_PER_S
        return laid_out_s + moved_bytes / _BYTES_PER_S + (operations * _FSYNC_S if synced else 0.0)

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- of others' role
        """The files of the largest job: each removes its own."""
        return max((_file_bytes(run.levels) for run in load.runs), default=0)


def _file_bytes(levels: Levels) -> int:
    return parse_size(str(levels.get("size", 0))) * (levels.integer("numjobs") or 1)


def _moved_bytes(levels: Levels) -> int:
    """What the job reads and writes: its size, or so much of it as `io_size` says, as often as it loops."""
    once = (
        parse_size(str(levels["io_size"])) * (levels.integer("numjobs") or 1) if "io_size" in levels else None
    )
    return (_file_bytes(levels) if once is None else once) * (levels.integer("loops") or 1)


ESTIMATE = FioEstimate()

CANARY = Load(
    Dataset(WORKLOAD, Levels()),
    (
        RunSpec(
            "canary",
            WORKLOAD,
            Levels(rw="write", bs="8 kB", size="64 MB", fdatasync=1, overwrite=True, runtime="8 s"),
        ),
    ),
)
