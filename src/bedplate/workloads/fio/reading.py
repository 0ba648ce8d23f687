"""What a study says of fio's jobs, and of pg_test_fsync."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from bedplate.analysis.run_heads import MovedBytes, RunHead, WorkloadView
from bedplate.model.cell import RunSpec
from bedplate.workloads.fio.jobs import MIXED_RW, WRITING_RW
from bedplate.workloads.fio.model import PG_TEST_FSYNC, WORKLOAD, is_pg_test_fsync

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview

_JOB_HEAD = RunHead("throughput_mib_per_s", "MiB/s", "cpu_s_per_gib", "CPU s/GiB", beneath=True)
_SYNCS = RunHead("operations_per_s", "fdatasync/s", "tool_cpu_s", "CPU s", beneath=True)


class FioView(WorkloadView):
    """Jobs that are as unlike each other as a load and a query."""

    heads: ClassVar[Mapping[str, RunHead]] = {WORKLOAD: _JOB_HEAD, PG_TEST_FSYNC: _SYNCS}
    headlines: ClassVar[tuple[str, ...]] = ("throughput_mib_per_s",)

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its kind says it
        """By the job's `rw`."""
        return is_pg_test_fsync(spec) or spec.levels.text("rw") in WRITING_RW | MIXED_RW

    def moved_bytes(self, spec: RunSpec) -> MovedBytes | None:
        """Of a job."""
        return None if is_pg_test_fsync(spec) else MovedBytes("fio")

    def kind(self, spec: RunSpec) -> str | None:
        """The tool."""
        return PG_TEST_FSYNC if is_pg_test_fsync(spec) else WORKLOAD

    def alike(self, spec: RunSpec) -> str | None:
        """A job is like itself alone."""
        return spec.name


ANALYSIS = FioView()
