"""The figures of a run of fio, or of pg_test_fsync beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bedplate.figures.counters import busy_cpu_s
from bedplate.figures.facts import free_space_figures, no_fact, number, step_figure
from bedplate.figures.phased import (
    PhasedFigures,
    PhasedRun,
    device_bytes,
    parsed_output,
    per_gib,
    phase_deltas,
    phase_figures,
)
from bedplate.figures.run import FigureMaker, Made
from bedplate.figures.samples import RunInputs, shared_evidence
from bedplate.figures.validity import CACHE_ANSWERED, OF_EVERY_TIMED_RUN, Moved, ToolEvidence, below
from bedplate.model.course import COURSE_FILE
from bedplate.model.figure import Figure
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.model.rules import Rule, RunRules
from bedplate.units import MIB, format_size, percent
from bedplate.workloads.fio import output
from bedplate.workloads.fio import output as fio_output
from bedplate.workloads.fio.model import FIO_JOB, PG_TEST_FSYNC, is_pg_test_fsync
from bedplate.workloads.fio.output import FioJobResult, FioLatency, FioResult, FioSide, PgTestFsyncResult

# What the kernel holds back at the end was never written at the speed that the tool states.
WRITTEN_SHARE_MIN = 0.5


@dataclass(frozen=True, kw_only=True)
class FioEvidence(ToolEvidence):
    """Of a run of fio: `writes` are those through the page cache, `steady_state_missed` a criterion that was not met, `error` the errno at which it stopped."""

    writes: tuple[Moved, ...]
    steady_state_missed: str | None
    error: int


def _not_on_the_device(evidence: FioEvidence) -> str | None:
    found = [
        f"{moved.what} wrote {format_size(moved.asked_bytes)}, of which the device had {format_size(taken)} when it ended"
        for moved, taken in below(evidence.writes, WRITTEN_SHARE_MIN)
    ]
    return f"the cache took the writes: {'; '.join(found)}" if found else None


def _not_steady(evidence: FioEvidence) -> str | None:
    if evidence.steady_state_missed is None:
        return None
    return f"no steady state: the criterion {evidence.steady_state_missed} was not met before the runtime was over"


def _stopped(evidence: FioEvidence) -> str | None:
    if not evidence.error:
        return None
    return f"the job stopped at an error: {os.strerror(evidence.error)} (errno {evidence.error}); its figures are of what it did before"


VALIDITY: RunRules[FioEvidence] = RunRules(
    "fio",
    (
        CACHE_ANSWERED,
        Rule(
            "cache took the writes",
            f"when a job ended that writes through the page cache, the device had less than {percent(WRITTEN_SHARE_MIN)} of "
            "its bytes",
            "the kernel writes later, and the job's time ends before; the limit is a convention of bedplate",
            _not_on_the_device,
        ),
        Rule(
            "no steady state",
            "the job asks for a steady state, and fio's criterion was not met",
            "SNIA, “Solid State Storage Performance Test Specification”: figures of a drive that still settles are transient",
            _not_steady,
        ),
        Rule(
            "job stopped",
            "fio's JSON has an error for the job",
            "figures of a job that stopped are those until then",
            _stopped,
        ),
        *OF_EVERY_TIMED_RUN,
    ),
)

_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
_TWO_SIDES = because("two-sides", "reads and writes have latencies of their own")
_NOTHING = because("nothing-moved", "the job read and wrote nothing")
_NO_TIME = because("no-time-passed", "no time passed")
_NO_LATENCY = because("no-latency-told", "fio states no latency")
_RAMP_TIME = because("ramp-time-counted", "the counters hold the ramp time too, and fio's bytes do not")

# PostgreSQL's wal_sync_method on Linux, and what it costs a commit that writes one block.
_DEFAULT_METHOD = "fdatasync"


class FioFigures(PhasedFigures):
    """Makes the figures of runs whose workload is `fio`."""

    def of_completed(self, inputs: RunInputs, run_directory: Path) -> Made:
        """Of its job, or of the methods of pg_test_fsync."""
        course = {COURSE_FILE: PhasedRun(inputs).course(None)}
        if is_pg_test_fsync(inputs.record.spec):
            methods, problems = parsed_output(run_directory, PG_TEST_FSYNC, output.parse_pg_test_fsync_result)
            measured = _Measured(_with(inputs, problems))
            verdict = VALIDITY.judge(measured.evidence(None))
            return Made(measured.run_figures(measured.figures_of_methods(methods), verdict), course)
        result, problems = parsed_output(run_directory, "fio", fio_output.parse_fio_result)
        measured = _Measured(_with(inputs, problems))
        job = None if result is None else _only_job(result)
        verdict = VALIDITY.judge(measured.evidence(job))
        return Made(measured.run_figures(measured.figures_of_job(job), verdict), course)


def _with(inputs: RunInputs, problems: tuple[str, ...]) -> RunInputs:
    return replace(inputs, problems=(*inputs.problems, *problems))


def _only_job(fio_result: FioResult) -> FioJobResult:
    # Equal processes are reported as one group, and a run is one job.
    return fio_result.jobs[0]


class _Measured(PhasedRun):
    """One run that came to its end."""

    def figures_of_job(self, job_result: FioJobResult | None) -> Iterator[Figure]:
        """Of the job, of its sides where there are two, of its syncs, of laying out and of the final sync."""
        if job_result is not None:
            yield from _job_figures(job_result)
            yield from self._machine_cpu(job_result)
        yield from self._shared()

    def figures_of_methods(self, fsync_result: PgTestFsyncResult | None) -> Iterator[Figure]:
        """A rate for each method of each part; that of the run is fdatasync's after one write."""
        for method in () if fsync_result is None else fsync_result.methods:
            rate = method.ops_per_s
            yield figure(
                "operations_per_s", rate, phase=method.part, item=method.method, reason=method.reason
            )
        if fsync_result is not None:
            default = fsync_result.method(_DEFAULT_METHOD)
            yield figure("operations_per_s", default.ops_per_s, reason=default.reason)
        yield from self._shared()

    def evidence(self, job_result: FioJobResult | None) -> FioEvidence:
        """What speaks for or against the run."""
        inputs, record = self.inputs, self.inputs.record
        steady = None if job_result is None else job_result.steady_state
        return FioEvidence(
            **shared_evidence(inputs, self.window.duration_s),
            reads=() if job_result is None else tuple(self._moved(job_result.read, "read_sectors")),
            # What went around the cache is on the device, whatever the file system made of it.
            writes=()
            if job_result is None or record.spec.levels.flag("direct")
            else tuple(self._moved(job_result.write, "written_sectors")),
            error=0 if job_result is None else job_result.error,
            steady_state_missed=steady.asked if steady is not None and not steady.attained else None,
        )

    def _moved(self, fio_side: FioSide | None, counter: str) -> Iterator[Moved]:
        if fio_side is not None:
            yield Moved("the job", fio_side.size_bytes, device_bytes(self.inputs.record, FIO_JOB, counter))

    def _machine_cpu(self, job_result: FioJobResult) -> Iterator[Figure]:
        if "ramp_time" in self.inputs.record.spec.levels:
            yield figure("machine_cpu_s_per_gib", None, reason=_RAMP_TIME)
            return
        deltas = phase_deltas(self.inputs.record, FIO_JOB)
        yield per_gib("machine_cpu_s_per_gib", lambda: busy_cpu_s(deltas), job_result.size_bytes)

    def _shared(self) -> Iterator[Figure]:
        record = self.inputs.record
        yield figure("tool_cpu_s", number(record, "tool_cpu_s"), reason=no_fact("tool_cpu_s"))
        yield step_figure(self.inputs.visit, "mkfs_s")
        yield from free_space_figures(self.inputs.visit.free_space)
        job = next((phase for phase in record.phases if phase.name == FIO_JOB), self.last)
        yield from self.figures_without_server(phase_deltas(record, FIO_JOB), job, job)
        # The counters of the job are those of the run.
        for phase in [each.name for each in record.phases if each.name != FIO_JOB]:
            yield from phase_figures(record, phase)


