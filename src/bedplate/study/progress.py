"""Where a study stands, read from the disk while it may be being written."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec, no_links
from bedplate.model.plan import pruned_lines
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, RunRecord, Timing, VisitRecord
from bedplate.study.checksums import VisitFiles, changed_top_files
from bedplate.study.doubts import is_doubted
from bedplate.study.layout import UNFINISHED, StudyLayout
from bedplate.study.modes import MODE_METRICS, in_other_modes
from bedplate.study.records import HistoryEntry, StudyFacts
from bedplate.study.schedule import read_schedule
from bedplate.study.stored import (
    SetAside,
    by_path,
    read_record,
    read_visit,
    visit_directories,
    visits_by_place,
)
from bedplate.study.version import require_known_format
from bedplate.study.writer import writer_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.study.stored import Due, Place

# Recorded and not reported; every other phase is.
_WARMUP = "warmup"
# The phase of the figures of a whole run.
_WHOLE = "measure"


@dataclass(frozen=True)
class FailedVisit:
    """A visit that failed in its last attempt, and where to look."""

    visit: str
    step: str
    reasons: tuple[str, ...]
    logs: str


@dataclass(frozen=True)
class Progress:
    """Counts of visits by their last attempt.

    `measured_s` is the time inside the phases of finished visits that figures are made of: all but the warm-up.
    `visits_s` is the wall time of those visits, with boots, hand-over and figures; their ratio says how well a
    study uses its time. `steps` are means per visit, the longest first, without the runs themselves.
    `emulated`: some visit had emulated processors. `suspect` counts runs of the visits' last
    attempts that are suspect or of unknown validity. `damaged` counts
    visits whose last attempt is among the `set_aside`; `remarks` name changed files that no figure is made from, `changed`
    those of the study itself. `pruned` are lines about the cells that could not be, with the reasons.
    """

    title: str
    visits: int
    completed: int
    failed: int
    left: int
    writer: str | None
    unfinished: str | None
    measured_s: float
    visits_s: float
    measured_share: float | None
    seconds_left: float | None
    emulated: bool
    steps: tuple[Timing, ...]
    failures: tuple[FailedVisit, ...]
    history: tuple[HistoryEntry, ...]
    suspect: int = 0
    damaged: int = 0
    set_aside: tuple[SetAside, ...] = ()
    remarks: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Run:
    """A run as far as its validity needs it; `values` are those that tell its mode, none where it did not complete."""

    name: str
    doubted: bool
    values: Mapping[str, float]


@dataclass(frozen=True)
class _Done:
    """A finished attempt, as far as its progress needs it."""

    path: Path
    record: VisitRecord
    measured_s: float
    runs: tuple[_Run, ...]
    remarks: tuple[str, ...]


def read_progress(directory: Path) -> Progress:
    """The progress of a study; StudyError if there is none."""
    layout = StudyLayout(directory)
    require_known_format(layout)
    facts = codec.read(StudyFacts, layout.facts)
    schedule = read_schedule(layout)
    scheduled = visits_by_place(schedule)
    last: dict[Place, tuple[int, _Done | None]] = {}
    aside: list[SetAside] = []
    for path in visit_directories(layout.visits):
        place, attempt = by_path(path)
        done = None
        try:
            done = _done(path, scheduled)
        except StudyError as error:
            aside.append(SetAside(path, place, attempt, error.reasons))
        if place in scheduled and attempt > last.get(place, (0, None))[0]:
            last[place] = (attempt, done)
    in_order = sorted(last, key=lambda place: scheduled[place].visit.index)
    finished = [done for place in in_order if (done := last[place][1]) is not None]
    records = [done.record for done in finished]
    measured_s = sum(done.measured_s for done in finished)
    visits_s = sum(record.whole_seconds or record.seconds for record in records)
    left = len(schedule.visits) - len(last)
    attempts = no_links.folders_below(layout.visits, levels=3)
    unfinished = next((path for path in attempts if path.name.endswith(UNFINISHED)), None)
    return Progress(
        title=facts.title,
        visits=len(schedule.visits),
        completed=sum(record.outcome is Outcome.COMPLETED for record in records),
        failed=sum(record.outcome is not Outcome.COMPLETED for record in records),
        left=left,
        writer=writer_of(layout),
        unfinished=None if unfinished is None else str(unfinished.relative_to(layout.visits)),
        measured_s=measured_s,
        visits_s=visits_s,
        # Nobody recorded the phases of what others made.
        measured_share=measured_s / visits_s if visits_s and not facts.is_imported else None,
        seconds_left=left * visits_s / len(records) if records else None,
        emulated=any(record.emulated for record in records),
        steps=_mean_steps(records),
        failures=tuple(_failure(done) for done in finished if done.record.outcome is not Outcome.COMPLETED),
        history=facts.history,
        suspect=_doubted(finished),
        damaged=len(last) - len(finished),
        set_aside=tuple(aside),
        remarks=tuple(remark for done in finished for remark in done.remarks),
        changed=changed_top_files(layout, facts),
        pruned=tuple(pruned_lines(schedule.pruned)),
    )


def _done(path: Path, scheduled: Mapping[Place, Due]) -> _Done:
    files = VisitFiles(path)
    record = read_record(files, scheduled)
    if not files.has_checksums:
        # Nothing else says that its records are what bedplate wrote.
        read_visit(path, scheduled)
    phases = [
        phase
        for name in record.runs
        if files.has(f"runs/{name}/record.json")
        for phase in files.record(RunRecord, f"runs/{name}/record.json").phases
        if phase.name != _WARMUP
    ]
    return _Done(
        path=path,
        record=record,
        measured_s=sum(phase.end_monotonic_s - phase.start_monotonic_s for phase in phases),
        runs=tuple(_run(files, name, record) for name in files.names("run.json")),
        remarks=files.remarks,
    )


def _run(files: VisitFiles, name: str, record: VisitRecord) -> _Run:
    """Read without making records of its hundred figures: `status` may be asked every minute."""
    source = str(files.directory / name)
    run = codec.parse(files.text(name), source=source)
    if not isinstance(run, dict) or not isinstance(run.get("figures", []), list):
        raise StudyError(f"{source}: expected an object (RunFigures), found {run!r:.200}")
    outcome = run.get("outcome")
    values = {
        each["metric"]: each["value"]
        for each in run.get("figures", [])
        if isinstance(each, dict)
        and isinstance(each.get("metric"), str)
        and each["metric"] in MODE_METRICS
        and (each.get("phase"), each.get("item")) == (_WHOLE, "")
        and isinstance(each.get("value"), int | float)
    }
    return _Run(
        name=str(run.get("run")),
        doubted=is_doubted(outcome, run.get("validity"), record),
        values=values if outcome == Outcome.COMPLETED else {},
    )


def _doubted(finished: Sequence[_Done]) -> int:
    """How many runs are doubted, by themselves or beside their repetitions."""
    runs = [(done.record.key, run) for done in finished if not done.record.key.canary for run in done.runs]
    others = in_other_modes([((key.cell, key.dataset, run.name), run.values) for key, run in runs])
    return sum(run.doubted or place in others for place, (_, run) in enumerate(runs))


def _mean_steps(records: list[VisitRecord]) -> tuple[Timing, ...]:
    seconds: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for timing in record.timings:
            if not timing.step.startswith("run "):
                seconds[timing.step].append(timing.seconds)
    means = [Timing(step, sum(values) / len(values)) for step, values in seconds.items()]
    return tuple(sorted(means, key=lambda timing: -timing.seconds))


def _failure(done: _Done) -> FailedVisit:
    record = done.record
    what = "canary" if record.key.canary else record.cell.variant
    return FailedVisit(
        visit=f"{what}, repetition {record.key.repetition}, attempt {record.key.attempt}",
        step=record.failed_step or "unknown step",
        reasons=sentences(record.reasons),
        logs=str(done.path / "logs"),
    )
