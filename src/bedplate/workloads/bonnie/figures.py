"""The figures of a run of bonnie++: of each stage, and of the run."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from bedplate.figures.counters import Deltas, busy_cpu_s
from bedplate.figures.evidence import shared_evidence
from bedplate.figures.facts import deltas_of, free_space_figures, integer, no_fact, number, step_figure
from bedplate.figures.phased import PhasedFigures, PhasedRun, phase_deltas, phase_seconds
from bedplate.figures.protocol import Made
from bedplate.figures.tool_parts import device_bytes, group_cpu_s, parsed_output, per_gib, phase_figures
from bedplate.figures.tool_validity import Moved
from bedplate.model.course import COURSE_FILE
from bedplate.model.metrics import figure
from bedplate.model.reason import because
from bedplate.workloads.bonnie.output import FILE_STAGES, parse_result
from bedplate.workloads.bonnie.validity import VALIDITY, BonnieEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bedplate.figures.inputs import RunInputs
    from bedplate.figures.protocol import FigureMaker
    from bedplate.model.figure import Figure, RunFigures
    from bedplate.workloads.bonnie.output import BonnieResult, StageFigures

_BYTE_STAGES = ("putc", "getc")
# They go through the whole file, so that the device must give what the memory cannot hold.
_READING_STAGES = ("rewrite", "get_block")
_SEEKS = "seeks"
_NO_LATENCY = because("below-a-microsecond", "no operation took a microsecond, which is bonnie++'s finest")
_NO_STAGE = because("no-stage-told", "bonnie++ named no stage")


class BonnieFigures(PhasedFigures):
    """Makes the figures of runs whose workload is `bonnie`."""

    def of_completed(self, inputs: RunInputs, run_directory: Path) -> Made:
        """Of its stages."""
        result, problems = parsed_output(run_directory, "bonnie", parse_result)
        measured = _Measured(replace(inputs, problems=(*inputs.problems, *problems)))
        return Made(measured.whole(result), {COURSE_FILE: measured.course(None)})


class _Measured(PhasedRun):
    """One run that came to its end."""

    def whole(self, result: BonnieResult | None) -> RunFigures:
        """`run.json`; without a result the counters alone."""
        stages = () if result is None else result.stages
        return self.run_figures(self._figures(stages), VALIDITY.judge(self._evidence()))

    def _figures(self, stages: tuple[StageFigures, ...]) -> Iterator[Figure]:
        record = self.inputs.record
        told = {stage.stage: stage for stage in stages}
        seconds = phase_seconds(record)
        for phase in [each.name for each in record.phases]:
            yield from phase_figures(record, phase)
            if phase in told:
                yield from self._stage_figures(told[phase])
        of_stages = [seconds[stage] for stage in told if stage in seconds]
        yield figure("stages_total_s", sum(of_stages) if of_stages else None, reason=_NO_STAGE)
        yield figure("tool_cpu_s", number(record, "tool_cpu_s"), reason=no_fact("tool_cpu_s"))
        yield step_figure(self.inputs.visit, "mkfs_s")
        yield from free_space_figures(self.inputs.visit.free_space)
        deltas = deltas_of(record) or Deltas({}, {}, 0.0)
        yield from self.figures_without_server(deltas, self.first, self.last)

    def _stage_figures(self, stage: StageFigures) -> Iterator[Figure]:
        phase = stage.stage
        if stage.unit == "KiB/s":
            bytes_per_s = stage.bytes_per_s
            yield figure(
                "throughput_mib_per_s",
                None if bytes_per_s is None else bytes_per_s / 2**20,
                phase=phase,
                reason=stage.rate_reason,
            )
            deltas = phase_deltas(self.inputs.record, phase)
            moved = self._moved_bytes(phase)
            yield per_gib("cpu_s_per_gib", lambda: group_cpu_s(deltas), moved, phase=phase)
            yield per_gib("machine_cpu_s_per_gib", lambda: busy_cpu_s(deltas), moved, phase=phase)
        else:
            yield figure("operations_per_s", stage.rate, phase=phase, reason=stage.rate_reason)
        share = None if stage.cpu_percent is None else stage.cpu_percent / 100
        yield figure("tool_cpu_share", share, phase=phase, reason=stage.cpu_reason)
        yield figure("latency_ms_max", stage.latency_ms_max, phase=phase, reason=_NO_LATENCY)

    def _moved_bytes(self, stage: str) -> float:
        if stage in _BYTE_STAGES:
            return self.inputs.record.spec.levels.integer("per_character_bytes") or 0
        return self._file_bytes or 0 if stage in FILE_STAGES else 0

    def _evidence(self) -> BonnieEvidence:
        inputs, record = self.inputs, self.inputs.record
        canary = inputs.visit.key.canary
        return BonnieEvidence(
            **shared_evidence(inputs, self.window.duration_s),
            canary=canary,
            file_bytes=self._file_bytes,
            memory_bytes=integer(record, "memory_bytes"),
            reads=() if canary else tuple(self._reads()),
        )

    def _reads(self) -> Iterator[Moved]:
        record = self.inputs.record
        phases = phase_seconds(record)
        for stage in _READING_STAGES:
            if stage in phases:
                yield Moved(stage, self._file_bytes or 0, device_bytes(record, stage, "read_sectors"))
        chunk = record.spec.levels.integer("chunk_bytes")
        seeks = integer(record, "seeks")
        if _SEEKS in phases and chunk is not None and seeks is not None:
            yield Moved(_SEEKS, chunk * seeks, device_bytes(record, _SEEKS, "read_sectors"))

    @cached_property
    def _file_bytes(self) -> int | None:
        return integer(self.inputs.record, "file_bytes")


FIGURES: FigureMaker = BonnieFigures()
