"""A study as it stands in its directory, read into records."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.figure import RunFigures, as_defined_now
from bedplate.model.machine import Machine
from bedplate.model.visit import FORMAT_VERSION, VisitRecord
from bedplate.study.layout import StudyLayout
from bedplate.study.nodes import read_nodes
from bedplate.study.records import StudyFacts, StudySchedule
from bedplate.study.version import require_known_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bedplate.model.cell import RunSpec
    from bedplate.model.fleet import NodeFacts

# What is not so named (an unfinished visit, a file of someone else's) is no visit.
_ATTEMPT = re.compile(r"[1-9]\d*\.[1-9]\d*")


@dataclass(frozen=True)
class StoredVisit:
    """A finished visit, its directory, and the figures of its runs in their order.

    `begun` are the names of the folders of all runs that began, those without figures too.
    """

    record: VisitRecord
    directory: Path
    runs: tuple[RunFigures, ...]
    run_directories: tuple[Path, ...]
    begun: tuple[str, ...]

    def has_begun(self, run: RunSpec) -> bool:
        """Whether the visit came to this run, whatever became of it."""
        return any(name.partition("-")[2] == run.id for name in self.begun)


@dataclass(frozen=True)
class Study:
    """A whole study as it stands on disk; `visits` are in the order of the schedule, then of attempts.

    `nodes` are a fleet's by name; `machine` is then what all of them have. Empty without a fleet.
    """

    directory: Path
    facts: StudyFacts
    machine: Machine
    plan_text: str
    schedule: StudySchedule
    visits: tuple[StoredVisit, ...]
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)


def read_study(path: Path) -> Study:
    """Read a study; StudyError with every reason if it is none, of another format, or damaged.

    It may be being written meanwhile: a visit that is finished later is not in it.
    """
    layout = StudyLayout(path)
    require_known_format(layout)
    facts = codec.read(StudyFacts, layout.facts)
    schedule = codec.read(StudySchedule, layout.schedule)
    reasons: list[str] = []
    visits: list[StoredVisit] = []
    for directory in _visit_directories(layout.visits):
        try:
            visits.append(_read_visit(directory))
        except StudyError as error:
            reasons.extend(error.reasons)
    if reasons:
        raise StudyError(*reasons)
    order = _order(schedule)
    last = len(schedule.visits)
    visits.sort(key=lambda visit: (order.get(_place(visit.record), last), visit.record.key.attempt))
    return Study(
        directory=path,
        facts=facts,
        machine=codec.read(Machine, layout.machine),
        plan_text=layout.plan.read_text(encoding="utf-8"),
        schedule=schedule,
        visits=tuple(visits),
        nodes=read_nodes(layout),
    )


def _visit_directories(visits: Path) -> Iterator[Path]:
    for directory in sorted(visits.glob("*/*/*")):
        if _ATTEMPT.fullmatch(directory.name) and (directory / "visit.json").exists():
            yield directory


def _read_visit(directory: Path) -> StoredVisit:
    record = codec.read(VisitRecord, directory / "visit.json")
    if record.format_version != FORMAT_VERSION:
        raise StudyError(f"{directory} is of format {record.format_version}, not {FORMAT_VERSION}")
    begun = sorted(directory.glob("runs/*/"))
    made = [path / "run.json" for path in begun if (path / "run.json").exists()]
    return StoredVisit(
        record=record,
        directory=directory,
        runs=tuple(as_defined_now(codec.read(RunFigures, path)) for path in made),
        run_directories=tuple(path.parent for path in made),
        begun=tuple(path.name for path in begun),
    )


def _place(record: VisitRecord) -> tuple[str, str, int, bool]:
    key = record.key
    return key.cell, key.dataset, key.repetition, key.canary


def _order(schedule: StudySchedule) -> dict[tuple[str, str, int, bool], int]:
    return {(v.cell_id, v.dataset_id, v.repetition, v.canary): v.index for v in schedule.visits}
