"""What all sentences of advice are made of: a cell and a comparison in words, cells in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.wording import block_words, ratio_figure
from bedplate.model.figure import Better
from bedplate.model.template import and_more
from bedplate.statistics.comparison import EstimateKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.advice.advised import Advised, Contest, Objective
    from bedplate.analysis.advice.next_visits import NextVisits
    from bedplate.analysis.overview import Overview
    from bedplate.statistics.comparison import Comparison
    from bedplate.statistics.pareto import Standing

# More is in the document; a person stops reading lists.
SHOWN = 4


@dataclass(frozen=True)
class ComparisonEvidence:
    """A comparison that a sentence rests on, of two cells by id."""

    baseline: str
    contender: str
    comparison: Comparison


@dataclass(frozen=True)
class Sentence:
    """`kind` says what it is about: leading, figure, behind, apart, next, unsafe, unknown, limits.

    Of one about what comes next, `visits` are those that it names and `command` makes them; empty of others.
    """

    kind: str
    text: str
    cells: tuple[str, ...] = ()
    evidence: tuple[ComparisonEvidence, ...] = ()
    visits: NextVisits | None = None
    command: str = ""


def cell_words(found: Overview, cell: str) -> str:
    """A cell in a sentence: `ext4 barrier fs 4k db 8k`."""
    facts = found.cells[cell]
    return f"{facts.label.panel} {block_words(facts.label).replace(' · ', ' ')}"


def comparison_words(objective: Objective, comparison: Comparison) -> str:
    """`tps 1.204 times (1.151–1.253)`, `cv of tps +0.03 (+0.01 to +0.05)`; without an interval so said."""
    if comparison.estimate is None:
        return f"{objective.head} unknown"
    is_ratio = comparison.kind is EstimateKind.RATIO
    values = [
        "…" if value is None else ratio_figure(value) if is_ratio else f"{value:+.2g}"
        for value in (comparison.estimate, comparison.low, comparison.high)
    ]
    if comparison.low is None and comparison.high is None:
        bounds = "no interval"
    else:
        bounds = f"{values[1]}–{values[2]}" if is_ratio else f"{values[1]} to {values[2]}"
    return f"{objective.head} {values[0]}{' times' if is_ratio else ''} ({bounds})"


def standing_cells(contest: Contest, standing: Standing) -> tuple[str, ...]:
    """The cells of one standing, in the order of the schedule."""
    return tuple(
        cell for cell, own in zip(contest.cells, contest.front.standings, strict=True) if own is standing
    )


def ranked_cells(found: Advised, contest: Contest, objective: Objective) -> list[str]:
    """Cells by their geometric mean or mean, the best first; those without a trusted value are left out."""
    sign = -1 if objective.metric.better is Better.HIGHER else 1
    centres = {cell: found.summary(contest, objective, cell).centre for cell in contest.cells}
    known = {cell: centre for cell, centre in centres.items() if centre is not None}
    return sorted(known, key=lambda cell: sign * known[cell])


def by_speed(found: Advised, contest: Contest, cells: Sequence[str]) -> list[str]:
    """Those of the cells that have a trusted value in the contest's first figure, the best first."""
    return [cell for cell in ranked_cells(found, contest, contest.objectives[0]) if cell in cells]


def rest_words(cells: Sequence[object]) -> str:
    """How many stand behind those that are shown; empty where none do."""
    return and_more(len(cells), SHOWN)
