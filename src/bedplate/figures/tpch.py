"""The figures of a TPC-H run: of its load, of one pass over the queries, or of several streams at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bedplate.figures.checkpoint_windows import checkpoint_windows, complaints_between
from bedplate.figures.counters import Deltas, gauge_figures, machine_figures, part_figures
from bedplate.figures.courses import Stretch, make_course
from bedplate.figures.evidence import TpchEvidence
from bedplate.figures.facts import deltas_of, integer, steal_share_of, text
from bedplate.figures.inputs import COURSE, RunInputs, read_inputs
from bedplate.figures.protocol import Made
from bedplate.figures.rule import judge
from bedplate.figures.samples import clock_step_s, joined, values_between
from bedplate.figures.tpch_parts import load_figures, missing_parts, power_figures, throughput_figures
from bedplate.figures.tpch_validity import TPCH_RULES
from bedplate.figures.unfinished import not_completed, unmeasured
from bedplate.figures.window import MeasuredWindow
from bedplate.model.course import COURSE_FILE
from bedplate.model.figure import RunFigures, Window
from bedplate.model.tpch import COLD, LOAD, POWER, THROUGHPUT
from bedplate.model.visit import FORMAT_VERSION, Outcome, Phase, Sample
from bedplate.units import KERNEL_SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from bedplate.figures.server_log import Complaint
    from bedplate.model.figure import Figure

_DEVICE_READS = "device.read_sectors"


class TpchFigures:
    """Makes the figures of runs whose workload is `tpch`."""

    bulky: tuple[str, ...] = (COURSE,)

    def make(self, visit_directory: Path, run_directory: Path) -> Made:
        """Read the raw record of a run and make everything of it."""
        inputs = read_inputs(visit_directory, run_directory)
        if not inputs.record.phases:
            return Made(unmeasured(inputs), {})
        return _Measured(inputs).made()


@dataclass(frozen=True)
class _Measured:
    """One run of which something was measured, placed on one clock.

    That clock is the monotonic one, with the wall clock as it stood when the first phase began: a step of
    the wall clock in between moves no phase.
    """

    inputs: RunInputs

    def made(self) -> Made:
        return Made(self._run_figures(), {COURSE_FILE: self._course()})

    def _run_figures(self) -> RunFigures:
        record = self.inputs.record
        figures: tuple[Figure, ...] = ()
        if record.outcome is Outcome.COMPLETED:
            validity, reasons = judge(self._evidence(), TPCH_RULES)
            figures = tuple(self._figures())
        else:
            validity, reasons = not_completed(self.inputs)
        return RunFigures(
            format_version=FORMAT_VERSION,
            run=record.spec.name,
            run_id=record.spec.id,
            workload=record.spec.workload,
            outcome=record.outcome,
            reasons=record.reasons,
            validity=validity,
            validity_reasons=reasons,
            measure_start_wall_s=self._window.start_wall_s,
            warmup_s=None,
            duration_s=self._window.duration_s,
            figures=figures,
            windows=self._checkpoints or (),
        )

    def _figures(self) -> Iterator[Figure]:
        record, visit = self.inputs.record, self.inputs.visit
        kind = record.spec.levels.text("kind")
        if kind == LOAD:
            yield from load_figures(record, visit)
        elif kind == POWER:
            yield from power_figures(record, visit.dataset, pass_=self._pass)
        elif kind == THROUGHPUT:
            yield from throughput_figures(record, visit.dataset)
        # Without the two readings every counter is missing, and every figure says so.
        deltas = deltas_of(record) or Deltas({}, {}, 0.0)
        yield from part_figures(deltas, pass_=self._pass)
        yield from machine_figures(deltas, self._block_size_bytes, pass_=self._pass)
        samples = values_between(
            self.inputs.samples, self._first.start_monotonic_s, self._last.end_monotonic_s
        )
        yield from gauge_figures(samples, pass_=self._pass)

    def _course(self) -> pl.DataFrame:
        record = self.inputs.record
        # Readings at the ends of phases tell seconds apart in which short queries began and ended.
        ends = [end for counters in record.phase_counters for end in (counters.before, counters.after)]
        samples = joined(self.inputs.samples, ends)
        stretches = tuple(Stretch(phase.name, self._window_of(phase), None) for phase in record.phases)
        return make_course(stretches, self._window, self._first, samples, self._block_size_bytes)

    def _evidence(self) -> TpchEvidence:
        inputs, record = self.inputs, self.inputs.record
        return TpchEvidence(
            duration_s=self._window.duration_s,
            windows=self._checkpoints,
            complaints=self._complaints(),
            kernel_messages=inputs.visit.kernel_messages,
            clock_step_s=clock_step_s(inputs.samples),
            steal_share=steal_share_of(record),
            course_problem=text(record, "course_problem"),
            problems=inputs.problems,
            cold=record.spec.levels.text("pass") == COLD,
            made_cold=record.facts.get("made_cold") is True,
            read_bytes=_read_bytes(record.before, record.after),
            database_bytes=integer(record, "database_bytes"),
            stopped=sum(item.limit_s is not None for item in record.items),
            missing=missing_parts(record),
        )

    def _complaints(self) -> tuple[Complaint, ...]:
        if self.inputs.server_log is None:
            return ()
        return complaints_between(self.inputs.server_log, self._window.start_wall_s, self._window.end_wall_s)

    @cached_property
    def _checkpoints(self) -> tuple[Window, ...] | None:
        log = self.inputs.server_log
        if log is None:
            return None
        return checkpoint_windows(log, self._window.start_wall_s, 0.0, self._window.duration_s)

    @property
    def _first(self) -> Phase:
        return self.inputs.record.phases[0]

    @property
    def _last(self) -> Phase:
        return self.inputs.record.phases[-1]

    @property
    def _window(self) -> MeasuredWindow:
        """From the start of the first phase to the end of the last."""
        return MeasuredWindow(
            self._wall_s(self._first.start_monotonic_s), self._wall_s(self._last.end_monotonic_s)
        )

    def _window_of(self, phase: Phase) -> MeasuredWindow:
        return MeasuredWindow(self._wall_s(phase.start_monotonic_s), self._wall_s(phase.end_monotonic_s))

    def _wall_s(self, monotonic_s: float) -> float:
        return self._first.start_wall_s + (monotonic_s - self._first.start_monotonic_s)

    @property
    def _pass(self) -> int:
        return self.inputs.record.spec.levels.integer("pass_number") or 1

    @property
    def _block_size_bytes(self) -> int:
        found = integer(self.inputs.record, "block_size_bytes")
        return found if found is not None else self.inputs.visit.cell.build.block_size_bytes


def _read_bytes(before: Sample | None, after: Sample | None) -> float | None:
    """What the data device gave over the run; None where its counter was not read at both ends."""
    if before is None or after is None:
        return None
    ends = before.values.get(_DEVICE_READS), after.values.get(_DEVICE_READS)
    if ends[0] is None or ends[1] is None:
        return None
    return max(0.0, ends[1] - ends[0]) * KERNEL_SECTOR_BYTES
