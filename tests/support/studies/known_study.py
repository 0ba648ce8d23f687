"""Studies of which the truth is known: a synthetic study whose figures are put there by a rule of the test."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_study import Recipe, write_changed_study
from tests.support.studies.written import write

from bedplate.model.codec import read
from bedplate.model.figure import RunFigures, Status
from bedplate.model.metrics import figure
from bedplate.model.visit import Validity, VisitRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from bedplate.model.cell import Cell
    from bedplate.model.plan import ScheduledVisit

KNOWN = Recipe(
    filesystem_blocks=(4096,), database_blocks=(2048, 8192), runs=("read-write",), repetitions=5, course_s=2
)


@dataclass(frozen=True)
class Place:
    """One run of one visit; `order` is the place of the visit in the schedule."""

    cell: Cell
    run: str
    repetition: int
    order: int
    canary: bool


def known_study(directory: Path, tps: Callable[[Place], float | None], recipe: Recipe = KNOWN) -> Path:
    """Write a study in which every run has the tps that the rule says; None makes the figure absent."""

    def change(run: RunFigures, cell: Cell, visit: ScheduledVisit) -> RunFigures:
        return _with_tps(run, tps(_place(run, cell, visit)))

    return write_changed_study(directory, recipe, change)


def load_study(
    directory: Path, tps: Callable[[Place], float | None], *, doubted: tuple[str, ...] = ()
) -> Path:
    """Two runs a visit, each of which tells how long the load took: 10 s on XFS, 20 s elsewhere. Runs in `doubted` are suspect."""

    def change(run: RunFigures, cell: Cell, visit: ScheduledVisit) -> RunFigures:
        run = _with_tps(run, tps(_place(run, cell, visit)))
        noise = random.Random(f"{cell.id} {visit.repetition}").gauss(0, 0.01)
        load = figure("load_s", (10 if cell.filesystem.type == "xfs" else 20) * math.exp(noise), phase="load")
        run = replace(run, figures=(*(each for each in run.figures if each.metric != "load_s"), load))
        if run.run in doubted:
            run = replace(
                run, validity=Validity.SUSPECT, validity_reasons=planted("the client was saturated")
            )
        return run

    return write_changed_study(directory, replace(KNOWN, runs=("read-only", "read-write")), change)


def change_records(study: Path, change: Callable[[VisitRecord], VisitRecord]) -> None:
    """Put other words into the records of all plain visits."""
    for path in study.glob("visits/[!c]*/*/*/visit.json"):
        write(path, change(read(VisitRecord, path)))


def with_provenance(record: VisitRecord, provenance: Mapping[str, str]) -> VisitRecord:
    """The same visit in other surroundings."""
    return replace(record, provenance={**record.provenance, **provenance})


def _place(run: RunFigures, cell: Cell, visit: ScheduledVisit) -> Place:
    return Place(cell, run.run, visit.repetition, visit.index, visit.canary)


def _with_tps(run: RunFigures, value: float | None) -> RunFigures:
    if value is None:
        told: dict[str, Any] = {"value": None, "status": Status.ABSENT, "reason": planted("not counted")[0]}
    else:
        told = {"value": value}
    return replace(
        run, figures=tuple(replace(each, **told) if each.metric == "tps" else each for each in run.figures)
    )
