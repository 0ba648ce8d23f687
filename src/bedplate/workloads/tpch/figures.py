"""The figures of a TPC-H run: of its load, of one pass over the queries, or of several streams at once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bedplate.figures.checkpoint_windows import checkpoint_windows, complaints_between
from bedplate.figures.counters import Deltas, gauge_figures, machine_figures, part_figures
from bedplate.figures.evidence import shared_evidence
from bedplate.figures.facts import deltas_of, integer
from bedplate.figures.phased import PhasedFigures, PhasedRun
from bedplate.figures.protocol import Made
from bedplate.figures.samples import values_between
from bedplate.figures.unfinished import not_completed
from bedplate.model.course import COURSE_FILE
from bedplate.model.visit import Outcome, Sample
from bedplate.model.workload import COLD
from bedplate.units import KERNEL_SECTOR_BYTES
from bedplate.workloads.tpch.model import LOAD, POWER, THROUGHPUT
from bedplate.workloads.tpch.parts import load_figures, missing_parts, power_figures, throughput_figures
from bedplate.workloads.tpch.validity import VALIDITY, TpchEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bedplate.figures.inputs import RunInputs
    from bedplate.figures.protocol import FigureMaker
    from bedplate.figures.server_log import Complaint
    from bedplate.model.figure import Figure, RunFigures, Window

_DEVICE_READS = "device.read_sectors"


class TpchFigures(PhasedFigures):
    """Makes the figures of runs whose workload is `tpch`."""

    def of_phases(self, inputs: RunInputs, run_directory: Path) -> Made:  # noqa: ARG002 -- all is in the record
        """With the checkpoints, of one that failed too."""
        measured = _Measured(inputs)
        return Made(measured.whole(), {COURSE_FILE: measured.course(measured.block_size_bytes)})


class _Measured(PhasedRun):
    """One run of which something was measured."""

    def whole(self) -> RunFigures:
        if self.inputs.record.outcome is Outcome.COMPLETED:
            verdict = VALIDITY.judge(self._evidence())
            return self.run_figures(self._figures(), verdict, self._checkpoints or ())
        return self.run_figures((), not_completed(self.inputs), self._checkpoints or ())

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
        yield from machine_figures(deltas, self.block_size_bytes, pass_=self._pass)
        samples = values_between(self.inputs.samples, self.first.start_monotonic_s, self.last.end_monotonic_s)
        yield from gauge_figures(samples, pass_=self._pass)

    def _evidence(self) -> TpchEvidence:
        inputs, record = self.inputs, self.inputs.record
        return TpchEvidence(
            **shared_evidence(
                inputs, self.window.duration_s, windows=self._checkpoints, complaints=self._complaints()
            ),
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
        return complaints_between(self.inputs.server_log, self.window.start_wall_s, self.window.end_wall_s)

    @cached_property
    def _checkpoints(self) -> tuple[Window, ...] | None:
        log = self.inputs.server_log
        if log is None:
            return None
        return checkpoint_windows(log, self.window.start_wall_s, 0.0, self.window.duration_s)

    @property
    def _pass(self) -> int:
        return self.inputs.record.spec.levels.integer("pass_number") or 1

    @property
    def block_size_bytes(self) -> int:
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


FIGURES: FigureMaker = TpchFigures()
