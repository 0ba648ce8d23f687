"""The figures of a run of bonnie++: of each stage, and of the run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.counters import Deltas, busy_cpu_s
from bedplate.figures.facts import deltas_of, free_space_figures, integer, no_fact, number, step_figure
from bedplate.figures.phased import (
    PhasedFigures,
    PhasedRun,
    device_bytes,
    group_cpu_s,
    parsed_output,
    per_gib,
    phase_deltas,
    phase_figures,
    phase_seconds,
)
from bedplate.figures.run import FigureMaker, Made
from bedplate.figures.samples import RunInputs, shared_evidence
from bedplate.figures.validity import CACHE_ANSWERED, OF_EVERY_TIMED_RUN, Moved, ToolEvidence
from bedplate.model.course import COURSE_FILE
from bedplate.model.figure import Figure, RunFigures
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.model.rules import Rule, RunRules
from bedplate.units import GIB, KIB, MIB, format_size

_TOOL = "bonnie++"
_FORMAT = "1.98"
_VERSIONS = re.compile(r"2\.00[a-z]?")
_FIELDS = 50

FILE_STAGES = ("putc", "put_block", "rewrite", "getc", "get_block", "seeks")
SMALL_FILE_STAGES = ("seq_create", "seq_stat", "seq_del", "ran_create", "ran_stat", "ran_del")
STAGES = (*FILE_STAGES, *SMALL_FILE_STAGES)

# Where a stage has its rate; its CPU follows. Latencies come last, in the order of the stages.
_RATE_AT = {
    **{stage: 9 + 2 * number for number, stage in enumerate(FILE_STAGES)},
    **{stage: 26 + 2 * number for number, stage in enumerate(SMALL_FILE_STAGES)},
}

_LATENCY_AT = {stage: 38 + number for number, stage in enumerate(STAGES)}
_NUMBER = re.compile(r"\d{1,10}(\.\d)?", re.ASCII)
_WHOLE = re.compile(r"\d{1,10}", re.ASCII)
_LATENCY = re.compile(r"(\d{1,9})(us|ms|s)", re.ASCII)
_LATENCY_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_SIZE = re.compile(r"(\d{1,10})([MG])", re.ASCII)
_NOT_RUN = because("not-asked-for", "the stage was not asked for")

_TOO_SHORT = because(
    "stage-too-short", "not measurable: the stage took less than 0.5 s, and bonnie++ gives no rate for it"
)

_BELOW_ONE = because(
    "rate-below-one", "not measurable: less than one in a second, and bonnie++ gives whole numbers"
)


@dataclass(frozen=True)
class StageFigures:
    """One stage: its rate, the CPU it took, and the longest of its operations.

    `rate` is in `unit`: KiB/s for the stages that move a file's bytes, 1/s for seeks and small files.
    A file rewritten counts once, though each of its bytes is read and written. `cpu_percent` is of one
    CPU, and cut to whole percent by bonnie++. `latency_ms_max` has its last digits cut too: whole µs under
    100 ms, whole ms under 100 s; None where no operation reached a microsecond. Any other None has its
    reason beside it.
    """

    stage: str
    unit: str
    rate: float | None
    rate_reason: Reason | None
    cpu_percent: float | None
    cpu_reason: Reason | None
    latency_ms_max: float | None

    @property
    def bytes_per_s(self) -> float | None:
        """The rate of a stage that moves a file's bytes; None for the others, and where it has no rate."""
        return self.rate * KIB if self.rate is not None and self.unit == "KiB/s" else None


@dataclass(frozen=True)
class BonnieResult:
    """One run: what bonnie++ says it did, and every stage, those that were not run too.

    `file_size_bytes`, `seeks` and `seekers` are None without the file stages, `files` without the small files.
    """

    version: str
    seed: int
    file_size_bytes: int | None
    seeks: int | None
    seekers: int | None
    files: int | None
    stages: tuple[StageFigures, ...]

    def stage(self, name: str) -> StageFigures:
        """The stage of that name; KeyError where bonnie++ has none."""
        for figures in self.stages:
            if figures.stage == name:
                return figures
        raise KeyError(name)