def _job_figures(job_result: FioJobResult) -> Iterator[Figure]:
    sides = {
        name: side
        for name, side in (("read", job_result.read), ("write", job_result.write))
        if side is not None
    }
    seconds = max((side.runtime_s for side in sides.values()), default=0.0)
    bandwidth = sum(side.bandwidth_bytes_per_s for side in sides.values())
    yield figure("throughput_mib_per_s", bandwidth / MIB if sides else None, reason=_NOTHING)
    yield figure(
        "operations_per_s", sum(side.iops for side in sides.values()) if sides else None, reason=_NOTHING
    )
    yield figure("cpu_s_per_gib", job_result.cpu_s_per_gib, reason=_NOTHING)
    yield figure("tool_cpu_share", job_result.cpu_s / seconds if seconds > 0 else None, reason=_NO_TIME)
    one = next(iter(sides.values())) if len(sides) == 1 else None
    yield from _latency_figures(
        None if one is None else one.lat or one.clat, reason=_TWO_SIDES if sides else _NOTHING
    )
    if len(sides) > 1:
        for name, side in sides.items():
            yield figure("throughput_mib_per_s", side.bandwidth_bytes_per_s / MIB, phase=FIO_JOB, item=name)
            yield figure("operations_per_s", side.iops, phase=FIO_JOB, item=name)
            yield from _latency_figures(side.lat or side.clat, phase=FIO_JOB, item=name)
    if job_result.sync is not None:
        yield from _latency_figures(job_result.sync, phase=FIO_JOB, item="sync")
    if job_result.steady_state is not None:
        yield figure("steady_state_attained", float(job_result.steady_state.attained))


def _latency_figures(
    latency: FioLatency | None,
    *,
    phase: str = "measure",
    item: str = "",
    reason: Reason = _NO_LATENCY,
) -> Iterator[Figure]:
    values: dict[str, float | None] = {
        "latency_ms_mean": None if latency is None else latency.latency_ms_mean,
        "latency_ms_stddev": None if latency is None else latency.latency_ms_stddev,
        **{
            f"latency_ms_{name}": None if latency is None else latency.latency_ms(percentile)
            for name, percentile in _PERCENTILES.items()
        },
        "latency_ms_max": None if latency is None else latency.latency_ms_max,
    }
    for metric, value in values.items():
        yield figure(metric, value, phase=phase, item=item, reason=reason)


FIGURES: FigureMaker = FioFigures()
