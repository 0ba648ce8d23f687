"""What the repetitions of a cell found of one figure, each of them once."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bedplate.analysis.parts import VISIT_FIGURES, WHOLE
from bedplate.model.visit import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.analysis.overview import Measurement, Overview
    from bedplate.statistics.summary import Observation


def measurements_with(
    found: Overview, cell: str, run: tuple[str, str], metric: str
) -> tuple[Measurement, ...]:
    """The runs of a cell in which a figure stands: those of `run`, of a visit's own figure those of all its dataset's runs."""
    runs = [one for one in found.runs if one[0] == run[0]] if metric in VISIT_FIGURES else [run]
    return tuple(m for one in runs for m in found.of(cell, one))


def observed(
    found: Overview, cell: str, run: tuple[str, str], metric: str, part: tuple[str, str] = (WHOLE, "")
) -> Mapping[int, Observation]:
    """One observation for each repetition; `part` is the phase and the item, of a whole run unless it is given.

    A visit's own figure (`load_s`) stands with each run of the visit, and is one value: it is taken from the run that
    there is least doubt about, as the doubt is about that run and not about what went before it.
    """
    every: defaultdict[int, list[Observation]] = defaultdict(list)
    for m in measurements_with(found, cell, run, metric):
        every[m.repetition].append(m.observation(metric, *part))
    return {repetition: min(told, key=_doubt) for repetition, told in every.items()}


def _doubt(one: Observation) -> tuple[bool, bool, bool]:
    return one.outcome is not Outcome.COMPLETED, one.value is None, not one.validity.is_trusted
