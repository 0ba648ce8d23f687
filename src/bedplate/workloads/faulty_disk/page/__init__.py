"""Disks that fail on the page: file system and engine by fault, each square with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bedplate.analysis.overview import Overview
from bedplate.cuts.faults import FaultRecord, FaultVerdict, fault_named
from bedplate.cuts.records import PointOutcome
from bedplate.errors import PlanError
from bedplate.page.static import WorkloadPage
from bedplate.plan.toml import toml_text
from bedplate.study.layout import StudyLayout
from bedplate.units import format_count
from bedplate.workloads.faulty_disk.reading import FaultRow, FaultSquare, fault_rows

# The page's badges, by what they say of a class of durability.
_BADGES = {
    FaultVerdict.LOST_SILENT: "unsafe",
    FaultVerdict.LOST_DETECTED: "bounded",
    FaultVerdict.BOUNDED: "bounded",
    FaultVerdict.NO_TRACE: "unknown",
    FaultVerdict.NOT_HIT: "unknown",
}

_EVIDENCE_MOST = 6

_COUNTED = (PointOutcome.OK, PointOutcome.NEEDS_FSCK, PointOutcome.LOST, PointOutcome.SILENT)


@dataclass(frozen=True)
class MatrixSquare:
    """`verdict` with its badge's class, who said something, and the evidence a line each; all empty where it was not tried.

    `plan` is the text of one that tries it again; empty where the study's plan cannot be read here.
    """

    verdict: str = ""
    badge: str = ""
    detected: str = ""
    evidence: tuple[str, ...] = ()
    plan: str = ""


@dataclass(frozen=True)
class MatrixRow:
    """A cell; `index` is its own on the page."""

    index: int
    cell: str
    squares: tuple[MatrixSquare, ...]
    doubts: tuple[str, ...]


def fault_matrix(overviews: Sequence[Overview]) -> tuple[tuple[str, ...], tuple[MatrixRow, ...]]:
    """The faults in words, and a row for each cell and dataset with a square for each of them."""
    rows = [*_indexed(overviews)]
    faults = tuple(dict.fromkeys(square.fault for _, row, _ in rows for square in row.squares))
    return (
        tuple(fault_named(fault).words for fault in faults),
        tuple(
            MatrixRow(
                index,
                row.cell.label.full,
                tuple(_square(row, fault, plan) for fault in faults),
                row.doubts,
            )
            for index, row, plan in rows
        ),
    )


def _indexed(overviews: Sequence[Overview]) -> Iterator[tuple[int, FaultRow, Mapping[str, Any]]]:
    """Each row with its cell's place on the page, and the values of a plan that has this cell alone, none where it cannot be read."""
    before = 0
    for found in overviews:
        numbers = {cell: before + number for number, cell in enumerate(found.cells)}
        for row in fault_rows(found):
            yield numbers[row.cell.id], row, _plan_of(found, row)
        before += len(found.cells)


def _plan_of(overview: Overview, row: FaultRow) -> Mapping[str, Any]:
    from bedplate.plan.load import narrowed  # noqa: PLC0415

    study = overview.study
    dataset = study.schedule.datasets.get(row.dataset)
    if dataset is None:
        return {}
    files = StudyLayout(study.directory).plan_files
    with suppress(PlanError):
        return narrowed(study.plan_text, study.schedule.cells[row.cell.id], dataset, directory=files)
    return {}


def _plan_again(plan: Mapping[str, Any], fault_record: FaultRecord) -> str:
    """The text of a plan that makes one try and the controls, with what was drawn; empty without the plan."""
    if not plan:
        return ""
    # All that is changed are keys of this workload, whose values are its own records'.
    workload = {**plan["workload"][0], "faults": [fault_record.fault], "seed": fault_record.seed, "tries": 1}
    once = {"title": f"{fault_record.fault} again", "repetitions": 1, "workload": [workload]}
    return toml_text({**plan, **once, "canary": {"enabled": False}})


def _square(row: FaultRow, fault: str, plan: Mapping[str, Any]) -> MatrixSquare:
    for square in row.squares:
        if square.fault == fault:
            record = _worst_try(square)
            return MatrixSquare(
                square.verdicts,
                # Controls that went wrong leave nothing to believe.
                "unknown" if row.doubts else _BADGES.get(square.worst, "durable"),
                square.detected,
                tuple(_evidence(record)),
                _plan_again(plan, record),
            )
    return MatrixSquare()


def _worst_try(square: FaultSquare) -> FaultRecord:
    """The first try with the worst verdict."""
    return next(each for each in square.records if each.verdict is square.worst)


def _evidence(fault_record: FaultRecord) -> Iterator[str]:
    device = " of the journal's device" if fault_record.hit_journal else ""
    where = (
        ""
        if fault_record.hit_at is None
        else f", the first of {fault_record.hit_bytes:,} bytes at {fault_record.hit_at:,}{device}"
    )
    yield f"{format_count(fault_record.hits, 'hit')}{where}"
    # Of what an engine refuses to open nobody counts what is missing.
    is_counted = fault_record.lost_transactions or fault_record.left in _COUNTED
    missing = (
        f"{fault_record.lost_transactions} of them missing"
        if is_counted
        else "what is missing was not counted"
    )
    yield f"{fault_record.acknowledged} acknowledged, {missing}"
    if fault_record.no_result is not None:
        yield fault_record.no_result
    if fault_record.came_back is not None and fault_record.is_result:
        yield f"the server {'answered' if fault_record.came_back else 'did not answer'} by itself once the disk worked again"
    yield from (f"then: {text}" for text in fault_record.said[:_EVIDENCE_MOST])
    yield from (f"mounted anew: {text}" for text in fault_record.found[:_EVIDENCE_MOST])


def _variables(overviews: Sequence[Overview]) -> Mapping[str, Any]:
    faults, rows = fault_matrix(overviews)
    return {"disk_faults": faults, "disk_fault_rows": rows}


PAGE = WorkloadPage(
    Path(__file__).parent,
    {"durability": ("faulty_disks", "")},
    lambda overviews: any(fault_rows(found) for found in overviews),
    lambda overviews, _: {},  # noqa: ARG005 -- nothing is drawn
    _variables,
)
