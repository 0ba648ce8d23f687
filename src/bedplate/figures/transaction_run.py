"""A run of transactions: its raw record, its window, and the figures that every client of this kind has.

The client logs its transactions, `drivers/pgbench_log.c` condenses them, and a summary of the client's own stands beside:
the figures come from the log, and are held against the summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from bedplate.figures.checkpoint_windows import checkpoint_figures, checkpoint_windows, complaints_between
from bedplate.figures.counters import Deltas, Divisors, counter_figures, gauge_figures
from bedplate.figures.courses import Stretch, make_course, make_latencies
from bedplate.figures.evidence import shared_evidence
from bedplate.figures.facts import (
    deltas_of,
    free_space_figures,
    idle_cpu_share_of,
    integer,
    number,
    size_figures,
    step_figure,
)
from bedplate.figures.inputs import COURSE, Attempts, RunInputs, read_inputs
from bedplate.figures.latency_log import LatencyLog, read_latency_log
from bedplate.figures.protocol import Made, run_figures
from bedplate.figures.samples import values_between
from bedplate.figures.server_counters import server_counters_of
from bedplate.figures.server_log import server_log_of
from bedplate.figures.steadiness import trend_share, two_speeds
from bedplate.figures.transactions import (
    outcome_count,
    steadiness_figures,
    tps_of_seconds,
    transaction_count,
    transaction_figures,
)
from bedplate.figures.unfinished import not_completed, unmeasured
from bedplate.figures.window import MeasuredWindow, phase_named
from bedplate.model.course import COURSE_FILE, LATENCY_FILE
from bedplate.model.metrics import figure
from bedplate.model.visit import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    import polars as pl

    from bedplate.figures.server_counters import ServerCounters
    from bedplate.figures.server_log import Complaint
    from bedplate.model.figure import Figure, RunFigures, Window
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Phase, RunRecord, Validity

WARMUP_LOG = "warmup.bin"
MEASURE_LOG = "measure.bin"
# Raw and bulky: everything in them is in the figures and the Parquet files.
BULKY = (COURSE, WARMUP_LOG, MEASURE_LOG)
_DEFAULT_BLOCK_BYTES = 8192


class ClientSummary(Protocol):
    """What a client itself says of its run when it ends; `duration_s` begins when its connections stand."""

    @property
    def transactions(self) -> int:
        """Transactions that it counted."""
        ...

    @property
    def duration_s(self) -> float | None:
        """Seconds in which transactions ran; None where it does not say."""
        ...

    @property
    def initial_connection_ms(self) -> float | None:
        """What connecting took before; None where that is not known."""
        ...


@dataclass(frozen=True, kw_only=True)
class TransactionInputs(RunInputs):
    """Everything that its figures are made from."""

    warmup_log: LatencyLog | None
    measure_log: LatencyLog | None
    summary: ClientSummary | None


class TransactionFigures:
    """Makes the figures of runs as the `measured` of their workload; `parse` reads the summary in a folder of the client's outputs."""

    bulky: tuple[str, ...] = BULKY

    def __init__(self, measured: type[TransactionRun], parse: Callable[[Path], ClientSummary]) -> None:
        self._measured, self._parse = measured, parse

    def make(self, visit_directory: Path, run_directory: Path, record: RunRecord) -> Made:
        """Read the raw record of a run and make everything of it."""
        inputs = read_inputs(visit_directory, run_directory, record)
        attempts = Attempts(inputs.problems)
        phases = {phase.name for phase in record.phases}

        def log(phase: str, name: str) -> LatencyLog | None:
            return attempts.read(lambda: read_latency_log(run_directory / name)) if phase in phases else None

        own = {
            "warmup_log": log("warmup", WARMUP_LOG),
            "measure_log": log("measure", MEASURE_LOG),
            "summary": attempts.read(lambda: self._parse(run_directory / "logs"))
            if "measure" in phases
            else None,
        }
        all_of_it = TransactionInputs(**{**vars(inputs), **own, "problems": tuple(attempts.problems)})
        return self._measured.figures_of(all_of_it)


def measured_window(phase: Phase, summary: ClientSummary | None) -> MeasuredWindow:
    """The window in which transactions ran.

    The phase also holds the client's start, its connecting, and the reading of the log's tail. The client
    knows better how long it ran after its connections stood. That is taken where it
    fits into the phase, else the whole phase. The length is of the monotonic clock either way, so
    that a stepped wall clock cannot stretch it.
    """
    length_s = phase.end_monotonic_s - phase.start_monotonic_s
    ran_s = summary.duration_s if summary is not None else None
    if ran_s is None or not 0 < ran_s <= length_s:
        return MeasuredWindow(phase.start_wall_s, phase.start_wall_s + length_s)
    connecting_ms = (summary.initial_connection_ms or 0.0) if summary is not None else 0.0
    start_s = phase.start_wall_s + min(connecting_ms / 1000, length_s - ran_s)
    return MeasuredWindow(start_s, start_s + ran_s)