def parse_result(output: str, errors: str = "") -> BonnieResult:
    """The run in bonnie++'s standard output, one CSV line; `errors` is its standard error.

    OutputNotUnderstood where there is no line, more than one, another version's, or a field that is
    not what its place asks for. Where bonnie++ failed, its own words are quoted.
    """
    lines = [line for line in output.splitlines() if line]
    if not lines:
        raise OutputNotUnderstood(
            _TOOL, expected="a CSV line", found=errors.strip() or "(it printed nothing)"
        )
    if len(lines) != 1:
        raise OutputNotUnderstood(_TOOL, expected="one CSV line", found=output)
    fields = lines[0].split(",")
    if len(fields) != _FIELDS or fields[0] != _FORMAT or not _VERSIONS.fullmatch(fields[1]):
        raise OutputNotUnderstood(
            _TOOL, expected=f"{_FIELDS} fields of format {_FORMAT}, of version 2.00", found=lines[0]
        )
    seekers = _optional(fields, 8, "the number of seekers")
    files = _optional(fields, 21, "the number of files")
    return BonnieResult(
        version=fields[1],
        seed=_count(fields, 4, "a seed"),
        file_size_bytes=_file_size(fields),
        seeks=_optional(fields, 7, "the number of seeks"),
        seekers=seekers,
        files=None if files is None else files * 1024,
        stages=tuple(_stage(fields, stage, seekers) for stage in STAGES),
    )


def _stage(fields: list[str], stage: str, seekers: int | None) -> StageFigures:
    rate_text, cpu_text = fields[_RATE_AT[stage]], fields[_RATE_AT[stage] + 1]
    # bonnie++ writes all of them for the same cause, so one alone is no output of it.
    if (rate_text == "+++++") != (cpu_text == "+++") or (rate_text == "") != (cpu_text == ""):
        raise _misfit(f"a rate and a CPU share of {stage} that are both given or both left out", fields)
    rate, rate_reason = _rate(fields, stage)
    cpu_percent, cpu_reason = _cpu(fields, stage, seekers)
    return StageFigures(
        stage=stage,
        unit="KiB/s" if stage in FILE_STAGES and stage != "seeks" else "1/s",
        rate=rate,
        rate_reason=rate_reason,
        cpu_percent=cpu_percent,
        cpu_reason=cpu_reason,
        latency_ms_max=_latency_ms(fields, stage),
    )


def _rate(fields: list[str], stage: str) -> tuple[float | None, Reason | None]:
    text = fields[_RATE_AT[stage]]
    if text == "":
        return None, _NOT_RUN
    if text == "+++++":
        return None, _TOO_SHORT
    # Only seeks under 1000 have a decimal.
    if not (_NUMBER if stage == "seeks" else _WHOLE).fullmatch(text):
        raise _misfit(f"the rate of {stage}", fields)
    rate = float(text)
    return (rate, None) if rate > 0 else (None, _BELOW_ONE)


def _cpu(fields: list[str], stage: str, seekers: int | None) -> tuple[float | None, Reason | None]:
    text = fields[_RATE_AT[stage] + 1]
    if text == "":
        return None, _NOT_RUN
    if text == "+++":
        return None, _TOO_SHORT
    if not _WHOLE.fullmatch(text):
        raise _misfit(f"the CPU share of {stage}", fields)
    if stage == "seeks" and seekers != 1:
        # Each seeker is a thread that reports getrusage(RUSAGE_SELF), the CPU of the whole process, and
        # bonnie++ adds the reports up (bon_io.cpp, action; thread.cpp, go).
        words = f"bonnie++ counts its CPU once for each of {seekers} seekers, and says {text} %"
        return None, because("cpu-counted-by-seekers", words, seekers=seekers)
    return float(text), None


