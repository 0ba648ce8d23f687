"""Whether a completed run of bonnie++ or fio may be believed: whether it measured the device, or a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.rule import Rule
from bedplate.figures.validity import (
    CLOCK_STEPPED,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
    INPUT_UNREADABLE,
    KERNEL_WARNING,
    OTHERS_AT_WORK,
    THROTTLED_MACHINE,
)
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.figures.evidence import BonnieEvidence, FioEvidence, Moved

# Compression by the file system may divide what is read by three, hardly by ten.
READ_SHARE_MIN = 0.1
# What the kernel holds back at the end was never written at the speed that the tool states.
WRITTEN_SHARE_MIN = 0.5
TIMES_MEMORY_MIN = 2


def _not_from_the_device(evidence: BonnieEvidence | FioEvidence) -> str | None:
    found = [
        f"{moved.what} read {format_size(moved.asked_bytes)}, and the device gave {format_size(moved.device_bytes)}"
        for moved in _below(evidence.reads, READ_SHARE_MIN)
        if moved.device_bytes is not None
    ]
    return f"the cache answered: {'; '.join(found)}" if found else None


def _not_on_the_device(evidence: FioEvidence) -> str | None:
    found = [
        f"{moved.what} wrote {format_size(moved.asked_bytes)}, of which the device had "
        f"{format_size(moved.device_bytes)} when it ended"
        for moved in _below(evidence.writes, WRITTEN_SHARE_MIN)
        if moved.device_bytes is not None
    ]
    return f"the cache took the writes: {'; '.join(found)}" if found else None


def _below(moves: Iterable[Moved], share: float) -> list[Moved]:
    return [
        moved
        for moved in moves
        if moved.device_bytes is not None and moved.device_bytes < share * moved.asked_bytes
    ]


def _file_fits(evidence: BonnieEvidence) -> str | None:
    file, memory = evidence.file_bytes, evidence.memory_bytes
    if evidence.canary or not file or memory is None or file >= TIMES_MEMORY_MIN * memory:
        return None
    return (
        f"the file of {format_size(file)} is smaller than {TIMES_MEMORY_MIN} x the memory of {format_size(memory)}: "
        "the cache may have answered"
    )


def _not_steady(evidence: FioEvidence) -> str | None:
    if evidence.steady_state_missed is None:
        return None
    return f"no steady state: the criterion {evidence.steady_state_missed} was not met before the runtime was over"


CACHE_ANSWERED: Rule[BonnieEvidence | FioEvidence] = Rule(
    "cache answered",
    f"the device gave less than {READ_SHARE_MIN:.0%} of the bytes that a job, or bonnie++'s rewriting, reading or seeking, "
    "read (bonnie++'s canaries apart)",
    "what comes from memory tells nothing of the file system; the limit is a convention of bedplate",
    _not_from_the_device,
)

BONNIE_RULES: tuple[Rule[BonnieEvidence], ...] = (
    CACHE_ANSWERED,
    Rule(
        "file fits in the cache",
        f"bonnie++'s file is smaller than {TIMES_MEMORY_MIN} x the memory (canaries apart)",
        "bonnie++(8), “-s”: twice the memory",
        _file_fits,
    ),
    KERNEL_WARNING,
    CLOCK_STEPPED,
    THROTTLED_MACHINE,
    OTHERS_AT_WORK,
    INPUT_UNREADABLE,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
)

FIO_RULES: tuple[Rule[FioEvidence], ...] = (
    CACHE_ANSWERED,
    Rule(
        "cache took the writes",
        f"when a job ended that writes through the page cache, the device had less than {WRITTEN_SHARE_MIN:.0%} of "
        "its bytes",
        "the kernel writes later, and the job's time ends before; the limit is a convention of bedplate",
        _not_on_the_device,
    ),
    Rule(
        "no steady state",
        "the job asks for a steady state, and fio's criterion was not met",
        "SNIA, “Solid State Storage Performance Test Specification”: figures of a drive that still settles are transient",
        _not_steady,
    ),
    KERNEL_WARNING,
    CLOCK_STEPPED,
    THROTTLED_MACHINE,
    OTHERS_AT_WORK,
    INPUT_UNREADABLE,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
)
