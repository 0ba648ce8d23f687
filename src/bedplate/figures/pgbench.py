"""The figures of a pgbench run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bedplate.figures.checkpoint_windows import checkpoint_figures, checkpoint_windows, complaints_between
from bedplate.figures.counters import Absent, Deltas, Divisors, counter_figures, gauge_figures, steal_share
from bedplate.figures.courses import Stretch, make_course, make_latencies
from bedplate.figures.evidence import Evidence
from bedplate.figures.inputs import BULKY, RunInputs, read_inputs
from bedplate.figures.protocol import Made
from bedplate.figures.samples import clock_step_s
from bedplate.figures.steadiness import trend_share
from bedplate.figures.transactions import (
    outcome_count,
    steadiness_figures,
    tps_of_seconds,
    transaction_count,
    transaction_figures,
)
from bedplate.figures.validity import judge
from bedplate.figures.window import MeasuredWindow, measured_window, phase_named
from bedplate.model.course import COURSE_FILE, LATENCY_FILE
from bedplate.model.figure import RunFigures
from bedplate.model.metrics import figure
from bedplate.model.visit import FORMAT_VERSION, Outcome, Validity
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import polars as pl

    from bedplate.figures.server_log import Complaint
    from bedplate.model.figure import Figure, Window
    from bedplate.model.visit import Phase

_READ_ONLY = "read-only"
_DEFAULT_BLOCK_BYTES = 8192
_TIMES_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x\s*memory\s*")


class PgbenchFigures:
    """Makes the figures of runs whose workload is `pgbench`."""

    bulky: tuple[str, ...] = BULKY

    def make(self, visit_directory: Path, run_directory: Path) -> Made:
        """Read the raw record of a run and make everything of it."""
        inputs = read_inputs(visit_directory, run_directory)
        measure = phase_named(inputs.record.phases, "measure")
        if measure is None:
            return Made(_unmeasured(inputs), {})
        return _Measured.of(inputs, measure).made()


def _unmeasured(inputs: RunInputs) -> RunFigures:
    """A run that did not come to its measurement has reasons and no figures."""
    record = inputs.record
    warmup = phase_named(record.phases, "warmup")
    return RunFigures(
        format_version=FORMAT_VERSION,
        run=record.spec.name,
        run_id=record.spec.id,
        workload=record.spec.workload,
        outcome=record.outcome,
        reasons=record.reasons,
        validity=Validity.UNKNOWN,
        validity_reasons=("nothing was measured", *inputs.problems),
        measure_start_wall_s=None,
        warmup_s=_length_s(warmup),
        duration_s=None,
    )


@dataclass(frozen=True)
class _Measured:
    """One run that was measured, its inputs placed on one clock."""

    inputs: RunInputs
    phase: Phase
    warmup: Phase | None
    window: MeasuredWindow
    windows: tuple[Window, ...] | None

    @classmethod
    def of(cls, inputs: RunInputs, phase: Phase) -> _Measured:
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
            validity, reasons = judge(self._evidence(course))
            figures = tuple(self._figures())
        else:
            # What an unfinished run counted would be read as its speed.
            validity, reasons, figures = (
                Validity.UNKNOWN,
                ("the run did not complete", *self.inputs.problems),
                (),
            )
        return RunFigures(
            format_version=FORMAT_VERSION,
            run=record.spec.name,
            run_id=record.spec.id,
            workload=record.spec.workload,
            outcome=record.outcome,
            reasons=record.reasons,
            validity=validity,
            validity_reasons=reasons,
            measure_start_wall_s=self.window.start_wall_s,
            warmup_s=_length_s(self.warmup),
            duration_s=self.window.duration_s,
            figures=figures,
            windows=self.windows or (),
        )

    def _figures(self) -> Iterator[Figure]:
        log = self.inputs.measure_log
        yield from transaction_figures(
            log, self.window, read_only=self._read_only, rate_limited="rate_tps" in self.inputs.record.facts
        )
        yield from steadiness_figures(log, self.window, self.windows, self._warmup_tps())
        yield from checkpoint_figures(self.windows, self.window.duration_s)
        # Without the two readings every counter is missing, and every figure says so.
        yield from counter_figures(self._deltas() or Deltas({}, {}, 0.0), self._divisors())
        yield from gauge_figures(self._measured_samples())
        yield from self._sizes_and_times()

    def _sizes_and_times(self) -> Iterator[Figure]:
        seconds: dict[str, float] = {}
        for timing in self.inputs.visit.timings:
            seconds[timing.step] = seconds.get(timing.step, 0.0) + timing.seconds
        for metric, phase, steps in (
            ("mkfs_s", "prepare", ("mkfs",)),
            ("cluster_s", "prepare", ("initdb", "server start")),
            ("load_s", "load", ("load",)),
        ):
            found = [seconds[step] for step in steps if step in seconds]
            reason = f"the visit did not time {' and '.join(steps)}"
            yield figure(metric, sum(found) if len(found) == len(steps) else None, phase=phase, reason=reason)
        yield figure("duration_s", self.window.duration_s)
        for metric, name in (("database_mib", "database_bytes"), ("wal_mib", "wal_bytes_on_disk")):
            size = self._number(name)
            yield figure(metric, None if size is None else size / MIB, reason=f"the record has no {name}")

    def _evidence(self, course: pl.DataFrame) -> Evidence:
        inputs, log, summary = self.inputs, self.inputs.measure_log, self.inputs.summary
        deltas = self._deltas()
        reads_per_s, reads_trend = _reads(course)
        memory = inputs.visit.cell.device.memory_bytes
        return Evidence(
            read_only=self._read_only,
            canary=inputs.visit.key.canary,
            duration_s=self.window.duration_s,
            asked_duration_s=self._number("duration_s_asked"),
            windows=self.windows,
            complaints=self._complaints(),
            client_cpu_s=self._number("measure_client_cpu_s"),
            client_threads=self._threads,
            cpu_count=self._integer("cpu_count") or self._threads,
            tps_trend=None if log is None else trend_share(tps_of_seconds(log, self.window)),
            reads_per_transaction_trend=reads_trend,
            device_reads_per_s=reads_per_s,
            database_bytes=self._integer("database_bytes"),
            memory_bytes=memory if memory is not None else self._integer("memory_bytes"),
            asked_times_memory=_times_memory(inputs.record.facts.get("scale_asked")),
            kernel_messages=inputs.visit.kernel_messages,
            log_complete=None if log is None else log.complete,
            log_damage=self._log_damage(),
            transactions_in_log=None if log is None else transaction_count(log),
            transactions_by_pgbench=None if summary is None else summary.transactions,
            transactions_failed=None if log is None else outcome_count(log),
            transactions_outside_window=self._outside_window(),
            phase_s=self.phase.end_monotonic_s - self.phase.start_monotonic_s,
            pgbench_s=_pgbench_s(inputs),
            clock_step_s=clock_step_s(inputs.samples),
            steal_share=_steal_share(deltas),
            course_problem=_text(inputs.record.facts.get("course_problem")),
            problems=inputs.problems,
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

    def _deltas(self) -> Deltas | None:
        record = self.inputs.record
        if record.before is None or record.after is None:
            return None
        return Deltas.between(record.before, record.after)

    def _divisors(self) -> Divisors:
        log = self.inputs.measure_log
        return Divisors(
            transactions=None if log is None else transaction_count(log),
            duration_s=self.window.duration_s,
            client_cpu_s=self._number("measure_client_cpu_s"),
            client_threads=self._threads,
            block_size_bytes=self._block_size_bytes,
        )

    def _measured_samples(self) -> tuple[Mapping[str, float], ...]:
        samples = self.inputs.samples
        inside = (samples.monotonic_s >= self.phase.start_monotonic_s) & (
            samples.monotonic_s <= self.phase.end_monotonic_s
        )
        return tuple(
            {name: float(values[i]) for name, values in samples.values.items() if not np.isnan(values[i])}
            for i in np.flatnonzero(inside)
        )

    @property
    def _read_only(self) -> bool:
        return self.inputs.record.facts.get("script") == _READ_ONLY

    @property
    def _threads(self) -> int:
        return self._integer("jobs") or 1

    @property
    def _block_size_bytes(self) -> int | None:
        return self._integer("block_size_bytes")

    def _number(self, name: str) -> float | None:
        value = self.inputs.record.facts.get(name)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def _integer(self, name: str) -> int | None:
        value = self._number(name)
        return None if value is None else int(value)


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


def _pgbench_s(inputs: RunInputs) -> float | None:
    summary = inputs.summary
    if summary is None or summary.duration_s is None:
        return None
    return summary.duration_s + (summary.initial_connection_ms or 0.0) / 1000


def _steal_share(deltas: Deltas | None) -> float | None:
    try:
        return None if deltas is None else steal_share(deltas)
    except Absent:
        return None


def _times_memory(scale_asked: object) -> float | None:
    """4.0 of `4x memory`; None for a scale in units."""
    found = _TIMES_MEMORY.fullmatch(scale_asked) if isinstance(scale_asked, str) else None
    return float(found[1]) if found else None


def _length_s(phase: Phase | None) -> float | None:
    return None if phase is None else phase.end_monotonic_s - phase.start_monotonic_s


def _text(value: object) -> str | None:
    return None if value is None else str(value)