def _latency_ms(fields: list[str], stage: str) -> float | None:
    text = fields[_LATENCY_AT[stage]]
    if text == "":
        return None
    found = _LATENCY.fullmatch(text)
    if found is None:
        raise _misfit(f"the latency of {stage}, in us, ms or s", fields)
    if fields[_RATE_AT[stage]] == "":
        raise _misfit(f"no latency of {stage}, which was not run", fields)
    # Its clock counts whole microseconds: `0us` says that it was too coarse, not that nothing took time.
    return int(found[1]) * _LATENCY_MS[found[2]] or None


def _file_size(fields: list[str]) -> int | None:
    if fields[5] == "":
        return None
    found = _SIZE.fullmatch(fields[5])
    if found is None:
        raise _misfit("the size of the file in M or G", fields)
    return int(found[1]) * {"M": MIB, "G": GIB}[found[2]]


def _optional(fields: list[str], place: int, expected: str) -> int | None:
    return None if fields[place] == "" else _count(fields, place, expected)


def _count(fields: list[str], place: int, expected: str) -> int:
    if not _WHOLE.fullmatch(fields[place]):
        raise _misfit(expected, fields)
    return int(fields[place])


def _misfit(expected: str, fields: list[str]) -> OutputNotUnderstood:
    return OutputNotUnderstood(_TOOL, expected=expected, found=",".join(fields))


TIMES_MEMORY_MIN = 2


@dataclass(frozen=True, kw_only=True)
class BonnieEvidence(ToolEvidence):
    """Of a run of bonnie++: `reads` are those of the stages that must read its file."""

    canary: bool
    file_bytes: int | None
    memory_bytes: int | None


def _file_fits(evidence: BonnieEvidence) -> str | None:
    file, memory = evidence.file_bytes, evidence.memory_bytes
    if evidence.canary or not file or memory is None or file >= TIMES_MEMORY_MIN * memory:
        return None
    return (
        f"the file of {format_size(file)} is smaller than {TIMES_MEMORY_MIN} x the memory of {format_size(memory)}: "
        "the cache may have answered"
    )


VALIDITY: RunRules[BonnieEvidence] = RunRules(
    "bonnie++",
    (
        CACHE_ANSWERED,
        Rule(
            "file fits in the cache",
            f"bonnie++'s file is smaller than {TIMES_MEMORY_MIN} x the memory (canaries apart)",
            "bonnie++(8), “-s”: twice the memory",
            _file_fits,
        ),
        *OF_EVERY_TIMED_RUN,
    ),
)

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
        return Made(measured.all_figures(result), {COURSE_FILE: measured.course(None)})


class _Measured(PhasedRun):
    """One run that came to its end."""

    def all_figures(self, result: BonnieResult | None) -> RunFigures:
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

    def _stage_figures(self, stage_figures: StageFigures) -> Iterator[Figure]:
        phase = stage_figures.stage
        if stage_figures.unit == "KiB/s":
            bytes_per_s = stage_figures.bytes_per_s
            yield figure(
                "throughput_mib_per_s",
                None if bytes_per_s is None else bytes_per_s / 2**20,
                phase=phase,
                reason=stage_figures.rate_reason,
            )
            deltas = phase_deltas(self.inputs.record, phase)
            moved = self._moved_bytes(phase)
            yield per_gib("cpu_s_per_gib", lambda: group_cpu_s(deltas), moved, phase=phase)
            yield per_gib("machine_cpu_s_per_gib", lambda: busy_cpu_s(deltas), moved, phase=phase)
        else:
            yield figure(
                "operations_per_s", stage_figures.rate, phase=phase, reason=stage_figures.rate_reason
            )
        share = None if stage_figures.cpu_percent is None else stage_figures.cpu_percent / 100
        yield figure("tool_cpu_share", share, phase=phase, reason=stage_figures.cpu_reason)
        yield figure("latency_ms_max", stage_figures.latency_ms_max, phase=phase, reason=_NO_LATENCY)

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
