"""Recordings of a server that keeps no copies of its pages, with what is known of how it wrote them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.studies.judged_cuts import CELL, good, made
from tests.support.studies.synthetic_power_cuts import (
    DATASET,
    RECORDING,
    SPEC,
    controls,
    points_of,
    write_cut_visit,
)

from bedplate.cuts.records import (
    PageCounts,
    PageFacts,
    PageLayout,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
)
from bedplate.cuts.runs import CutRun
from bedplate.model.cell import Cell
from bedplate.model.levels import Levels
from bedplate.model.reason import FULL_PAGE_WRITES_OFF, because
from bedplate.model.visit import Durability, VisitKey

COUNTS = PageCounts(atomic=9729, plain=0, extensions=1086, split_calls=0, no_pages=0, buffered=40)
COUNTED = replace(COUNTS, atomic=0, plain=9729)
ALIGNED = PageLayout(files=4, pages=10512, extents=300, unaligned=0, divided=0, unmapped=0)
PAGES = PageFacts(8192, 4096, 2**20, 0, "taken", 4, replace(ALIGNED, extents=4), ALIGNED, COUNTS)
PLAIN = replace(PAGES, counts=COUNTED)
# Nothing is declared of a server that cannot mend a torn page; 72 weighted cuts that tear one may show more.
OFF = Durability("unsafe", "unknown", "declared", (because(FULL_PAGE_WRITES_OFF, "page images are off"),))
UNIT = replace(SPEC, levels=Levels({**SPEC.levels, "device_unit": 16384}))


def untorn_cell(level: str) -> Cell:
    return replace(CELL, cluster=replace(CELL.cluster, untorn_writes=level))


def weighted(
    bad: dict[Profile, PointOutcome] | None = None, *, count: int = 320, torn_as: Profile = Profile.SUBSET_4K
) -> tuple[PointRecord, ...]:
    drawn = points_of(bad or {}, count=count)
    found = [
        replace(each, point=replace(each.point, profile=torn_as))
        if each.point.profile is Profile.SUBSET_4K
        else each
        for each in drawn
    ]
    return (
        *(replace(each, point=replace(each.point, placement=Placement.WEIGHTED)) for each in found),
        *controls(),
    )


def run_of(
    path: Path,
    pages: PageFacts | None = PAGES,
    *,
    level: str = "on",
    points: tuple[PointRecord, ...] | None = None,
    changed: dict[str, object] | None = None,
    again: tuple[PointRecord, ...] = (),
) -> CutRun:
    firsts = tuple(dict.fromkeys(each.point.recovery_of or 0 for each in again))
    raw = replace(
        good(
            points=(*(points or weighted()), *again),
            recording=replace(RECORDING, pages=pages, recoveries=firsts),
            **{"durability": OFF, **(changed or {})},
        ),
        cell=untorn_cell(level),
    )
    raw = replace(
        raw,
        spec=replace(
            raw.spec, levels=Levels({**raw.spec.levels, "points": len(raw.points) - len(again) - 6})
        ),
    )
    verdict = made(path, raw)[1]
    assert verdict is not None
    return CutRun(
        key=VisitKey("cell", "dataset", 1, 1),
        dataset=DATASET,
        spec=raw.spec,
        directory=write_cut_visit(path / "again", raw),
        recording=raw.recording,
        verdict=verdict,
        declared=OFF,
        lost_transactions=(),
        recovery_s=(),
    )
