"""The verdicts of power cuts on the page: rows that stand there before its script runs, and what the script draws."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from bedplate.model.power_cut_verdict import FINDINGS, OK, Tally
from bedplate.report.courses import rounded
from bedplate.report.power_cut_view import bound_words, disagreement, told_apart
from bedplate.report.recording_words import recording_words
from bedplate.report.wording import number
from bedplate.statistics.proportions import proportion
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.report.overview import CellFacts, Overview
    from bedplate.report.power_cut_view import CutRun


@dataclass(frozen=True)
class CutRow:
    """One recording; `index` is its cell's on the page. Tallies are the share in words, then a line per finding."""

    index: int
    cell: str
    aside: str
    volatile: tuple[str, ...]
    protected: tuple[str, ...]
    lost: str
    recovery: str
    window: str
    verdict: str
    verdict_class: str
    notes: tuple[str, ...]


def power_cut_rows(overviews: Sequence[Overview]) -> tuple[CutRow, ...]:
    """A row for each recording of every study, in the order of the cells."""
    return tuple(_row(index, cell, run) for index, cell, run in _runs(overviews))


def power_cut_document(overviews: Sequence[Overview]) -> list[dict[str, Any]] | None:
    """What is drawn of each recording: shares of bad cuts with their intervals, what was lost, recovery; None without any.

    `volatile` and `protected` are [bad, cuts, low, high], None where nothing was cut so.
    """
    found = [
        {
            "cell": index,
            "name": ", ".join(told_apart(run, cell.cuts)),
            "volatile": _share(run.verdict.volatile),
            "protected": _share(run.verdict.protected),
            "classes": [None, None] if run.verdict.refused else list(run.classes),
            "refused": list(run.verdict.refused),
            "lost": sorted(run.lost_transactions),
            "recovery_s": [rounded(seconds) for seconds in sorted(run.recovery_s)],
        }
        for index, cell, run in _runs(overviews)
    ]
    return found or None


def _runs(overviews: Sequence[Overview]) -> Iterator[tuple[int, CellFacts, CutRun]]:
    cells = (cell for found in overviews for cell in found.cells.values())
    for index, cell in enumerate(cells):
        for run in cell.cuts:
            yield index, cell, run


def _row(index: int, cell: CellFacts, run: CutRun) -> CutRow:
    verdict = run.verdict
    lost, ms = verdict.loss.transactions_max, verdict.loss.ms_max
    again = run.recovery_s
    classes = dict.fromkeys(run.classes)
    words = "refused" if verdict.refused else " / ".join(classes)
    return CutRow(
        index=index,
        cell=cell.label.full,
        aside=", ".join(told_apart(run, cell.cuts)),
        volatile=_tally(verdict.volatile),
        protected=_tally(verdict.protected),
        lost="–" if lost is None else f"{lost:,}{f'; {number(ms)} ms' if ms is not None else ''}",
        recovery=f"{median(again):.2f}, at most {max(again):.2f}" if again else "–",
        window=format_size(verdict.window_bytes),
        verdict=words,
        verdict_class="unknown" if verdict.refused else words.split(maxsplit=1)[0],
        notes=tuple(_notes(run)),
    )


def _notes(run: CutRun) -> Iterator[str]:
    yield from (f"refused: {reason}" for reason in run.verdict.refused)
    differs = disagreement(run.declared, run.measured)
    if differs:
        yield differs
    if run.verdict.image_bytes is not None and not run.verdict.lacks_metadata_room:
        yield f"recorded on a disk of {format_size(run.verdict.image_bytes)}"
    yield from recording_words(run)
    if not run.verdict.of_the_cell:
        yield "the journal in RAM was kept, as if it stood on a device of its own"
    if run.verdict.journal_lost:
        yield "the journal stood in memory and was gone after each cut"
    if run.verdict.idle:
        yield f"nothing waited for a flush at {run.verdict.idle} of {run.verdict.volatile.cuts} cuts with a volatile cache"
    controls = run.verdict.controls
    yield f"controls: {controls.bad} of {controls.cuts} bad"


def _tally(tally: Tally) -> tuple[str, ...]:
    if not tally.cuts:
        return ("–",)
    found = (f"{tally.of(name)} {name}" for name in reversed(FINDINGS) if name != OK and tally.of(name))
    return (bound_words(tally), *found)


def _share(tally: Tally) -> list[float] | None:
    if not tally.cuts:
        return None
    interval = proportion(tally.bad, tally.cuts)
    return [tally.bad, tally.cuts, round(interval.low, 5), round(interval.high, 5)]
