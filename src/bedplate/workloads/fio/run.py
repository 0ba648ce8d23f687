"""fio: one job is one run. The files that a job finds are laid out before it, in a phase of their own.

A job that finds files finds none of them in a cache: they are laid out and synced by a fio of their own, and
the file system is mounted anew before the job begins. fio's `invalidate` alone is a request to the kernel,
which file systems with a cache of their own do not hear. A job that makes its files has nothing to find.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.requirement import Need
from bedplate.host.shut_in.restriction import Restriction
from bedplate.units import parse_duration_s
from bedplate.visit.tool_process import ToolFailed, ToolProcess
from bedplate.visit.tool_recording import SYNC_PHASE, RawRecording, time_limit_s
from bedplate.workloads.fio.command import PROGRAM, FioJob
from bedplate.workloads.fio.options import MIXED_RW, READING_RW
from bedplate.workloads.fio.pg_test_fsync_command import PgTestFsyncJob
from bedplate.workloads.fio.words import (
    FIO_JOB,
    FIO_LAY_OUT,
    PG_TEST_FSYNC,
    TEST_FSYNC_SECONDS,
    is_pg_test_fsync,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.visit import RunRecord
    from bedplate.visit.workload import Driver, VisitContext, Workload

# The same in every run: a job's name becomes that of its files, and a plan may call its runs anything.
_JOB_NAME = "bedplate"
# Each byte may wait for a flush of its block.
_TIMES_MOVED = 64


class Fio:
    """`type = "fio"` in a plan."""

    name = "fio"
    # Raised whenever a change of how it is measured makes old and new figures incomparable.
    protocol = "fio 1"
    needs: tuple[Need, ...] = (Need(PROGRAM, "fio", "measures files without a database"),)
    drivers: tuple[Driver, ...] = ()

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Nothing: each job lays out its own files."""

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """The job."""
        recording = RawRecording(spec, context, directory)
        steps = _run_pg_test_fsync if is_pg_test_fsync(spec) else _run_job
        return recording.made(lambda: steps(recording))


def finds_files(words: dict[str, str]) -> bool:
    """Whether a job reads, or writes over, what is there before it begins."""
    return words["rw"] in READING_RW | MIXED_RW or words.get("overwrite") == "1"


def _run_job(recording: RawRecording) -> None:
    job = _job_of(recording.spec)
    words = job.words
    has_io_uring = words.get("ioengine") == "io_uring"
    runtime_s = parse_duration_s(recording.spec.levels.get("runtime", 0))
    ramp_s = parse_duration_s(recording.spec.levels.get("ramp_time", 0))
    limit_s = time_limit_s(job.total_size_bytes, times=_TIMES_MOVED, more_s=runtime_s + ramp_s)
    recording.facts["file_bytes"] = job.total_size_bytes
    context = recording.context
    said = context.commands.run([PROGRAM, "--version"], confinement=Restriction(context.account)).stdout
    context.tool_versions[PROGRAM] = said.strip().removeprefix("fio-")
    phases = (*((FIO_LAY_OUT,) if finds_files(words) else ()), FIO_JOB, SYNC_PHASE)
    with recording.place() as place:
        if finds_files(words):
            _tell(recording, phases, FIO_LAY_OUT)
            # The job's own `unlink` comes first in the list, and fio takes the last.
            argv = [*job.argv(place), "--create_only=1", "--unlink=0"]
            _run_tool(
                recording,
                argv,
                place,
                phase=FIO_LAY_OUT,
                output="fio-lay-out",
                limit_s=limit_s,
                io_uring=has_io_uring,
            )
            recording.context.make_cold()
            recording.facts["made_cold"] = True
        _tell(recording, phases, FIO_JOB)
        logs = recording.context.log_directory / "fio"
        logs.mkdir()
        shutil.chown(logs, recording.context.account.uid, recording.context.account.gid)
        try:
            argv = job.argv(place, log_prefix=logs / "fio")
            _run_tool(
                recording,
                argv,
                place,
                phase=FIO_JOB,
                output="fio",
                limit_s=limit_s,
                writable=(logs,),
                io_uring=has_io_uring,
                then_sync=True,
            )
        finally:
            for log in sorted(logs.glob("*.log")):
                shutil.move(log, recording.directory / "logs" / log.name)
            shutil.rmtree(logs)


def _run_pg_test_fsync(recording: RawRecording) -> None:
    programs = recording.context.inputs.get(PG_TEST_FSYNC)
    if programs is None:
        raise BedplateError(
            "the visit was given no PostgreSQL whose pg_test_fsync to run: its inputs name none"
        )
    try:
        job = PgTestFsyncJob(recording.spec.levels.integer(TEST_FSYNC_SECONDS) or 1)
    except ValueError as error:
        raise BedplateError(f"run {recording.spec.name}: {error}") from error
    with recording.place() as place:
        _tell(recording, (FIO_JOB, SYNC_PHASE), FIO_JOB)
        _run_tool(
            recording,
            job.argv(place, Path(programs)),
            place,
            phase=FIO_JOB,
            output=PG_TEST_FSYNC,
            limit_s=time_limit_s(0, times=0, more_s=job.duration_s),
            readable=(Path(programs),),
            then_sync=True,
        )


def _run_tool(
    recording: RawRecording,
    argv: Sequence[str],
    place: Path,
    *,
    phase: str,
    output: str,
    limit_s: float,
    writable: tuple[Path, ...] = (),
    readable: tuple[Path, ...] = (),
    io_uring: bool = False,
    then_sync: bool = False,
) -> None:
    context = recording.context
    tool = ToolProcess(
        argv,
        context,
        output=recording.directory / "logs" / output,
        directory=place,
        confinement=Restriction(context.account, (place, *writable), readable, io_uring=io_uring),
    )
    recording.commands.append(tool.argv)
    with tool, recording.watched(first_phase=phase):
        with recording.timed_phase(phase):
            ended = tool.wait(limit_s=limit_s)
        if ended.problem is not None:
            raise ToolFailed(ended.problem, ended)
        if then_sync:
            recording.facts["tool_cpu_s"] = ended.cpu_s
            recording.sync(place, of_bytes=recording.context.memory_bytes)


def _tell(recording: RawRecording, phases: Sequence[str], phase: str) -> None:
    recording.tell(phase, "", done=phases.index(phase) + 1, of=len(phases))


def _job_of(spec: RunSpec) -> FioJob:
    try:
        return FioJob(_JOB_NAME, spec.levels)
    except ValueError as error:
        raise BedplateError(f"run {spec.name}: {error}") from error


RUN: Workload = Fio()
