"""A run of several phases, placed on one clock: its window, its course, the frame of its `run.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.figures.counters import (
    Deltas,
    gauge_figures,
    machine_figures_without_server,
    part_figures_without_server,
)
from bedplate.figures.courses import TRANSACTIONS_ENDED, Stretch, make_course
from bedplate.figures.inputs import COURSE, read_inputs
from bedplate.figures.protocol import Made, run_figures
from bedplate.figures.samples import joined, values_between
from bedplate.figures.unfinished import not_completed, unmeasured
from bedplate.figures.window import MeasuredWindow
from bedplate.model.course import COURSE_FILE
from bedplate.model.reason import because
from bedplate.model.visit import Outcome, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import polars as pl

    from bedplate.figures.inputs import RunInputs
    from bedplate.model.figure import Figure, RunFigures, Window
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Phase, RunRecord, Validity


@dataclass(frozen=True)
class PhasedRun:
    """One run of which something was measured: its record has a phase.

    Its clock is the monotonic one, with the wall clock as it stood when the first phase began: a step of
    the wall clock in between moves no phase.
    """

    inputs: RunInputs

    def run_figures(
        self,
        figures: Iterable[Figure],
        verdict: tuple[Validity, tuple[Reason, ...]],
        windows: tuple[Window, ...] = (),
    ) -> RunFigures:
        """`run.json` around what was made of it."""
        window = self.window
        return run_figures(
            self.inputs.record,
            verdict,
            figures,
            start_wall_s=window.start_wall_s,
            duration_s=window.duration_s,
            windows=windows,
        )

    def course(
        self, block_size_bytes: int | None, transactions: Iterable[tuple[float, int]] = ()
    ) -> pl.DataFrame:
        """One row for each second of its phases; `block_size_bytes` is the engine's, where it has one.

        `transactions` are moments of the monotonic clock and how many had ended then, of a run that has no log of them.
        """
        record = self.inputs.record
        # Readings at the ends of phases tell seconds apart in which short ones began and ended.
        ends = [end for counters in record.phase_counters for end in (counters.before, counters.after)]
        told = [
            Sample(at_s, self._wall_s(at_s), "", {TRANSACTIONS_ENDED: count}) for at_s, count in transactions
        ]
        samples = joined(self.inputs.samples, [*ends, *told])
        stretches = tuple(Stretch(phase.name, self.window_of(phase), None) for phase in record.phases)
        return make_course(stretches, self.window, self.first, samples, block_size_bytes)

    def figures_without_server(
        self, deltas: Deltas, first: Phase, last: Phase, *, pass_: int = 1
    ) -> Iterator[Figure]:
        """What counters and samples say of a stretch of phases in which no server ran."""
        yield from part_figures_without_server(deltas, pass_=pass_)
        yield from machine_figures_without_server(deltas, pass_=pass_)
        samples = values_between(self.inputs.samples, first.start_monotonic_s, last.end_monotonic_s)
        yield from gauge_figures(samples, pass_=pass_)

    @property
    def first(self) -> Phase:
        """Its first phase."""
        return self.inputs.record.phases[0]

    @property
    def last(self) -> Phase:
        """Its last phase."""
        return self.inputs.record.phases[-1]

    @property
    def window(self) -> MeasuredWindow:
        """From the start of the first phase to the end of the last."""
        return MeasuredWindow(
            self._wall_s(self.first.start_monotonic_s), self._wall_s(self.last.end_monotonic_s)
        )

    def window_of(self, phase: Phase) -> MeasuredWindow:
        """One of its phases."""
        return MeasuredWindow(self._wall_s(phase.start_monotonic_s), self._wall_s(phase.end_monotonic_s))

    def _wall_s(self, monotonic_s: float) -> float:
        return self.first.start_wall_s + (monotonic_s - self.first.start_monotonic_s)


class PhasedFigures:
    """Makes the figures of runs of phases; a workload's own says how, once something was measured."""

    bulky: tuple[str, ...] = (COURSE,)

    def make(self, visit_directory: Path, run_directory: Path, record: RunRecord) -> Made:
        """Read the raw record of a run and make everything of it."""
        inputs = read_inputs(visit_directory, run_directory, record)
        if not inputs.record.phases:
            return Made(unmeasured(inputs), {})
        return self.of_phases(inputs, run_directory)

    def of_phases(self, inputs: RunInputs, run_directory: Path) -> Made:
        """Of a run that has a phase: `run.json`, and its course. One that failed has no figures."""
        run = PhasedRun(inputs)
        if inputs.record.outcome is Outcome.COMPLETED:
            return self.of_completed(inputs, run_directory)
        return Made(run.run_figures((), not_completed(inputs)), {COURSE_FILE: run.course(None)})

    def of_completed(self, inputs: RunInputs, run_directory: Path) -> Made:
        """Of a run that came to its end."""
        raise NotImplementedError


def phase_seconds(record: RunRecord) -> Mapping[str, float]:
    """The length of each phase by its name; of two of one name the first."""
    return {phase.name: phase.end_monotonic_s - phase.start_monotonic_s for phase in reversed(record.phases)}


def no_phase(phase: str) -> Reason:
    """Why a figure of a phase is absent that the run did not come to."""
    return because("phase-missing", f"the phase {phase!r} is not in the record", phase=phase)


def phase_deltas(record: RunRecord, phase: str) -> Deltas:
    """Growth of the counters over a phase; of nothing where it was not read at both ends."""
    for counters in record.phase_counters:
        if counters.phase == phase:
            return Deltas.between(counters.before, counters.after)
    return Deltas({}, {}, 0.0)
