"""A study as it stands in its directory, read into records.

A visit whose files are not what they were when it had ended, or do not fit together, is set aside: it is named, and
nothing of it is used. So is a visit that the schedule does not know.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bedplate.cuts.records import POINTS_FILE, RECORDING_FILE
from bedplate.errors import StudyError
from bedplate.model import codec, limits
from bedplate.model.cell import RunSpec
from bedplate.model.figure import RunFigures, as_defined_now
from bedplate.model.machine import NodeFacts, StoredMachine
from bedplate.model.metrics import as_named_today, of_known_metrics
from bedplate.model.plan import ScheduledVisit, SearchRecord
from bedplate.model.visit import RECORD_FILE, RunRecord, VisitRecord
from bedplate.study.checksums import (
    CHECKSUMS_FILE,
    VisitFiles,
    as_read,
    changed_top_files,
    impossible,
    impossible_visit,
)
from bedplate.study.layout import CANARY, StudyLayout, require_known_format
from bedplate.study.records import (
    PairedRecord,
    StudyFacts,
    StudySchedule,
    read_nodes,
    read_order,
    read_paired,
    read_schedule,
    wrong_levels,
)
from bedplate.units import format_count

# What is not so named (an unfinished visit, a file of someone else's) is no visit.
_ATTEMPT = re.compile(r"([1-9]\d*)\.([1-9]\d*)")

VISIT_FILE = "visit.json"

# Beside run.json; they are small, and tables of power cuts and plans of queries are made from them.
_READ_TOO = (POINTS_FILE, RECORDING_FILE, "plans.json")

_IMPORTED_MARK = "imported: others made these runs in an order of their own; bedplate recorded nothing beside them, and the figures are the source's"

# Named at once beside figures; `bedplate show STUDY --status` names all.
_NAMED = 3

# Which visit of a schedule: cell (or `canary`), dataset and repetition, as they are in its path.
Place = tuple[str, str, int]


@dataclass(frozen=True)
class Due:
    """A visit that a schedule has, and the runs that it may have made."""

    visit: ScheduledVisit
    runs: tuple[RunSpec, ...]


@dataclass(frozen=True)
class StoredVisit:
    """A finished visit, its directory, and the figures of its runs in their order, with their validity as read.

    `begun` are the names of the folders of all runs that began, those without figures too. `remarks` name what
    was changed in its directory and changes no figure. `cut_records` are those of the runs of power cuts, by folder. `left_out` names
    the metrics of each run that are not known here, and whose figures are not among its runs'.
    """

    record: VisitRecord
    directory: Path
    runs: tuple[RunFigures, ...]
    run_directories: tuple[Path, ...]
    begun: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    cut_records: Mapping[Path, RunRecord] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def has_begun(self, run: RunSpec) -> bool:
        """Whether the visit came to this run, whatever became of it."""
        return any(name.partition("-")[2] == run.id for name in self.begun)


@dataclass(frozen=True)
class SetAside:
    """A visit that is on the disk and is not used; `reasons` name the files. `place` and `attempt` are by its path."""

    directory: Path
    place: Place
    attempt: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """A whole study as it stands on disk; `visits` are in the order of the schedule, then of attempts.

    `nodes` are a fleet's by name; `machine` is then what all of them have. Empty without a fleet. Where the last
    attempt at a visit is `set_aside`, its earlier ones are too: none of them is what the visit came to. `changed` names
    files of the study itself that are not what they were. `search` is what a search asks, `paired` what a study of pairs does; None of any other study.
    """

    directory: Path
    facts: StudyFacts
    machine: StoredMachine
    plan_text: str
    schedule: StudySchedule
    visits: tuple[StoredVisit, ...]
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    set_aside: tuple[SetAside, ...] = ()
    changed: tuple[str, ...] = ()
    search: SearchRecord | None = None
    paired: PairedRecord | None = None

    @property
    def marks(self) -> tuple[str, ...]:
        """Sentences that stand beside every figure: that others made it, that something on the disk is not what it was."""
        aside = [reason for each in self.set_aside for reason in each.reasons]
        remarks = [remark for visit in self.visits for remark in visit.remarks]
        return (
            *((_IMPORTED_MARK,) if self.facts.is_imported else ()),
            *_mark("files of the study itself are not what they were", list(self.changed)),
            *_mark(f"{_visits(len(self.set_aside))} on the disk and not used", aside),
            *_mark("files that no figure is made from are not what they were", remarks),
            *_mark(
                "figures of metrics that this bedplate does not know are left out, and another version may have them",
                [words for visit in self.visits for words in visit.left_out],
            ),
        )


def read_study(path: Path) -> Study:
    """Read a study; StudyError with every reason if it is none, of another format, or its own files are damaged.

    It may be being written meanwhile: a visit that is finished later is not in it.
    """
    layout = StudyLayout(path)
    require_known_format(layout)
    facts = codec.read(StudyFacts, layout.facts)
    schedule, search = read_order(layout)
    scheduled = visits_by_place(schedule)
    visits: list[StoredVisit] = []
    aside: list[SetAside] = []
    for directory in visit_directories(layout.visits):
        try:
            visits.append(read_visit(directory, scheduled))
        except StudyError as error:
            aside.append(SetAside(directory, *by_path(directory), error.reasons))
    visits, earlier = _without_earlier_attempts(visits, aside)
    visits.sort(key=lambda visit: (scheduled[place_of(visit.record)].visit.index, visit.record.key.attempt))
    return Study(
        directory=path,
        facts=facts,
        machine=codec.read(StoredMachine, layout.machine),
        plan_text=codec.read_text(layout.plan),
        schedule=schedule,
        visits=tuple(visits),
        nodes=read_nodes(layout),
        set_aside=(*aside, *earlier),
        changed=changed_top_files(layout, facts),
        search=search,
        paired=read_paired(layout, schedule),
    )


def visit_directories(visits_folder: Path) -> Iterator[Path]:
    """The directories of all finished visits of a study; StudyError where one cannot be listed."""
    try:
        for path in limits.folders_below(visits_folder, levels=3):
            if _ATTEMPT.fullmatch(path.name):
                yield path
    except OSError as error:
        raise StudyError(f"{error.filename} cannot be read: {error.strerror}") from error


def read_visit(directory: Path, scheduled: Mapping[Place, Due]) -> StoredVisit:
    """A finished visit with its figures; StudyError with the reasons why it must not be used."""
    files = VisitFiles(directory)
    record = read_record(files, scheduled)
    begun = tuple(path.name for path in limits.folders_below(directory / "runs"))
    made = [name for name in begun if files.has(f"runs/{name}/run.json")]
    runs: list[RunFigures] = []
    left_out: list[str] = []
    for name in made:
        run, unknown = of_known_metrics(
            as_named_today(as_defined_now(files.record(RunFigures, f"runs/{name}/run.json")))
        )
        runs.append(run)
        if unknown:
            left_out.append(
                f"{', '.join(f'{each:.80}' for each in unknown[:_NAMED])} in {directory / 'runs' / name / 'run.json'}"
            )
    # Read again where they are shown; whether they are what they were is asked here, once.
    for name in begun:
        for file in (file for file in _READ_TOO if files.has(f"runs/{name}/{file}")):
            files.text(f"runs/{name}/{file}")
    cut_records = {
        directory / "runs" / name: files.record(RunRecord, f"runs/{name}/{RECORD_FILE}")
        for name in begun
        if files.has(f"runs/{name}/{POINTS_FILE}") and files.has(f"runs/{name}/{RECORD_FILE}")
    }
    wrong = [
        f"{folder / RECORD_FILE}: {words}"
        for folder, found in cut_records.items()
        for words in wrong_levels(found.spec.levels)
    ]
    due = scheduled[place_of(record)].runs
    wrong += [
        f"{directory / 'runs' / name / 'run.json'}: {words}"
        for name, run in zip(made, runs, strict=True)
        for words in impossible(run, due)
    ]
    wrong += [
        f"{directory / 'runs'} has the run {name!r:.200} {count} times, in {', '.join(made)}"
        for name, count in Counter(run.run for run in runs).items()
        if count > 1
    ]
    if wrong:
        raise StudyError(*wrong)
    return StoredVisit(
        record=record,
        directory=directory,
        runs=tuple(as_read(run, record) for run in runs),
        run_directories=tuple(directory / "runs" / name for name in made),
        begun=begun,
        remarks=files.remarks,
        cut_records=cut_records,
        left_out=tuple(left_out),
    )


def read_record(files: VisitFiles, scheduled: Mapping[Place, Due]) -> VisitRecord:
    """The record of a finished visit; StudyError with the reasons why it must not be used.

    Only names and sizes of its other files are looked at.
    """
    path = files.directory / VISIT_FILE
    if not files.has(VISIT_FILE):
        raise StudyError(f"{path} is missing", *files.damage)
    if files.damage:
        raise StudyError(*files.damage)
    record = files.record(VisitRecord, VISIT_FILE)
    wrong = tuple(f"{path}: {words}" for words in impossible_visit(record))
    if wrong:
        raise StudyError(*wrong)
    if record.sealed and not files.has_checksums:
        raise StudyError(
            f"{files.directory / CHECKSUMS_FILE} is missing; it was there when its visit had ended"
        )
    _require_place(record, path, scheduled)
    return record


def visits_by_place(schedule: StudySchedule) -> dict[Place, Due]:
    """The visits of a schedule by where their attempts are on the disk."""
    return {
        # Earlier versions kept the canary's run among those of its dataset.
        scheduled_place(visit): Due(
            visit,
            (*(schedule.canary_runs if visit.canary else ()), *schedule.runs.get(visit.dataset_id, ())),
        )
        for visit in schedule.visits
    }


def scheduled_place(visit: ScheduledVisit) -> Place:
    """Where the attempts at a visit are on the disk."""
    return (CANARY if visit.canary else visit.cell_id, visit.dataset_id, visit.repetition)


def place_of(record: VisitRecord) -> Place:
    """Which visit of the schedule a record is an attempt at."""
    key = record.key
    return (CANARY if key.canary else key.cell, key.dataset, key.repetition)


def by_path(directory: Path) -> tuple[Place, int]:
    """Which attempt at which visit a directory is, by its path alone."""
    repetition, _, attempt = directory.name.partition(".")
    return (directory.parent.parent.name, directory.parent.name, int(repetition)), int(attempt)


def _require_place(record: VisitRecord, path: Path, scheduled: Mapping[Place, Due]) -> None:
    """That the record is that of the visit whose directory it is in, and the schedule has such a visit."""
    place, attempt = by_path(path.parent)
    if (place_of(record), record.key.attempt) != (place, attempt):
        said = "/".join(map(str, place_of(record)))
        raise StudyError(
            f"{path} is the record of another visit: of {said!r:.300}, attempt {record.key.attempt}"
        )
    known = scheduled.get(place)
    if known is None or known.visit.cell_id != record.key.cell:
        raise StudyError(f"{path} is the record of a visit that schedule.json does not have")


def _without_earlier_attempts(
    visits: Iterable[StoredVisit], aside: Iterable[SetAside]
) -> tuple[list[StoredVisit], list[SetAside]]:
    last = {each.place: each.attempt for each in sorted(aside, key=lambda each: each.attempt)}
    kept: list[StoredVisit] = []
    earlier: list[SetAside] = []
    for visit in visits:
        place, attempt = place_of(visit.record), visit.record.key.attempt
        if attempt < last.get(place, 0):
            words = f"{visit.directory} is not used: a later attempt at the same visit is damaged"
            earlier.append(SetAside(visit.directory, place, attempt, (words,)))
        else:
            kept.append(visit)
    return kept, earlier


def _visits(count: int) -> str:
    return format_count(count, "visit is", "visits are")


def _mark(subject: str, reasons: list[str]) -> tuple[str, ...]:
    if not reasons:
        return ()
    more = len(reasons) - _NAMED
    rest = f"; and {more} more, which `bedplate show STUDY --status` names" if more > 0 else ""
    return (f"{subject}: {'; '.join(reasons[:_NAMED])}{rest}",)


@dataclass(frozen=True)
class Verified:
    """`sealed` visits have checksums, of `files` files; `unsealed` ones have none. `problems` name what is wrong."""

    sealed: int
    unsealed: int
    files: int
    size_bytes: int
    problems: tuple[str, ...]


def verify_study(directory: Path) -> Verified:
    """Read all that can be compared; StudyError if there is no study, or its own files are damaged."""
    layout = StudyLayout(directory)
    require_known_format(layout)
    scheduled = visits_by_place(read_schedule(layout))
    sealed = unsealed = files = size_bytes = 0
    problems: dict[str, None] = dict.fromkeys(changed_top_files(layout, codec.read(StudyFacts, layout.facts)))
    for path in visit_directories(layout.visits):
        try:
            found = VisitFiles(path)
            found.verify()
            problems.update(dict.fromkeys((*found.damage, *found.remarks)))
            sealed += found.has_checksums
            unsealed += not found.has_checksums
            files += found.count
            size_bytes += found.size_bytes
            read_visit(path, scheduled)
        except StudyError as error:
            problems.update(dict.fromkeys(error.reasons))
    return Verified(sealed, unsealed, files, size_bytes, tuple(problems))
