"""What bonnie++ says of a run: its CSV line, of the format 1.98 that 2.00 prints.

The positions are those of the source (`DoReportIO` and `DoReportFile` of bon_time.cpp of 2.00a), which
its own header line misses: the header leaves out the number of seeks and of seekers, the line leaves
the chunk size empty whatever it was, and has the number of directories one field later than the header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bedplate.errors import OutputNotUnderstood
from bedplate.model.reason import Reason, because
from bedplate.units import GIB, KIB, MIB

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


def _optional(fields: list[str], place: int, what: str) -> int | None:
    return None if fields[place] == "" else _count(fields, place, what)


def _count(fields: list[str], place: int, what: str) -> int:
    if not _WHOLE.fullmatch(fields[place]):
        raise _misfit(what, fields)
    return int(fields[place])


def _misfit(expected: str, fields: list[str]) -> OutputNotUnderstood:
    return OutputNotUnderstood(_TOOL, expected=expected, found=",".join(fields))
