"""Whether a completed run of bonnie++ may be believed."""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.figures.rule import Rule, RunRules
from bedplate.figures.tool_validity import CACHE_ANSWERED, ToolEvidence
from bedplate.figures.validity import OF_EVERY_TIMED_RUN
from bedplate.units import format_size

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
