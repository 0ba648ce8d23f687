"""Whether a run of a tool measured the device, or a cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.figures.evidence import RunEvidence
from bedplate.figures.rule import Rule
from bedplate.units import format_size, percent

if TYPE_CHECKING:
    from collections.abc import Iterable

# Compression by the file system may divide what is read by three, hardly by ten.
READ_SHARE_MIN = 0.1


@dataclass(frozen=True)
class Moved:
    """What a part of a run asked to read or write, and what the device gave or took meanwhile; None is not known."""

    what: str
    asked_bytes: float
    device_bytes: float | None


@dataclass(frozen=True, kw_only=True)
class ToolEvidence(RunEvidence):
    """Of a run of such a tool: `reads` are what it must have read from the device."""

    reads: tuple[Moved, ...]


def below(moves: Iterable[Moved], share: float) -> Iterable[tuple[Moved, float]]:
    """What the device gave or took less of than this share, with the bytes of the device."""
    for moved in moves:
        if moved.device_bytes is not None and moved.device_bytes < share * moved.asked_bytes:
            yield moved, moved.device_bytes


def _not_from_the_device(evidence: ToolEvidence) -> str | None:
    found = [
        f"{moved.what} read {format_size(moved.asked_bytes)}, and the device gave {format_size(given)}"
        for moved, given in below(evidence.reads, READ_SHARE_MIN)
    ]
    return f"the cache answered: {'; '.join(found)}" if found else None


CACHE_ANSWERED: Rule[ToolEvidence] = Rule(
    "cache answered",
    f"the device gave less than {percent(READ_SHARE_MIN)} of the bytes that a job, or a stage that rewrites, reads or seeks, "
    "read (canaries on a file that fits the memory apart)",
    "what comes from memory tells nothing of the file system; the limit is a convention of bedplate",
    _not_from_the_device,
)
