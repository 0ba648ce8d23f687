"""Reading a study directory for the report."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003

from bedplate.model.cell import Cell, Dataset, RunSpec  # noqa: TC001
from bedplate.model.codec import read
from bedplate.model.figure import RunFigures
from bedplate.model.machine import Machine
from bedplate.model.plan import Pruned, ScheduledVisit  # noqa: TC001
from bedplate.model.visit import VisitRecord


@dataclass(frozen=True)
class HistoryEntry:
    when: str
    what: str


@dataclass(frozen=True)
class StudyFacts:
    format_version: int
    title: str
    created: str
    bedplate: str
    plan_digest: str
    machine_identity: str
    history: tuple[HistoryEntry, ...]


@dataclass(frozen=True)
class StudySchedule:
    format_version: int
    cells: Mapping[str, Cell]
    datasets: Mapping[str, Dataset]
    runs: Mapping[str, tuple[RunSpec, ...]]
    pruned: tuple[Pruned, ...]
    visits: tuple[ScheduledVisit, ...]


@dataclass(frozen=True)
class StoredVisit:
    record: VisitRecord
    directory: Path
    runs: tuple[RunFigures, ...]


@dataclass(frozen=True)
class Study:
    directory: Path
    facts: StudyFacts
    machine: Machine
    plan_text: str
    schedule: StudySchedule
    visits: tuple[StoredVisit, ...]


def read_study(path: Path) -> Study:
    """Read it."""
    visits = []
    for file in sorted(path.glob("visits/*/*/*/visit.json")):
        runs = tuple(read(RunFigures, run) for run in sorted(file.parent.glob("runs/*/run.json")))
        visits.append(StoredVisit(read(VisitRecord, file), file.parent, runs))
    return Study(
        path,
        read(StudyFacts, path / "study.json"),
        read(Machine, path / "machine.json"),
        (path / "plan.toml").read_text(),
        read(StudySchedule, path / "schedule.json"),
        tuple(visits),
    )
