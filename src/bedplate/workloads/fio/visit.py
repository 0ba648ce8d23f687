"""fio: one job is one run. The files that a job finds are laid out before it, in a phase of their own.

A job that finds files finds none of them in a cache: they are laid out and synced by a fio of their own, and
the file system is mounted anew before the job begins. fio's `invalidate` alone is a request to the kernel,
which file systems with a cache of their own do not hear. A job that makes its files has nothing to find.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate.errors import BedplateError
from bedplate.host.requirement import Need
from bedplate.host.shut_in import Restriction
from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import RunRecord
from bedplate.units import parse_duration_s
from bedplate.visit.recording import (
    SYNC_PHASE,
    RawRecording,
    ToolFailed,
    ToolProcess,
    VisitContext,
    Workload,
    time_limit_s,
)
from bedplate.workloads.fio.jobs import MIXED_RW, READING_RW, fio_misfits, fio_words
from bedplate.workloads.fio.model import (
    FIO_JOB,
    FIO_LAY_OUT,
    PG_TEST_FSYNC,
    TEST_FSYNC_SECONDS,
    is_pg_test_fsync,
)

FIO_PROGRAM = "fio"

# The percentiles that bedplate has for every latency.
PERCENTILES = (50.0, 95.0, 99.0, 99.9)

# A job's name begins its files' names, so it is a single harmless word.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)

# Written out, because another version of fio may think otherwise, and the record shows what was asked.
_DEFAULTS: Mapping[str, str] = {
    "ioengine": "psync",
    "iodepth": "1",
    "numjobs": "1",
    "direct": "0",
    # The file's pages leave the cache before the job begins, as far as the file system obeys.
    "invalidate": "1",
    # Each run lays out files of its own; what an earlier one left would change what is measured.
    "unlink": "1",
    # The same offsets in every repetition, so that only the system differs.
    "randrepeat": "1",
}


def fio_path(path: Path | str) -> str:
    r"""As fio's `directory` and `filename` take it: a colon ends one path and begins the next, `\:` is one."""
    return str(path).replace(":", r"\:")


@dataclass(frozen=True)
class FioJob:
    """One fio job: a name, and options in fio's spelling as a plan's table gives them.

    `size` is each of `numjobs` processes' own, as fio has it. A `runtime` is the time that the job
    runs, over and over its files; `time_based = false` ends it earlier, when its size is done.
    ValueError holds every reason at once.
    """

    name: str
    options: Levels

    def __post_init__(self) -> None:
        words, reasons = fio_words(self.options)
        if not _NAME.fullmatch(self.name):
            reasons.append(
                f"fio job {self.name!r}: its name begins the names of its files; use letters, digits, - and _"
            )
        # Rules between options speak of values that were understood.
        if not reasons:
            reasons.extend(fio_misfits(words))
        if reasons:
            raise ValueError("; ".join(reasons))

    @property
    def words(self) -> dict[str, str]:
        """Every option of the job as fio takes it, those that the plan left open too."""
        asked, _ = fio_words(self.options)
        implied = {"time_based": "1"} if "runtime" in asked else {}
        return {**_DEFAULTS, **implied, **asked}

    @property
    def total_size_bytes(self) -> int:
        """The bytes of all its files together: what must fit on the scratch device."""
        words = self.words
        return int(words["size"]) * int(words["numjobs"])

    def argv(
        self, directory: Path, *, log_prefix: Path | None = None, program: str = FIO_PROGRAM
    ) -> list[str]:
        """The argument list; standard output is then fio's JSON, with its remarks before it.

        The files lie in `directory`, which must exist. With `log_prefix`, an absolute path outside of
        it, fio writes bandwidth, operations and latency per second to `<log_prefix>_bw.log`,
        `_iops.log`, `_lat.log`, `_slat.log` and `_clat.log`, each second averaged to one line.
        """
        if not directory.is_absolute():
            raise ValueError(f"fio's directory {directory} must be an absolute path")
        logs = []
        if log_prefix is not None:
            if not log_prefix.is_absolute() or log_prefix.is_relative_to(directory):
                raise ValueError(f"fio's logs {log_prefix} must be an absolute path outside of {directory}")
            logs = [f"--write_{kind}_log={log_prefix}" for kind in ("bw", "iops", "lat")]
            # One file for all processes, one line for a second.
            logs += ["--log_avg_msec=1000", "--per_job_logs=0"]
        return [
            program,
            "--output-format=json",
            "--eta=never",
            f"--name={self.name}",
            f"--directory={fio_path(directory)}",
            *(f"--{name}={word}" for name, word in self.words.items()),
            "--group_reporting=1",
            "--clat_percentiles=1",
            "--lat_percentiles=1",
            f"--percentile_list={':'.join(f'{percentile:g}' for percentile in PERCENTILES)}",
            *logs,
        ]


PG_TEST_FSYNC_PROGRAM = "pg_test_fsync"

_FILE = "pg_test_fsync.out"

# Two rounds of four methods (fsync_writethrough is none on Linux), five sizes, two orders of closing,
# and writes without a sync.
_MEASUREMENTS = 16


@dataclass(frozen=True)
class PgTestFsyncJob:
    """One run; ValueError where the time is not a whole number of seconds from 1 to 3600."""

    seconds_per_measurement: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.seconds_per_measurement <= 3600:
            raise ValueError(
                f"seconds_per_measurement = {self.seconds_per_measurement}: pg_test_fsync takes 1 to 3600"
            )

    @property
    def duration_s(self) -> int:
        """How long the run takes at most; methods that the file system lacks take no time."""
        return _MEASUREMENTS * self.seconds_per_measurement

    def argv(self, directory: Path, programs: Path) -> list[str]:
        """The argument list, with the program from `programs`, a PostgreSQL build's bin directory.

        pg_test_fsync follows its file's name whatever is there: `directory` must be the run's own.
        """
        return [
            str(programs / PG_TEST_FSYNC_PROGRAM),
            *("-f", str(self.file_in(directory))),
            *("-s", str(self.seconds_per_measurement)),
        ]

    @staticmethod
    def file_in(directory: Path) -> Path:
        """The file that it writes and removes."""
        return directory / _FILE


# The same in every run: a job's name becomes that of its files, and a plan may call its runs anything.
_JOB_NAME = "bedplate"

# Each byte may wait for a flush of its block.
_TIMES_MOVED = 64


class Fio(Workload):
    """`type = "fio"` in a plan: each job lays out its own files, so nothing is loaded."""

    name = "fio"
    protocol = "fio 1"
    needs: tuple[Need, ...] = (Need(FIO_PROGRAM, "fio", "measures files without a database"),)

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """The job."""
        recording = RawRecording(spec, context, directory)
        steps = _run_pg_test_fsync if is_pg_test_fsync(spec) else _run_job
        return recording.run_steps(lambda: steps(recording))


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
    said = context.commands.run([FIO_PROGRAM, "--version"], confinement=Restriction(context.account)).stdout
    context.tool_versions[FIO_PROGRAM] = said.strip().removeprefix("fio-")
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
    recording.tell(phase, "", position=phases.index(phase) + 1, of=len(phases))


def _job_of(spec: RunSpec) -> FioJob:
    try:
        return FioJob(_JOB_NAME, spec.levels)
    except ValueError as error:
        raise BedplateError(f"run {spec.name}: {error}") from error


RUN: Workload = Fio()
