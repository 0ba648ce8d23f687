"""docs/STUDY_FORMAT.md lists the fields that the records have, in their order, and no other."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from bedplate.model import cell, figure, machine, plan, power_cut, query_plan, visit
from bedplate.model.course import COURSE_COLUMNS, LATENCY_COLUMNS
from bedplate.model.visit import FORMAT_VERSION
from bedplate.study import records

RECORDS: tuple[type[Any], ...] = (
    records.StudyFacts,
    records.HistoryEntry,
    records.StudySchedule,
    records.Checksums,
    records.FileChecksum,
    machine.Machine,
    plan.Pruned,
    plan.ScheduledVisit,
    cell.Cell,
    cell.DeviceLevels,
    cell.Throttle,
    cell.KernelLevels,
    cell.FilesystemLevels,
    cell.BuildLevels,
    cell.ClusterLevels,
    cell.Dataset,
    cell.RunSpec,
    visit.VisitRequest,
    visit.ScratchDevice,
    visit.EngineBuild,
    visit.VisitRecord,
    visit.VisitKey,
    visit.Comparison,
    visit.FlushCount,
    visit.Durability,
    visit.Timing,
    visit.RunRecord,
    visit.Phase,
    visit.Sample,
    visit.PhaseCounters,
    visit.TimedItem,
    query_plan.QueryPlans,
    query_plan.QueryPlan,
    power_cut.RecordingFacts,
    power_cut.PointRecord,
    power_cut.CutPoint,
    figure.RunFigures,
    figure.Figure,
    figure.Window,
)


def document(repository: Path) -> str:
    return (repository / "docs/STUDY_FORMAT.md").read_text(encoding="utf-8")


def listed(text: str, heading: str) -> list[str]:
    """The fields of the table below a heading."""
    found = re.search(rf"^{heading}$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/STUDY_FORMAT.md has no section {heading!r}"
    return re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", found[1], re.MULTILINE)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_of_a_record_is_described(repository: Path, record: type[Any]) -> None:
    assert [field.name for field in fields(record)] == listed(document(repository), f"### {record.__name__}")


def test_no_record_is_described_that_is_not_there(repository: Path) -> None:
    described = re.findall(r"^### (\w+)$", document(repository), re.MULTILINE)
    assert sorted(record.__name__ for record in RECORDS) == sorted(described)


def test_the_columns_of_the_tables_are_described(repository: Path) -> None:
    assert list(COURSE_COLUMNS) == listed(document(repository), r"## course\.parquet")
    assert list(LATENCY_COLUMNS) == listed(document(repository), r"## latency\.parquet")


def test_the_version_is_the_one_that_is_written(repository: Path) -> None:
    assert document(repository).startswith(f"# The study on disk, format {FORMAT_VERSION}\n")
