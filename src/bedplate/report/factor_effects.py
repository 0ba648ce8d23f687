"""What the factors of a study do to its figures: the values that count, by cell and repetition, and their effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.model.figure import Scale
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Outcome, Validity
from bedplate.report.compared import asked_of, candidates_of
from bedplate.report.surroundings import Surroundings
from bedplate.statistics.design import DesignCell
from bedplate.statistics.effects import effects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.report.compared import Asked
    from bedplate.report.overview import Measurement, Overview
    from bedplate.report.selection import Candidate
    from bedplate.statistics.effects import Effects


@dataclass(frozen=True)
class FactorEffects:
    """Effects on one metric of one run: in the whole design, then within file systems with factors of their own.

    `suspect` runs are left out as such, `unusable` ones have no positive figure (absent, zero, or stopped at a
    limit). `incomparable` says why nothing is judged.
    """

    asked: Asked
    parts: tuple[Effects, ...]
    suspect: int
    unusable: int
    incomparable: tuple[str, ...] = ()


@dataclass(frozen=True)
class StudyEffects:
    """Effects of one study on everything that was asked for."""

    overview: Overview
    found: tuple[FactorEffects, ...]


def study_effects(
    found: Overview, *, workload: str | None = None, metrics: Sequence[str] = ()
) -> StudyEffects:
    """Judge the factors. PlanError for a run or metric that there is not, and for one that has no logarithm."""
    asked = asked_of([found], workload, metrics)
    for each in asked:
        scale = METRICS[each.metric].scale
        if scale is not Scale.RATIO:
            raise PlanError(
                f"effects are ratios of positive figures, and {each.metric} is a {scale.value}; "
                "`bedplate compare` takes it"
            )
    candidates = candidates_of([found])
    surroundings = Surroundings([found], ())
    return StudyEffects(found, tuple(_effects(found, each, candidates, surroundings) for each in asked))


def _effects(
    found: Overview, asked: Asked, candidates: Sequence[Candidate], surroundings: Surroundings
) -> FactorEffects:
    runs = {cell.cell: found.of(cell.cell, asked.run) for cell in candidates}
    here = [cell for cell in candidates if runs[cell.cell]]
    incomparable = surroundings.of_cells(here, asked.run)
    every = [m for cell in here for m in runs[cell.cell] if m.outcome is Outcome.COMPLETED]
    trusted = [m for m in every if m.validity is not Validity.SUSPECT]
    cells = [
        DesignCell(
            cell.levels,
            {
                m.repetition: value
                for m in runs[cell.cell]
                if m.outcome is Outcome.COMPLETED
                and m.validity is not Validity.SUSPECT
                and (value := _positive(m, asked)) is not None
            },
        )
        for cell in here
    ]
    return FactorEffects(
        asked=asked,
        parts=() if incomparable else effects([cell for cell in cells if cell.values]),
        suspect=len(every) - len(trusted),
        unusable=sum(_positive(m, asked) is None for m in trusted),
        incomparable=incomparable,
    )


def _positive(m: Measurement, asked: Asked) -> float | None:
    value = m.value(asked.metric, asked.phase, asked.item)
    return value if value is not None and 0 < value < float("inf") else None
