"""Raw cuts as a visit leaves them, and the verdict that is made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_power_cuts import (
    RECIPE,
    RawCuts,
    controls,
    points_of,
    write_cut_visit,
)
from tests.support.studies.synthetic_study import cells_of

from bedplate.cuts.points import read_cuts
from bedplate.cuts.records import Profile
from bedplate.cuts.verdict import PowerCutVerdict, verdict_of
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.figure import RunFigures
from bedplate.model.visit import Durability, RunRecord, VisitRecord

CELL = cells_of(RECIPE)[0]
VOLATILE = (Profile.SUBSET_4K, Profile.SUBSET_512, Profile.LOST)
DECLARED = Durability("durable", "durable", "declared", planted("flushes"))


def made(path: Path, raw: RawCuts) -> tuple[RunFigures, PowerCutVerdict | None]:
    run = write_cut_visit(path / "visit", raw)
    figures = make_figures(path / "visit", run)
    visit = codec.read(VisitRecord, path / "visit" / "visit.json")
    return figures, verdict_of(visit, codec.read(RunRecord, run / "record.json"), read_cuts(run))


def judged(path: Path, raw: RawCuts) -> PowerCutVerdict:
    verdict = made(path, raw)[1]
    assert verdict is not None
    return verdict


def shown(verdict: PowerCutVerdict, cache: str) -> str | None:
    return verdict.cuts(cache).shown


def changed(verdict: PowerCutVerdict, cache: str, **changes: object) -> PowerCutVerdict:
    """The same with other cuts of one cache."""
    found = replace(verdict.cuts(cache), **changes)  # type: ignore[arg-type]
    return replace(verdict, caches={**verdict.caches, cache: found})


def good(**changes: object) -> RawCuts:
    return replace(RawCuts(CELL, (*points_of({}), *controls())), **changes)  # type: ignore[arg-type]
