"""Where a study stands, read from the disk while it may be being written."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.visit import Outcome, RunRecord, Timing, Validity, VisitRecord
from bedplate.study.layout import UNFINISHED, StudyLayout, is_study
from bedplate.study.records import HistoryEntry, StudyFacts, StudySchedule
from bedplate.study.writer import writer_of

# Recorded and not reported; every other phase is.
_WARMUP = "warmup"


@dataclass(frozen=True)
class Failure:
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
    `emulated`: some visit had emulated processors. `suspect` counts runs of the visits' last attempts.
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
    failures: tuple[Failure, ...]
    history: tuple[HistoryEntry, ...]
    suspect: int = 0


def read_progress(directory: Path) -> Progress:
    """The progress of a study; StudyError if there is none."""
    if not is_study(directory):
        raise StudyError(f"{directory} is not a study: it has no study.json")
    layout = StudyLayout(directory)
    facts = codec.read(StudyFacts, layout.facts)
    schedule = codec.read(StudySchedule, layout.schedule)
    done: list[tuple[Path, VisitRecord]] = []
    for visit in schedule.visits:
        attempts = layout.attempts_at(visit)
        if attempts:
            path = attempts[max(attempts)]
            done.append((path, codec.read(VisitRecord, path / "visit.json")))
    records = [record for _, record in done]
    measured_s = sum(_measured_seconds(path, record) for path, record in done)
    visits_s = sum(record.whole_seconds or record.seconds for record in records)
    left = len(schedule.visits) - len(done)
    unfinished = next(layout.visits.glob(f"*/*/*{UNFINISHED}"), None)
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
        measured_share=measured_s / visits_s if visits_s else None,
        seconds_left=left * visits_s / len(records) if records else None,
        emulated=any(record.emulated for record in records),
        steps=_mean_steps(records),
        failures=tuple(
            _failure(path, record) for path, record in done if record.outcome is not Outcome.COMPLETED
        ),
        history=facts.history,
        suspect=sum(_suspect_runs(path) for path, record in done if not record.key.canary),
    )


def _suspect_runs(path: Path) -> int:
    """Read without its hundred figures: `status` may be asked every minute."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in path.glob("runs/*/run.json")]
    return sum(run.get("validity") == Validity.SUSPECT for run in found)


def _measured_seconds(path: Path, record: VisitRecord) -> float:
    total = 0.0
    for name in record.runs:
        file = path / "runs" / name / "record.json"
        if file.exists():
            phases = codec.read(RunRecord, file).phases
            total += sum(p.end_monotonic_s - p.start_monotonic_s for p in phases if p.name != _WARMUP)
    return total


def _mean_steps(records: list[VisitRecord]) -> tuple[Timing, ...]:
    seconds: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for timing in record.timings:
            if not timing.step.startswith("run "):
                seconds[timing.step].append(timing.seconds)
    means = [Timing(step, sum(values) / len(values)) for step, values in seconds.items()]
    return tuple(sorted(means, key=lambda timing: -timing.seconds))


def _failure(path: Path, record: VisitRecord) -> Failure:
    what = "canary" if record.key.canary else record.cell.variant
    return Failure(
        visit=f"{what}, repetition {record.key.repetition}, attempt {record.key.attempt}",
        step=record.failed_step or "unknown step",
        reasons=record.reasons,
        logs=str(path / "logs"),
    )
