"""Time and room of fio's visits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.plan.workload_estimate import WorkloadEstimate
from bedplate.units import parse_duration_s, parse_size
from bedplate.workloads.fio.words import TEST_FSYNC_SECONDS, is_pg_test_fsync

if TYPE_CHECKING:
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.levels import Levels
    from bedplate.model.plan import Load

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