@dataclass(frozen=True)
class TransactionRun:
    """One run that was measured, its inputs placed on one clock. `threads_fact` names how many threads the client has."""

    inputs: TransactionInputs
    phase: Phase
    warmup: Phase | None
    window: MeasuredWindow
    windows: tuple[Window, ...] | None

    threads_fact: ClassVar[str]

    @classmethod
    def figures_of(cls, inputs: TransactionInputs) -> Made:
        """Everything of a run; of one that did not come so far the reasons."""
        measure = phase_named(inputs.record.phases, "measure")
        if measure is None:
            warmup_s = _length_s(phase_named(inputs.record.phases, "warmup"))
            return Made(unmeasured(inputs, warmup_s=warmup_s), {})
        return cls._of(inputs, measure)._made()  # noqa: SLF001 -- its own

    def read_only(self) -> bool:
        """Whether the run only read."""
        raise NotImplementedError

    def part_figures(self) -> Iterator[Figure]:
        """Those of parts of the run; none where it has none."""
        return iter(())

    def verdict(self, course: pl.DataFrame) -> tuple[Validity, tuple[Reason, ...]]:
        """Whether it may be believed, by the rules of its workload."""
        raise NotImplementedError

    @classmethod
    def _of(cls, inputs: TransactionInputs, phase: Phase) -> Self:
        warmup = phase_named(inputs.record.phases, "warmup")
        window = measured_window(phase, inputs.summary)
        # Without a server there are no checkpoints; one whose log cannot be read may have had some.
        windows: tuple[Window, ...] | None = None if server_log_of(inputs.visit.cell.build.engine) else ()
        if inputs.server_log is not None:
            from_s = 0.0 if warmup is None else warmup.start_wall_s - window.start_wall_s
            windows = checkpoint_windows(inputs.server_log, window.start_wall_s, from_s, window.duration_s)
        return cls(inputs, phase, warmup, window, windows)

    def _made(self) -> Made:
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
            verdict, figures = self.verdict(course), tuple(self._figures())
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
            log, self.window, read_only=self._only_reads, rate_limited="rate_tps" in self.inputs.record.facts
        )
        yield from self.part_figures()
        yield from steadiness_figures(log, self.window, self.windows, self._warmup_tps())
        if self._server is None:
            # Others' checkpoints are fuzzy, and cannot be counted.
            yield from checkpoint_figures(self.windows, self.window.duration_s)
        # Without the two readings every counter is missing, and every figure says so.
        deltas = deltas_of(self.inputs.record) or Deltas({}, {}, 0.0)
        yield from counter_figures(deltas, self._divisors(), self._server)
        yield from gauge_figures(self._measured)
        for metric, phase in (("mkfs_s", "prepare"), ("cluster_s", "prepare"), ("load_s", "load")):
            yield step_figure(self.inputs.visit, metric, phase=phase)
        yield figure("duration_s", self.window.duration_s)
        yield from size_figures(self.inputs.record)
        yield from free_space_figures(self.inputs.visit.free_space)

    def shared_evidence(self, course: pl.DataFrame) -> dict[str, Any]:
        """The fields of TransactionEvidence by name."""
        inputs, log, summary = self.inputs, self.inputs.measure_log, self.inputs.summary
        reads_per_s, reads_trend = _reads(course)
        return {
            **shared_evidence(
                inputs, self.window.duration_s, windows=self.windows, complaints=self._complaints()
            ),
            "read_only": self._only_reads,
            "canary": inputs.visit.key.canary,
            "asked_duration_s": number(inputs.record, "duration_s_asked"),
            "client_cpu_s": number(inputs.record, "measure_client_cpu_s"),
            "client_threads": self._threads,
            "cpu_count": integer(inputs.record, "cpu_count") or self._threads,
            "tps_trend": None if log is None else trend_share(tps_of_seconds(log, self.window)),
            "reads_per_transaction_trend": reads_trend,
            "device_reads_per_s": reads_per_s,
            "log_complete": None if log is None else log.complete,
            "log_damage": self._log_damage(),
            "transactions_in_log": None if log is None else transaction_count(log),
            "transactions_by_client": None if summary is None else summary.transactions,
            "transactions_failed": None if log is None else outcome_count(log),
            "transactions_outside_window": self._outside_window(),
            "phase_s": self.phase.end_monotonic_s - self.phase.start_monotonic_s,
            "client_s": _client_s(summary),
            "clients": integer(inputs.record, "clients"),
            "rate_limited": "rate_tps" in inputs.record.facts,
            "idle_cpu_share": idle_cpu_share_of(inputs.record),
            "fuzzy": None
            if self._server is None
            else self._server.fuzzy(deltas_of(inputs.record), self._measured),
            "two_speeds": None if log is None else two_speeds(tps_of_seconds(log, self.window)),
        }

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
    def _server(self) -> ServerCounters | None:
        return server_counters_of(self.inputs.visit.cell.build.engine)

    @cached_property
    def _measured(self) -> tuple[Mapping[str, float], ...]:
        """The samples of the measured window."""
        return values_between(self.inputs.samples, self.phase.start_monotonic_s, self.phase.end_monotonic_s)

    @cached_property
    def _only_reads(self) -> bool:
        return self.read_only()

    @property
    def _threads(self) -> int:
        return integer(self.inputs.record, self.threads_fact) or 1

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


def _client_s(summary: ClientSummary | None) -> float | None:
    if summary is None or summary.duration_s is None:
        return None
    return summary.duration_s + (summary.initial_connection_ms or 0.0) / 1000


def _length_s(phase: Phase | None) -> float | None:
    return None if phase is None else phase.end_monotonic_s - phase.start_monotonic_s
