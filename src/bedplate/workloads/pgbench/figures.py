"""The figures of a pgbench run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bedplate.figures.checkpoint_windows import checkpoint_figures, checkpoint_windows, complaints_between
from bedplate.figures.counters import Absent, Deltas, Divisors, counter_figures, gauge_figures
from bedplate.figures.courses import Stretch, make_course, make_latencies
from bedplate.figures.evidence import shared_evidence
from bedplate.figures.facts import (
    deltas_of,
    idle_cpu_share_of,
    integer,
    number,
    size_figures,
    step_figure,
)
from bedplate.figures.protocol import Made, run_figures
from bedplate.figures.samples import values_between
from bedplate.figures.steadiness import trend_share, two_speeds
from bedplate.figures.unfinished import not_completed, unmeasured
from bedplate.figures.window import MeasuredWindow, phase_named
from bedplate.model.course import COURSE_FILE, LATENCY_FILE
from bedplate.model.metrics import figure
from bedplate.model.visit import Outcome
from bedplate.workloads.pgbench.raw_record import BULKY, PgbenchInputs, measured_window, read_pgbench_inputs
from bedplate.workloads.pgbench.scripts import scripts_of, writes
from bedplate.workloads.pgbench.transactions import (
    outcome_count,
    script_figures,
    steadiness_figures,
    tps_of_seconds,
    transaction_count,
    transaction_figures,
)
from bedplate.workloads.pgbench.validity import VALIDITY, PgbenchEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from bedplate.figures.protocol import FigureMaker
    from bedplate.figures.server_log import Complaint
    from bedplate.model.figure import Figure, RunFigures, Window
    from bedplate.model.visit import Phase, RunRecord
    from bedplate.workloads.pgbench.scripts import RunScript

# The header of a WAL record (XLogRecord, access/xlogrecord.h): who commits a change writes more than one.
WAL_RECORD_BYTES_MIN = 24
_DEFAULT_BLOCK_BYTES = 8192
_TIMES_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x\s*memory\s*")


class PgbenchFigures:
    """Makes the figures of runs whose workload is `pgbench`."""

    bulky: tuple[str, ...] = BULKY

    def make(self, visit_directory: Path, run_directory: Path, record: RunRecord) -> Made:
        """Read the raw record of a run and make everything of it."""
        inputs = read_pgbench_inputs(visit_directory, run_directory, record)
        measure = phase_named(inputs.record.phases, "measure")
        if measure is None:
            warmup_s = _length_s(phase_named(inputs.record.phases, "warmup"))
            return Made(unmeasured(inputs, warmup_s=warmup_s), {})
        return _Measured.of(inputs, measure).made()


@dataclass(frozen=True)
class _Measured:
    """One run that was measured, its inputs placed on one clock."""

    inputs: PgbenchInputs
    phase: Phase
    warmup: Phase | None
    window: MeasuredWindow
    windows: tuple[Window, ...] | None

    @classmethod
    def of(cls, inputs: PgbenchInputs, phase: Phase) -> _Measured:
        warmup = phase_named(inputs.record.phases, "warmup")
        window = measured_window(phase, inputs.summary)
        windows = None
        if inputs.server_log is not None:
            from_s = 0.0 if warmup is None else warmup.start_wall_s - window.start_wall_s
            windows = checkpoint_windows(inputs.server_log, window.start_wall_s, from_s, window.duration_s)
        return cls(inputs, phase, warmup, window, windows)

    def made(self) -> Made:
        course = make_course(
            self._stretches(),
            self.window,
            self.phase,
            self.inputs.samples,
            self._block_size_bytes or _DEFAULT_BLOCK_BYTES,
        )
        latencies = make_latencies(self._stretches(), self.window)
        return Made(self._run_figures(course), {COURSE_FILE: course, LATENCY_FILE: latencies})

    def _run_figures(self, course: pl.DataFrame) -> RunFigures:
        record = self.inputs.record
        if record.outcome is Outcome.COMPLETED:
            verdict, figures = VALIDITY.judge(self._evidence(course)), tuple(self._figures())
        else:
            verdict, figures = not_completed(self.inputs), ()
        return run_figures(
            record,
            verdict,
            figures,
            start_wall_s=self.window.start_wall_s,
            duration_s=self.window.duration_s,
            warmup_s=_length_s(self.warmup),
            windows=self.windows or (),
        )

    def _figures(self) -> Iterator[Figure]:
        log = self.inputs.measure_log
        yield from transaction_figures(
            log, self.window, read_only=self._read_only, rate_limited="rate_tps" in self.inputs.record.facts
        )
        if len(self._scripts) > 1:
            yield from script_figures(log, self.window, [script.name for script in self._scripts])
        yield from steadiness_figures(log, self.window, self.windows, self._warmup_tps())
        yield from checkpoint_figures(self.windows, self.window.duration_s)
        # Without the two readings every counter is missing, and every figure says so.
        yield from counter_figures(deltas_of(self.inputs.record) or Deltas({}, {}, 0.0), self._divisors())
        yield from gauge_figures(
            values_between(self.inputs.samples, self.phase.start_monotonic_s, self.phase.end_monotonic_s)
        )
        for metric, phase in (("mkfs_s", "prepare"), ("cluster_s", "prepare"), ("load_s", "load")):
            yield step_figure(self.inputs.visit, metric, phase=phase)
        yield figure("duration_s", self.window.duration_s)
        yield from size_figures(self.inputs.record)

    def _evidence(self, course: pl.DataFrame) -> PgbenchEvidence:
        inputs, log, summary = self.inputs, self.inputs.measure_log, self.inputs.summary
        reads_per_s, reads_trend = _reads(course)
        memory = inputs.visit.cell.device.memory_bytes
        return PgbenchEvidence(
            **shared_evidence(
                inputs, self.window.duration_s, windows=self.windows, complaints=self._complaints()
            ),
            read_only=self._read_only,
            canary=inputs.visit.key.canary,
            asked_duration_s=number(self.inputs.record, "duration_s_asked"),
            client_cpu_s=number(self.inputs.record, "measure_client_cpu_s"),
            client_threads=self._threads,
            cpu_count=integer(self.inputs.record, "cpu_count") or self._threads,
            tps_trend=None if log is None else trend_share(tps_of_seconds(log, self.window)),
            reads_per_transaction_trend=reads_trend,
            device_reads_per_s=reads_per_s,
            database_bytes=integer(self.inputs.record, "database_bytes"),
            memory_bytes=memory if memory is not None else integer(self.inputs.record, "memory_bytes"),
            asked_times_memory=_times_memory(inputs.record.facts.get("scale_asked")),
            log_complete=None if log is None else log.complete,
            log_damage=self._log_damage(),
            transactions_in_log=None if log is None else transaction_count(log),
            transactions_by_pgbench=None if summary is None else summary.transactions,
            transactions_failed=None if log is None else outcome_count(log),
            transactions_outside_window=self._outside_window(),
            phase_s=self.phase.end_monotonic_s - self.phase.start_monotonic_s,
            pgbench_s=_pgbench_s(inputs),
            clients=integer(inputs.record, "clients"),
            rate_limited="rate_tps" in inputs.record.facts,
            idle_cpu_share=idle_cpu_share_of(inputs.record),
            two_speeds=None if log is None else two_speeds(tps_of_seconds(log, self.window)),
        )

    def _complaints(self) -> tuple[Complaint, ...]:
        if self.inputs.server_log is None:
            return ()
        start_s = (self.warmup or self.phase).start_wall_s
        return complaints_between(self.inputs.server_log, start_s, self.phase.end_wall_s)

    def _outside_window(self) -> int | None:
        log = self.inputs.measure_log
        if log is None:
            return None
        # The second in which the phase began and the one in which it ended belong to it.
        inside = log.select(first_second=int(self.phase.start_wall_s), last_second=int(self.phase.end_wall_s))
        return transaction_count(log) - transaction_count(inside)

    def _log_damage(self) -> str | None:
        log = self.inputs.measure_log
        if log is None or log.trailer is None:
            return None
        wrong = log.trailer.malformed_lines + log.trailer.truncated_lines
        if not wrong:
            return None
        return f"{wrong} lines of the transaction log were not understood, the first: {log.trailer.first_malformed!r}"

    def _stretches(self) -> tuple[Stretch, ...]:
        found = [Stretch("measure", self.window, self.inputs.measure_log)]
        if self.warmup is not None:
            window = MeasuredWindow(
                self.warmup.start_wall_s, self.warmup.start_wall_s + (_length_s(self.warmup) or 0.0)
            )
            found.insert(0, Stretch("warmup", window, self.inputs.warmup_log))
        return tuple(found)

    def _warmup_tps(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        stretch = self._stretches()[0]
        if stretch.phase != "warmup" or stretch.log is None:
            return np.zeros(0)
        return tps_of_seconds(stretch.log, stretch.window)

    def _divisors(self) -> Divisors:
        log = self.inputs.measure_log
        return Divisors(
            transactions=None if log is None else transaction_count(log),
            duration_s=self.window.duration_s,
            client_cpu_s=number(self.inputs.record, "measure_client_cpu_s"),
            client_threads=self._threads,
            block_size_bytes=self._block_size_bytes,
            client_sleeps=number(self.inputs.record, "measure_client_sleeps"),
        )

    @cached_property
    def _scripts(self) -> tuple[RunScript, ...]:
        return scripts_of(self.inputs.record.spec.levels)

    @cached_property
    def _read_only(self) -> bool:
        """Whether the run only read: by the names of its scripts, or own ones by what they did to the WAL."""
        writing = writes(self._scripts)
        if writing is not None:
            return not writing
        log, deltas = self.inputs.measure_log, deltas_of(self.inputs.record)
        if log is None or deltas is None:
            return False
        try:
            grown_bytes = deltas.growth("postgresql.wal_bytes")
        except Absent:
            return False
        return grown_bytes < WAL_RECORD_BYTES_MIN * transaction_count(log)

    @property
    def _threads(self) -> int:
        return integer(self.inputs.record, "jobs") or 1

    @property
    def _block_size_bytes(self) -> int | None:
        return integer(self.inputs.record, "block_size_bytes")


def _reads(course: pl.DataFrame) -> tuple[float | None, float | None]:
    """Device reads a second, and the trend of reads per transaction, over the measured seconds."""
    measured = course.filter(course["phase"] == "measure")
    reads = measured["device_reads_per_s"].to_numpy().astype(np.float64)
    tps = measured["tps"].to_numpy().astype(np.float64)
    if np.isnan(reads).all():
        return None, None
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(tps > 0, reads / tps, np.nan)
    return float(np.nanmean(reads)), trend_share(each)


def _pgbench_s(inputs: PgbenchInputs) -> float | None:
    summary = inputs.summary
    if summary is None or summary.duration_s is None:
        return None
    return summary.duration_s + (summary.initial_connection_ms or 0.0) / 1000


def _times_memory(scale_asked: object) -> float | None:
    """4.0 of `4x memory`; None for a scale in units."""
    found = _TIMES_MEMORY.fullmatch(scale_asked) if isinstance(scale_asked, str) else None
    return float(found[1]) if found else None


def _length_s(phase: Phase | None) -> float | None:
    return None if phase is None else phase.end_monotonic_s - phase.start_monotonic_s


FIGURES: FigureMaker = PgbenchFigures()
