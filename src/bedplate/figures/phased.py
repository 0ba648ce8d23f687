"""A run of several phases, placed on one clock: its window, its course, the frame of its `run.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from bedplate.errors import BedplateError
from bedplate.figures.counters import (
    Absent,
    Deltas,
    cpu_s_per_gib,
    gauge_figures,
    machine_figures_without_server,
    part_figures_without_server,
)
from bedplate.figures.courses import TRANSACTIONS_ENDED, Stretch, make_course
from bedplate.figures.run import Made, run_figures
from bedplate.figures.samples import COURSE, MeasuredWindow, RunInputs, joined, read_inputs, values_between
from bedplate.figures.validity import not_completed, unmeasured
from bedplate.model.course import COURSE_FILE
from bedplate.model.figure import Figure, RunFigures, Window
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Outcome, Phase, RunRecord, Sample, Validity
from bedplate.units import KERNEL_SECTOR_BYTES


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
        judgement: tuple[Validity, tuple[Reason, ...]],
        windows: tuple[Window, ...] = (),
    ) -> RunFigures:
        """`run.json` around what was made of it."""
        window = self.window
        return run_figures(
            self.inputs.record,
            judgement,
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


if TYPE_CHECKING:
    Parsed = TypeVar("Parsed")

NOTHING_MOVED = because("nothing-moved", "nothing was moved")


def parsed_output(
    run_directory: Path, name: str, parse: Callable[[str, str], Parsed]
) -> tuple[Parsed | None, tuple[str, ...]]:
    """What the tool printed (`logs/<name>.out` and `.err`), or why it cannot be read."""
    try:
        output, errors = (
            (run_directory / "logs" / f"{name}{suffix}").read_text(encoding="utf-8", errors="replace")
            for suffix in (".out", ".err")
        )
        return parse(output, errors), ()
    except BedplateError as error:
        return None, error.reasons
    except OSError as error:
        return None, (f"{error.filename} cannot be read: {error.strerror}",)


def phase_figures(record: RunRecord, phase: str) -> Iterator[Figure]:
    """The length of a phase, and its counters."""
    yield figure(
        "phase_s",
        phase_seconds(record).get(phase),
        phase=phase,
        reason=no_phase(phase),
    )
    yield from part_figures_without_server(phase_deltas(record, phase), phase=phase)


def per_gib(metric: str, cpu_s: Callable[[], float], size_bytes: float, *, phase: str = "measure") -> Figure:
    """A figure of CPU seconds per GiB; absent where the counter is, and where nothing was moved."""
    value, reason = None, NOTHING_MOVED
    try:
        value = cpu_s_per_gib(cpu_s(), size_bytes)
    except Absent as error:
        reason = error.reason
    return figure(metric, value, phase=phase, reason=reason)


def group_cpu_s(deltas: Deltas) -> float:
    """CPU seconds of the visit's group, in which the tool ran; Absent where nothing counted them."""
    return deltas.growth("server.cpu_s")


def device_bytes(record: RunRecord, phase: str, counter: str) -> float | None:
    """Bytes that the data device gave (`read_sectors`) or took (`written_sectors`) in a phase; None is not known."""
    try:
        return phase_deltas(record, phase).growth(f"device.{counter}") * KERNEL_SECTOR_BYTES
    except Absent:
        return None
