"""What each factor does to each figure, all else equal, and the sentences about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bedplate.analysis.cell_filter import Candidate
from bedplate.analysis.comparison import (
    ComparedMetric,
    asked_of,
    candidates_of,
    surroundings_between,
)
from bedplate.analysis.overview import NO_EFFECTS_OF_A_SEARCH, Measurement, Overview, is_chosen
from bedplate.analysis.wording import safety, words_on_device
from bedplate.errors import PlanError
from bedplate.model.figure import Scale
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.comparison import Comparison
from bedplate.statistics.design import DesignCell
from bedplate.statistics.effects import Crossing, Effects, effects, within_classes


@dataclass(frozen=True)
class FactorEffects:
    """Effects on one metric of one run: in each durability class over all cells, then within file systems.

    `classes` are the durability classes of the cells, the safest first, and how many cells each has. `crossing` are
    ratios whose two levels no class has both of: they are in no part, unless the parts are `across` all classes.
    `suspect` runs, and those of `unknown` validity, are left out as such, `unusable` ones have no positive figure (absent or zero). `stopped` are cells of
    which runs were stopped at a limit, and which are in no ratio. `incomparable` says why nothing is judged.
    """

    asked: ComparedMetric
    parts: tuple[Effects, ...]
    suspect: int
    unknown: int
    unusable: int
    incomparable: tuple[str, ...] = ()
    classes: tuple[tuple[str, int], ...] = ()
    crossing: tuple[Crossing, ...] = ()
    across: bool = False
    stopped: int = 0


@dataclass(frozen=True)
class StudyEffects:
    """Effects of one study on everything that was asked for."""

    overview: Overview
    found: tuple[FactorEffects, ...]


def study_effects(
    found: Overview,
    *,
    workload: str | None = None,
    metrics: Sequence[str] = (),
    across_durability: bool = False,
) -> StudyEffects:
    """Judge the factors within each durability class; where that is asked for across them, if a ratio crosses them.

    PlanError for a run or metric that there is not, for one that has no logarithm, and of a study whose cells a search chose.
    """
    if is_chosen(found.study):
        raise PlanError(*NO_EFFECTS_OF_A_SEARCH)
    asked = asked_of([found], workload, metrics)
    for each in asked:
        scale = METRICS[each.metric].scale
        if scale is not Scale.RATIO:
            raise PlanError(
                f"effects are ratios of positive figures, and {each.metric} is a {scale.value}; "
                "`bedplate compare` takes it"
            )
    judged = StudyEffects(found, tuple(factor_effects(found, each) for each in asked))
    if not across_durability:
        return judged
    across = {each.asked: each for each in across_classes(judged).found}
    return replace(judged, found=tuple(across.get(each.asked, each) for each in judged.found))


def factor_effects(found: Overview, asked: ComparedMetric) -> FactorEffects:
    """The effects on one figure; they are kept with the study, as its answer, its page and `compare` ask for the same ones."""
    known = found.once(_judged_before)
    if asked not in known:
        known[asked] = _effects(found, asked)
    return known[asked]


def _judged_before(_found: Overview) -> dict[ComparedMetric, FactorEffects]:
    return {}


def ratio_family(
    found: Overview, asked: ComparedMetric, sides: frozenset[frozenset[str]]
) -> tuple[Comparison, ...]:
    """The ratios that are judged together with the one between cells of these names; empty where there is no such ratio."""
    parts = () if is_chosen(found.study) else factor_effects(found, asked).parts
    return next(
        (part.family(each.factor) for part in parts for each in part.effects if each.cells == sides),
        (),
    )


def across_classes(found: StudyEffects) -> StudyEffects:
    """The same effects over the cells of all durability classes together, of what has ratios that cross them."""
    crossing = [each for each in found.found if each.crossing]
    candidates = candidates_of([found.overview]) if crossing else ()
    return StudyEffects(
        found.overview,
        tuple(
            replace(each, parts=effects(cells), across=True)
            for each in crossing
            for classes in [_by_class(found.overview, each.asked, candidates)]
            for cells in [[cell for own in classes.values() for cell in own]]
        ),
    )


def _by_class(
    found: Overview, asked: ComparedMetric, candidates: Sequence[Candidate]
) -> dict[str, list[DesignCell]]:
    """The cells that have a figure, by what a power cut leaves of them, the safest class first."""
    classes: dict[str, list[DesignCell]] = {}
    for cell in sorted(candidates, key=lambda cell: safety(found.cells[cell.cell])):
        made = _design_cell(cell, found.of(cell.cell, asked.run), asked)
        if made.values:
            classes.setdefault(words_on_device(found.cells[cell.cell]), []).append(made)
    return classes


def _effects(found: Overview, asked: ComparedMetric) -> FactorEffects:
    candidates = candidates_of([found])
    runs = {cell.cell: found.of(cell.cell, asked.run) for cell in candidates}
    here = [cell for cell in candidates if runs[cell.cell]]
    incomparable = surroundings_between([found]).of_cells(here, asked.run)
    every = [m for cell in here for m in runs[cell.cell] if m.outcome is Outcome.COMPLETED]
    trusted = [m for m in every if m.validity.is_trusted]
    classes = _by_class(found, asked, here)
    parts, crossing = ((), ()) if incomparable else within_classes(classes, metric=METRICS[asked.metric])
    return FactorEffects(
        asked=asked,
        parts=parts,
        suspect=sum(m.validity is Validity.SUSPECT for m in every),
        unknown=sum(m.validity is Validity.UNKNOWN for m in every),
        unusable=sum(
            _positive(m, asked) is None and not m.is_stopped(asked.metric, asked.phase, asked.item)
            for m in trusted
        ),
        stopped=len({m.cell for m in trusted if m.is_stopped(asked.metric, asked.phase, asked.item)}),
        incomparable=incomparable,
        classes=tuple((name, len(cells)) for name, cells in classes.items()),
        crossing=crossing,
    )


def _design_cell(cell: Candidate, runs: Sequence[Measurement], asked: ComparedMetric) -> DesignCell:
    counting = [m for m in runs if m.outcome is Outcome.COMPLETED and m.validity.is_trusted]
    values = {m.repetition: value for m in counting if (value := _positive(m, asked)) is not None}
    # Where some runs were stopped at a limit, the others are the quick ones.
    is_stopped = any(m.is_stopped(asked.metric, asked.phase, asked.item) for m in counting)
    return DesignCell(cell.levels, {} if is_stopped else values, cell.usual, cell.cell)


def _positive(m: Measurement, asked: ComparedMetric) -> float | None:
    value = m.value(asked.metric, asked.phase, asked.item)
    return value if value is not None and 0 < value < float("inf") else None
