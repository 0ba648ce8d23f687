"""That a study measures pairs until it can tell: `paired.json`, what it asks, beside its plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec, no_links

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.study.layout import StudyLayout
    from bedplate.study.records import StudySchedule

PAIRED_VERSION = 1


@dataclass(frozen=True)
class PairedCells:
    """Two cells that differ in the change alone."""

    baseline: str
    """id of the cell without the change"""
    contender: str
    """id of the cell with it"""


@dataclass(frozen=True)
class PairedRecord:
    """`paired.json`: what a study of pairs asks. Frozen when the study is made; the budget and the accepted doubts alone may grow."""

    version: int
    """1"""
    baseline: str
    """what the side without the change is called, as it was typed"""
    contender: str
    """what the side with the change is called"""
    pairs: tuple[PairedCells, ...]
    """the pairs of each block"""
    budget_s: float
    """seconds of visits that it may take"""
    margin: float
    """what counts as the same: 0.05 is 5 %"""
    wrong: float
    """the chance that any interval misses at any look: 0.05"""
    workload: str | None = None
    """the run that is compared; null for all"""
    metrics: tuple[str, ...] = ()
    """the metrics that are compared; empty for what each run is about"""
    accepted: tuple[str, ...] = ()
    """doubts for which no run is left out"""
    condition: str | None = None
    """the condition that ends it, as `--fail-if` has it; null where the intervals alone do"""


@dataclass(frozen=True)
class PairedStep:
    """What follows in a study of pairs: another block, or nothing where `is_last`. `words` say where the study is."""

    words: str
    is_last: bool


def read_paired(layout: StudyLayout, schedule: StudySchedule) -> PairedRecord | None:
    """What a study of pairs asks; None of any other. StudyError names what does not fit."""
    if not no_links.is_there(layout.paired):
        return None
    found = codec.read(PairedRecord, layout.paired)
    if found.version != PAIRED_VERSION:
        raise StudyError(
            f"{layout.paired} has format {found.version}, this bedplate knows {PAIRED_VERSION}; "
            "read it with the version that wrote it"
        )
    if wrong := tuple(dict.fromkeys(_wrong(found, schedule))):
        raise StudyError(*(f"{layout.paired} is damaged: {words}" for words in wrong))
    return found


def _wrong(found: PairedRecord, schedule: StudySchedule) -> Iterator[str]:
    if not found.pairs:
        yield "it has no pair"
    for pair in found.pairs:
        for cell in (pair.baseline, pair.contender):
            if cell not in schedule.cells:
                yield f"it names the cell {cell!r:.200}, which the schedule does not have"
        if pair.baseline == pair.contender:
            yield f"it pairs {pair.baseline!r:.200} with itself"
    if not found.budget_s > 0 or not 0 < found.margin < 1 or not 0 < found.wrong < 1:
        yield f"its budget is {found.budget_s} s, its margin {found.margin}, its chance to miss {found.wrong}"
