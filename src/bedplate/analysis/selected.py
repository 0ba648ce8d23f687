"""Studies narrowed to the cells that FILTERs select: everything that is made over cells is made over these alone.

TPC-H's scores compare cells with each other, so a selection has scores of its own; scales and averages follow it
too. What one cell says of itself stays as it was. Canary visits stay as well: they speak of the machine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.analysis.cell_filter import choose
from bedplate.analysis.comparison.compared import candidates_of
from bedplate.analysis.factors import TYPE, short_name
from bedplate.analysis.labels import study_marks
from bedplate.analysis.overview import overview
from bedplate.analysis.run_heads import writes
from bedplate.analysis.scores import SCORES, score_summaries, score_views
from bedplate.analysis.search.marks import search_marks
from bedplate.errors import PlanError
from bedplate.model.figure import Better
from bedplate.model.metrics import METRICS
from bedplate.model.template import filled
from bedplate.statistics.summary import Summaries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bedplate.analysis.cell_filter import Lacking
    from bedplate.analysis.overview import CellFacts, Overview


# What the page's script says too.
KEPT_WITHOUT = "kept although no {factor} can be asked of them, as what was chosen holds there anyway: {n} cell{s} ({types})"
PASSED_OVER = "passed over, as no {factor} can be asked of them: {n} cell{s} ({types})"


def selected_overviews(studies: Sequence[Path], filters: Sequence[str] = ()) -> tuple[Overview, ...]:
    """The studies, narrowed to the cells that any of the filters selects; all of them without a filter.

    A study of which nothing is selected is left out. PlanError for a filter that selects nothing, StudyError for a
    damaged study.
    """
    return selected([overview(path) for path in studies], filters)


def selected(overviews: Sequence[Overview], filters: Sequence[str]) -> tuple[Overview, ...]:
    """The same of studies that were read."""
    if not filters:
        return tuple(overviews)
    cells, lacking = choose(filters, candidates_of(overviews))
    words = ", or ".join(" ".join(text.split()) for text in filters)
    return tuple(
        _narrowed(found, own, words, _without_a_factor(lacking, number))
        for number, found in enumerate(overviews)
        if (own := frozenset(one.cell for one in cells if one.study == number))
    )


def best_first(
    found: Overview, runs: Sequence[tuple[str, str]], metric: str, top: int | None = None
) -> Overview:
    """The study with its cells in the order of a metric, the best first, of which the first `top` are kept.

    By the means of the first of `runs` that has the metric, of one that writes if there is one; cells without a value come
    last. Nothing is made anew: scores stay those over all cells. PlanError where no run has the metric.
    """
    keys = {(key.dataset, key.run) for key in found.summaries if key.metric == metric}
    having = [run for run in runs if run in keys]
    if not having:
        raise PlanError(f"no run shown has {metric} as a whole; `show --metric {metric}` says where it is")
    run = next((each for each in having if writes(found, each)), having[0])
    sign = 1 if METRICS[metric].better is Better.LOWER else -1

    def place(cell: str) -> tuple[bool, float]:
        figure = found.summary(cell, run, metric).centre
        return figure is None, 0.0 if figure is None else sign * figure

    ordered = sorted(found.cells, key=place)[:top]
    kept = (
        "" if len(ordered) == len(found.cells) else f", the first {len(ordered)} of {len(found.cells)} cells"
    )
    return replace(
        found,
        cells={cell: found.cells[cell] for cell in ordered},
        marks=(f"sorted by {metric} of {run[1]}{kept}", *found.marks),
    )


def _without_a_factor(lacking: Iterable[Lacking], study: int) -> tuple[str, ...]:
    """What became of the cells that cannot have a factor that a filter names."""
    return tuple(
        filled(
            KEPT_WITHOUT if each.kept else PASSED_OVER,
            factor=short_name(each.factor),
            n=len(own),
            types=", ".join(sorted({str(one.levels.get(TYPE, "?")) for one in own})),
        )
        for each in lacking
        if (own := [one for one in each.cells if one.study == study])
    )


def _narrowed(found: Overview, chosen: frozenset[str], words: str, without: tuple[str, ...]) -> Overview:
    measurements = tuple(m for m in found.measurements if m.canary or m.cell in chosen)
    plain = [m for m in measurements if not m.canary]
    runs = tuple(run for run in found.runs if any((m.dataset, m.run) == run for m in plain))
    cells = {cell: _among(facts, chosen) for cell, facts in found.cells.items() if cell in chosen}
    specs = {run: spec for run in runs if (spec := found.spec(run)) is not None}
    views = score_views(plain, tuple(cells), specs)
    scores = {
        key: replace(summary, low=None, high=None) if cells[key.cell].incomparable else summary
        for view in views
        for key, summary in score_summaries(view).items()
    }
    keys = [key for key in found.summaries if key.cell in chosen and key.metric not in SCORES]
    summaries = Summaries((*keys, *scores), lambda key: scores.get(key) or found.summaries[key])
    visits = tuple(
        visit for visit in found.study.visits if visit.record.key.canary or visit.record.key.cell in chosen
    )
    here = [found.study.schedule.cells[cell] for cell in cells]
    selection = f"{words}: {len(cells)} of {len(found.cells)} cells"
    return replace(
        found,
        study=replace(found.study, visits=visits),
        cells=cells,
        runs=runs,
        measurements=measurements,
        summaries=summaries,
        marks=(
            f"a selection, {selection}; scores, scales and averages are over these alone",
            *without,
            *search_marks(found.study),
            *study_marks(here, [visit.record for visit in visits]),
            *found.study.marks,
        ),
        # What was pruned was selected by nobody.
        pruned=(),
        scores=views,
        selection=selection,
    )


def _among(facts: CellFacts, chosen: frozenset[str]) -> CellFacts:
    """A cell that names no other outside the selection."""
    return replace(facts, identical_to=tuple(other for other in facts.identical_to if other in chosen))
