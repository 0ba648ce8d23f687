"""The parts of runs that a page lets its reader choose, and their summaries with timeouts ranked.

A part is a phase or an item of a run that has several (a table, an index, a query); the first part is always
the run as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from bedplate.analysis.overview import WHOLE, Overview
from bedplate.analysis.run_heads import view_of
from bedplate.model.cell import RunSpec
from bedplate.model.figure import Status
from bedplate.model.visit import Outcome
from bedplate.statistics.summary import MEDIAN, Summary, SummaryKey, basis_of


@dataclass(frozen=True)
class PagePart:
    """A part by its phase and item, what it is called, and under which head it stands in a list."""

    phase: str
    item: str
    label: str
    group: str


@dataclass(frozen=True)
class RankedSummary:
    """A summary of which some may be timeouts, which know no time; `limit` is the largest limit that was met.

    With timeouts there is no mean: the figure is the median with timeouts above every time, and none where it hangs on one.
    """

    summary: Summary
    limit: float | None = None


def page_parts(overviews: Sequence[Overview]) -> tuple[PagePart, ...]:
    """The whole run first, then phases and items as they first come up, queries by their numbers."""
    found: dict[tuple[str, str], PagePart] = {}
    for overview in overviews:
        for key in overview.summaries:
            if (part := (key.phase, key.item)) != (WHOLE, "") and part not in found:
                found[part] = _part(*part, overview.spec((key.dataset, key.run)))
    phases = {phase: place for place, phase in enumerate(dict.fromkeys(phase for phase, _ in found))}
    places = {part: place for place, part in enumerate(found)}

    def order(part: tuple[str, str]) -> tuple[int, int, int]:
        phase, item = part
        return phases[phase], int(item) if item.isdecimal() else -1, places[part]

    return (
        PagePart(WHOLE, "", "whole run", ""),
        *(found[part] for part in sorted(found, key=order)),
    )


def _part(phase: str, item: str, spec: RunSpec | None) -> PagePart:
    if not item:
        return PagePart(phase, item, phase, "phases")
    words = view_of(spec.workload).item_words(phase, item) if spec else None
    if words is not None:
        return PagePart(phase, item, words, phase)
    return PagePart(phase, item, item, f"{phase}, one by one")


def ranked(found: Overview, key: SummaryKey, summary: Summary) -> RankedSummary:
    """The summary as a page shows it.

    Where some repetitions were stopped at a limit, the mean of the others would be that of the quick ones.
    """
    if not summary.censored:
        return RankedSummary(summary)
    runs = [
        (figure, m.validity)
        for m in found.of(key.cell, (key.dataset, key.run))
        if m.outcome is Outcome.COMPLETED and (figure := m.figure(key.metric, key.phase, key.item))
    ]
    known = [(f, validity) for f, validity in runs if f.status is not Status.ABSENT]
    # Runs in doubt count only where no other has a value or a limit, as everywhere.
    kept = [each for each in known if each[1].is_trusted] or known
    counting = [f for f, _ in kept]
    limits = [f.limit for f in counting if f.status is Status.CENSORED and f.limit is not None]
    ended = sorted(f.value for f in counting if f.status is Status.MEASURED and f.value is not None)
    if not limits:
        return RankedSummary(summary)
    ends = (len(ended) + len(limits)) // 2 < len(ended)
    shown = replace(
        summary,
        n=len(ended),
        basis=basis_of(validity for _, validity in kept) if ended else None,
        centre=median([*ended, *(math.inf for _ in limits)]) if ends else None,
        centre_kind=MEDIAN if ends else None,
        minimum=ended[0] if ended else None,
        maximum=ended[-1] if ended else None,
        low=None,
        high=None,
        variation=None,
    )
    return RankedSummary(shown, max(limits))
