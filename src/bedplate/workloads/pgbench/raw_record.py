"""The raw record of a pgbench run, read: what every run has, its transaction logs, and what pgbench says at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.figures.inputs import COURSE, Attempts, RunInputs, read_inputs
from bedplate.figures.latency_log import LatencyLog, read_latency_log
from bedplate.figures.window import MeasuredWindow
from bedplate.workloads.pgbench.output import PgbenchSummary, parse_summary

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.visit import Phase, RunRecord

WARMUP_LOG = "warmup.bin"
MEASURE_LOG = "measure.bin"
# Raw and bulky: everything in them is in the figures and the Parquet files.
BULKY = (COURSE, WARMUP_LOG, MEASURE_LOG)


@dataclass(frozen=True, kw_only=True)
class PgbenchInputs(RunInputs):
    """Everything that its figures are made from."""

    warmup_log: LatencyLog | None
    measure_log: LatencyLog | None
    summary: PgbenchSummary | None


def read_pgbench_inputs(visit_directory: Path, run_directory: Path, record: RunRecord) -> PgbenchInputs:
    """As `read_inputs`."""
    inputs = read_inputs(visit_directory, run_directory, record)
    attempts = Attempts(inputs.problems)
    phases = {phase.name for phase in record.phases}

    def log(phase: str, name: str) -> LatencyLog | None:
        return attempts.read(lambda: read_latency_log(run_directory / name)) if phase in phases else None

    def summary() -> PgbenchSummary:
        output, errors = (
            (run_directory / "logs" / name).read_text(encoding="utf-8", errors="replace")
            for name in ("pgbench.out", "pgbench.err")
        )
        return parse_summary(output, errors)

    own = {
        "warmup_log": log("warmup", WARMUP_LOG),
        "measure_log": log("measure", MEASURE_LOG),
        "summary": attempts.read(summary) if "measure" in phases else None,
    }
    return PgbenchInputs(**{**vars(inputs), **own, "problems": tuple(attempts.problems)})


def measured_window(phase: Phase, summary: PgbenchSummary | None) -> MeasuredWindow:
    """The window in which transactions ran.

    The phase also holds pgbench's start, its connecting, and the reading of the log's tail. pgbench
    knows better: it ran for transactions / tps after its connections stood. That is taken where it
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
