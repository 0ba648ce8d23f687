"""The chapters of a page, the parts that fold under them, and which of them a page of some studies has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.failures import failures
from bedplate.analysis.run_heads import has_raw, has_speeds, has_transactions
from bedplate.analysis.search.marks import is_chosen
from bedplate.analysis.search.searched import search_of
from bedplate.page.workload_page import PLACES, workload_pages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.analysis.overview import Overview

# The chapters of the page with their parts, in its order, without those of workloads. Those of transactions stand only where a
# run made some.
CHAPTERS = (
    ("answer", "Answer", ()),
    ("search", "Search", ()),
    (
        "comparison",
        "Compare",
        (("summary", "Cells"), ("compare", "Side by side"), ("effects", "Effects"), ("claims", "Claims")),
    ),
    (
        "picture",
        "Picture",
        (
            ("ranking", "Every cell"),
            ("heat-maps", "Block sizes"),
            ("raw", "Sequential I/O"),
            ("items", "Queries and phases"),
        ),
    ),
    (
        "time",
        "Time",
        (
            ("courses", "Courses"),
            ("latency", "Latency over time"),
            ("distribution", "Latency distribution"),
            ("caches", "Cache ratios"),
            ("checkpoints", "Checkpoints"),
        ),
    ),
    ("durability", "Durability", ()),
    (
        "method",
        "How it was measured",
        (
            ("failures", "Failures and doubts"),
            ("order", "Order and drift"),
            ("effective", "Asked and effective"),
            ("machine", "Machine"),
            ("plan", "Plan"),
        ),
    ),
)
# What a reader comes for, and what is counted; the other parts are folded until they are asked for.
_OPEN = ("summary", "compare", "ranking", "heat-maps", "courses")
_FOLDED = ("comparison", "method")
_OF_TRANSACTIONS = ("latency", "distribution", "checkpoints")
# Of verdicts in the place of speeds there is none to show.
_OF_SPEEDS = ("effects", "courses")
_CACHE_RATIOS = ("shared_buffers_hit_ratio", "page_cache_hit_ratio", "fast_transaction_share")


@dataclass(frozen=True)
class Part:
    """A part of a chapter, which folds under its name; `aside` counts what is in it, where that is worth a look."""

    id: str
    name: str
    is_open: bool
    aside: str = ""


@dataclass(frozen=True)
class Chapter:
    """A section of the page: its own content, or parts."""

    id: str
    name: str
    parts: tuple[Part, ...]


def chapters_of(
    overviews: Sequence[Overview], *, claims: bool = False, asides: Mapping[str, str] | None = None
) -> tuple[Chapter, ...]:
    """The chapters that a page of these studies has, `claims` where some are judged; one without content is left out.

    Where no run has a speed, durability stands right behind the answer.
    """
    # Of an imported study nothing was recorded beside the figures.
    recorded = not all(found.study.facts.is_imported for found in overviews)
    transactions, own = recorded and has_transactions(overviews), own_sections(overviews)
    ratios = any(key.metric in _CACHE_RATIOS for found in overviews for key in found.summaries)
    has = {
        **dict.fromkeys(_OF_TRANSACTIONS, transactions),
        "caches": ratios or transactions,
        "raw": has_raw(overviews),
        "items": any(m.parts for found in overviews for m in found.measurements),
        "ranking": any(len(found.cells) > 1 for found in overviews),
        "heat-maps": any(_has_map(found) for found in overviews),
        "claims": claims,
        "search": any(search_of(found) is not None for found in overviews),
        "failures": any(found.pruned or failures(found, "") for found in overviews),
        **dict.fromkeys(_OF_SPEEDS, has_speeds(overviews)),
        "courses": recorded and has_speeds(overviews),
        # Of cells that a search chose the model says what factors do.
        "effects": has_speeds(overviews) and not all(is_chosen(found.study) for found in overviews),
    }
    chapters = []
    for chapter, head, known in sorted(CHAPTERS, key=lambda each: _place(each[0], overviews)):
        all_parts = (part for one in known for part in (one, *own.get(one[0], ())))
        names = [(part, name) for part, name in all_parts if has.get(part, bool(name))]
        if (known and not names) or not has.get(chapter, True):
            continue
        is_open = {part for part, _ in names if part in _OPEN or (asides or {}).get(part)}
        if names and not is_open and chapter not in _FOLDED:
            is_open = {names[0][0]}
        chapters.append(
            Chapter(
                chapter,
                head,
                tuple(
                    Part(part, name, part in is_open, (asides or {}).get(part, "")) for part, name in names
                ),
            )
        )
    return tuple(chapters)


def _place(chapter: str, overviews: Sequence[Overview]) -> int:
    """What moves is durability, before all but the answer; the others stay in their order."""
    early = () if has_speeds(overviews) else ("answer", "durability")
    return early.index(chapter) if chapter in early else len(early)


def _has_map(found: Overview) -> bool:
    """Whether a variant has several squares: one alone is no map."""
    panels = [cell.label.panel for cell in found.cells.values()]
    return len(set(panels)) < len(panels)


def own_sections(overviews: Sequence[Overview]) -> dict[str, list[tuple[str, str]]]:
    """The sections of these studies' workloads, by the one that they stand behind."""
    pages = [page for page in workload_pages() if page.is_in(overviews)]
    return {place: [page.sections[place] for page in pages if place in page.sections] for place in PLACES}
