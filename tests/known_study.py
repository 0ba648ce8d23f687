"""Studies of which the truth is known: a synthetic study whose figures are put there by a rule of the test."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.synthetic_study import Recipe, write_study

from bedplate.model.codec import read, write
from bedplate.model.figure import RunFigures, Status
from bedplate.model.metrics import figure
from bedplate.model.visit import Validity, VisitRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bedplate.model.cell import Cell

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
    study = write_study(directory, recipe)
    for path, place in _runs(study):
        value = tps(place)
        run = read(RunFigures, path)
        figures = tuple(
            replace(
                each,
                value=value,
                status=Status.ABSENT if value is None else Status.MEASURED,
                reason="not counted" if value is None else None,
            )
            if each.metric == "tps"
            else each
            for each in run.figures
        )
        write(path, replace(run, figures=figures))
    return study


def load_study(
    directory: Path, tps: Callable[[Place], float | None], *, doubted: tuple[str, ...] = ()
) -> Path:
    """Two runs a visit, each of which tells how long the load took: 10 s on XFS, 20 s elsewhere. Runs in `doubted` are suspect."""
    study = known_study(directory, tps, replace(KNOWN, runs=("read-only", "read-write")))
    for path, place in _runs(study):
        noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.01)
        load = figure(
            "load_s", (10 if place.cell.filesystem.type == "xfs" else 20) * math.exp(noise), phase="load"
        )
        run = read(RunFigures, path)
        run = replace(run, figures=(*(each for each in run.figures if each.metric != "load_s"), load))
        if place.run in doubted:
            run = replace(run, validity=Validity.SUSPECT, validity_reasons=("the client was saturated",))
        write(path, run)
    return study


def change_records(study: Path, change: Callable[[VisitRecord], VisitRecord]) -> None:
    """Put other words into the records of all plain visits."""
    for path in study.glob("visits/[!c]*/*/*/visit.json"):
        write(path, change(read(VisitRecord, path)))


def with_provenance(record: VisitRecord, provenance: Mapping[str, str]) -> VisitRecord:
    """The same visit in other surroundings."""
    return replace(record, provenance={**record.provenance, **provenance})


def _runs(study: Path) -> Iterator[tuple[Path, Place]]:
    for path in sorted(study.glob("visits/*/*/*/runs/*/run.json")):
        record = read(VisitRecord, path.parents[2] / "visit.json")
        order = round((record.started_wall_s - 1_700_000_000.0) / 100)
        run = read(RunFigures, path).run
        yield path, Place(record.cell, run, record.key.repetition, order, record.key.canary)
