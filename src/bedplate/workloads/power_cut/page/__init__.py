"""The verdicts of power cuts on the page: rows that stand there before its script runs, and what the script draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bedplate.analysis.overview import CellFacts, Overview
from bedplate.analysis.wording import device_sectors, number_words, recording_words, rounded
from bedplate.cuts.points import FINDINGS, OK, CutCounts
from bedplate.cuts.records import DEVICE_UNIT, IN_FLIGHT
from bedplate.cuts.runs import CutRun, bound_words, disagreement, recovery_words, told_apart
from bedplate.model.device_cache import (
    CACHE_WORDS,
    CACHES,
    PROTECTED,
    VOLATILE_4K,
    VOLATILE_512,
    sectors_told,
)
from bedplate.model.reason import sentences
from bedplate.page.static import WorkloadPage
from bedplate.statistics.comparison import proportion
from bedplate.study.power_cut_stories import stories_of
from bedplate.units import format_size

_STORIES_MOST = 40


@dataclass(frozen=True)
class CacheRow:
    """The cuts with one kind of cache: `drawn` is the share in words, then a line per finding, those in recovery last; `sought` alike, empty without any.

    `fits` marks the volatile cache with the sectors that the cell's own device has.
    """

    words: str
    fits: bool
    drawn: tuple[str, ...]
    sought: tuple[str, ...]
    verdict: str
    verdict_class: str


@dataclass(frozen=True)
class CutRow:
    """One recording; `index` is its cell's on the page. `caches` are those that were cut, those of its device marked.

    `lost_within` and `recovery_most` are empty where there is no such figure.
    """

    index: int
    cell: str
    aside: str
    caches: tuple[CacheRow, ...]
    lost: str
    lost_within: str
    recovery: str
    recovery_most: str
    window: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class StoryRow:
    """Why cuts of one recording were bad, five lines each; `more` are those that are left to `power-cut points`."""

    index: int
    cell: str
    aside: str
    stories: tuple[tuple[str, ...], ...]
    more: int


def power_cut_rows(overviews: Sequence[Overview]) -> tuple[CutRow, ...]:
    """A row for each recording of every study, in the order of the cells."""
    return tuple(_row(index, cell, run) for index, cell, run in _runs(overviews))


def power_cut_document(overviews: Sequence[Overview]) -> list[dict[str, Any]] | None:
    """What is drawn of each recording: shares of bad cuts with their intervals, what was lost, recovery; None without any.

    `caches` has of each kind of cache [bad, cuts, low, high] of the drawn cuts, None where nothing was cut so, its class, None
    where there is none, and [bad, cuts] of those that were sought. `fits` is the volatile one of the cell's device.
    """
    found = [
        {
            "cell": index,
            "name": ", ".join(told_apart(run, cell.cuts)),
            "caches": {cache: _cache(run, cache) for cache in CACHES},
            "fits": cell.cache,
            "sectors": sectors_told(cell.sector_bytes),
            "refused": list(sentences(run.verdict.refused)),
            "lost": sorted(run.lost_transactions),
            "recovery_s": [rounded(seconds) for seconds in sorted(run.recovery_s)],
        }
        for index, cell, run in _runs(overviews)
    ]
    return found or None


def power_cut_stories(overviews: Sequence[Overview]) -> tuple[StoryRow, ...]:
    """Why cuts were bad, of each recording of which it was asked."""
    return tuple(
        StoryRow(
            index,
            cell.label.full,
            ", ".join(told_apart(run, cell.cuts)),
            tuple(stories[number].lines for number in sorted(stories)[:_STORIES_MOST]),
            max(0, len(stories) - _STORIES_MOST),
        )
        for index, cell, run in _runs(overviews)
        if (stories := stories_of(run.directory))
    )


def _runs(overviews: Sequence[Overview]) -> Iterator[tuple[int, CellFacts, CutRun]]:
    cells = (cell for found in overviews for cell in found.cells.values())
    for index, cell in enumerate(cells):
        for run in cell.cuts:
            yield index, cell, run


def _row(index: int, cell: CellFacts, run: CutRun) -> CutRow:
    verdict = run.verdict
    lost, ms = verdict.loss.transactions_max, verdict.loss.ms_max
    again = run.recovery_s
    return CutRow(
        index=index,
        cell=cell.label.full,
        aside=", ".join(told_apart(run, cell.cuts)),
        caches=tuple(
            _cache_row(cell, run, cache)
            for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)
            if verdict.cuts(cache).all_cuts.cuts
        ),
        lost="–" if lost is None else f"{lost:,}",
        lost_within="" if lost is None or ms is None else f"{number_words(ms)} ms",
        recovery=f"{median(again):.2f}" if again else "–",
        recovery_most=f"{max(again):.2f}" if again else "",
        window=format_size(verdict.window_bytes),
        notes=tuple(_notes(run)),
    )


def _cache_row(cell: CellFacts, run: CutRun, cache: str) -> CacheRow:
    found, refused = run.verdict.cuts(cache), bool(run.verdict.refused)
    words = "refused" if refused else run.words_with(cache)
    sought = found.sought
    return CacheRow(
        words=CACHE_WORDS[cache],
        fits=cache == cell.cache,
        drawn=(
            bound_words(found.drawn),
            *_findings(found.drawn),
            *(f"in recovery: {words}" for words in _findings(found.recut)),
            *(f"at every write of recoveries: {words}" for words in _findings(found.exhaustive)),
            *(f"of other devices, bad here too: {words}" for words in _findings(found.weaker)),
        ),
        sought=(f"{sought.bad} of {sought.cuts}", *_findings(sought)) if sought.cuts else (),
        verdict=words,
        verdict_class="unknown" if refused else run.class_with(cache).split(maxsplit=1)[0],
    )


def _cache(run: CutRun, cache: str) -> dict[str, Any] | None:
    found = run.verdict.cuts(cache)
    if not found.all_cuts.cuts:
        return None
    return {
        "drawn": _share(found.drawn),
        "class": None if run.verdict.refused else run.class_with(cache),
        "sought": [found.sought.bad, found.sought.cuts],
    }


def _notes(run: CutRun) -> Iterator[str]:
    yield from (f"refused: {reason}" for reason in run.verdict.refused)
    yield from (str(each) for each in (run.verdict.without_cut, run.verdict.never_synced) if each is not None)
    differs = disagreement(run.declared, run.shown_class)
    if differs:
        yield differs
    if run.verdict.image_bytes is not None and not run.verdict.lacks_metadata_room:
        yield f"recorded on a disk of {format_size(run.verdict.image_bytes)}"
    yield from recording_words(run)
    if not run.verdict.of_the_cell and run.spec.levels.get(DEVICE_UNIT) is None:
        yield "the journal in RAM was kept, as if it were on a device of its own"
    if run.verdict.journal_lost:
        yield "the journal was in memory and gone after each cut"
    yield from recovery_words(run)
    idle = sum(run.verdict.cuts(cache).idle for cache in CACHES)
    if idle:
        yield f"nothing waited for a flush at {idle} of {run.verdict.volatile_drawn.cuts} cuts with a volatile cache"
    waiting = run.verdict.waiting
    if waiting is not None:
        spans = ", ".join(f"{kind}: {count}" for kind, count in waiting.items() if kind != IN_FLIGHT)
        yield f"spans of the log with metadata waiting that can be torn: {spans or 'none'}"
    controls = run.verdict.controls
    yield f"controls: {controls.bad} of {controls.cuts} bad"


def _findings(tally: CutCounts) -> tuple[str, ...]:
    return tuple(f"{tally.of(name)} {name}" for name in reversed(FINDINGS) if name != OK and tally.of(name))


def _share(tally: CutCounts) -> list[float] | None:
    if not tally.cuts:
        return None
    interval = proportion(tally.bad, tally.cuts)
    return [tally.bad, tally.cuts, round(interval.low, 5), round(interval.high, 5)]


def _variables(overviews: Sequence[Overview]) -> Mapping[str, Any]:
    sectors = dict.fromkeys(sectors_told(device_sectors(found)) for found in overviews)
    return {
        "power_cuts": power_cut_rows(overviews),
        "power_cut_sectors": "; ".join(sectors),
        "power_cut_stories": power_cut_stories(overviews),
    }


PAGE = WorkloadPage(
    Path(__file__).parent,
    {"ranking": ("cut-speed", "Speed and bad cuts"), "durability": ("power_cuts", "")},
    lambda overviews: any(_runs(overviews)),
    lambda overviews, _: {"power_cuts": power_cut_document(overviews)},
    _variables,
)
