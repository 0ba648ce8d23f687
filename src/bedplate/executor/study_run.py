"""Runs a study: visit after visit in the order of its schedule, each one kept as soon as it is done.

A visit that fails is a result and the study goes on. A study that was interrupted, or killed, goes on
where it stopped: what is complete is in its place, what is not is not there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, RequirementMissing
from bedplate.executor.choice import runs_here
from bedplate.executor.known_answers import KnownAnswers
from bedplate.executor.labels import Labels
from bedplate.executor.state import state_directory
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import digest
from bedplate.model.visit import FORMAT_VERSION, Outcome, VisitKey, VisitRecord, VisitRequest
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.platforms import LOCAL
from bedplate.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.executor.display import Display
    from bedplate.executor.protocol import Executor
    from bedplate.model.cell import BuildLevels, Cell, Dataset
    from bedplate.model.figure import RunFigures
    from bedplate.model.plan import Expansion, Load, Plan, ScheduledVisit
    from bedplate.model.visit import EngineBuild, ScratchDevice
    from bedplate.study.store import StudyStore

# The time that a run without transactions is about.
_TIMES = ("load_total_s", "streams_s", "queries_total_s", "lmdb_tests_s")
# In a summary of one line.
_SHOWN_REASON_CHARACTERS = 160
_WHOLE_SECONDS_FROM = 10


@dataclass(frozen=True)
class Grounds:
    """What all visits of a start share; `inputs` are paths of what was made for a dataset beforehand."""

    plan: Plan
    expansion: Expansion
    builds: Mapping[BuildLevels, EngineBuild]
    native_drivers: Mapping[str, str]
    erase: tuple[str, ...]
    erase_foreign: bool
    inputs: Mapping[Dataset, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tally:
    """How a start of a study ended; `needs_kernel` is what must be booted before it can go on."""

    completed: int
    failed: int
    seconds: float
    needs_kernel: str | None = None


class StudyRun:
    """One start of a study; `run` returns when every visit that was due is in the store."""

    def __init__(self, store: StudyStore, grounds: Grounds, executor: Executor, display: Display) -> None:
        self._store = store
        self._grounds = grounds
        self._executor = executor
        self._display = display
        self._labels = Labels(grounds.expansion)
        self._answers = KnownAnswers.of_study(store.layout.visits)
        # Estimated seconds are wrong on every machine, but wrong by much the same factor.
        self._estimated_s = 0.0
        self._taken_s = 0.0

    def run(self, due: Sequence[ScheduledVisit]) -> Tally:
        """Live through the visits that are due, in order; on this machine up to one of another kernel."""
        completed = failed = 0
        started = time.monotonic()
        needs_kernel = None
        try:
            for number, visit in enumerate(due):
                needs_kernel = self._missing_kernel(visit)
                if needs_kernel is not None:
                    break
                outcome = self._visit(visit, number=number + 1, of=len(due), left=due[number:])
                completed += outcome is Outcome.COMPLETED
                failed += outcome is not Outcome.COMPLETED
        finally:
            self._executor.close()
        return Tally(completed, failed, time.monotonic() - started, needs_kernel)

    def _missing_kernel(self, visit: ScheduledVisit) -> str | None:
        """The kernel that must run here before this visit; None where it does, or guests bring theirs."""
        if self._executor.name != LOCAL:
            return None
        cell, _ = self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return None if runs_here(cell.kernel) else cell.kernel.release

    def _visit(
        self, visit: ScheduledVisit, *, number: int, of: int, left: Sequence[ScheduledVisit]
    ) -> Outcome:
        cell, load = self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        label = self._labels.of(cell, load, visit)
        self._display.visit_begins(label, number=number, of=of, seconds_left=self._seconds_left(left))
        started = time.monotonic()
        try:
            record, figures = self._live(visit, cell, load)
        except OSError as error:
            raise RequirementMissing(
                f"{error.filename or self._store.layout.directory}: {error.strerror or error}; the visit under "
                "way is not in the study, everything before it is. Mend that, and give the same command again"
            ) from error
        seconds = time.monotonic() - started
        self._taken_s += seconds
        self._estimated_s += self._estimate(visit)
        self._display.visit_ends(record.outcome.value, seconds, _summary(record, figures))
        return record.outcome

    def _live(self, visit: ScheduledVisit, cell: Cell, load: Load) -> tuple[VisitRecord, list[RunFigures]]:
        """The visit as it stands in the store; OSError where the study cannot be written."""
        started = time.monotonic()
        with self._store.attempt(visit) as attempt:
            request = self._request(visit, attempt.number, cell, load)
            file = attempt.directory / "visit.json"
            try:
                self._executor.run_visit(request, attempt.directory, self._display.event, boot=visit.boot)
                record = codec.read(VisitRecord, file)
            except BedplateError as error:
                record = _lost(request, error, self._executor.name, time.monotonic() - started)
                codec.write(file, record)
            figures, problems = _make_figures(attempt.directory, record)
            if problems:
                record = replace(
                    record,
                    outcome=Outcome.FAILED,
                    reasons=(*record.reasons, *problems),
                    failed_step=record.failed_step or "figures",
                )
            record = replace(record, whole_seconds=time.monotonic() - started)
            codec.write(file, record)
            self._answers.learn(sorted(attempt.directory.glob("runs/*/record.json")))
            attempt.finish()
        return record, figures

    def _request(self, visit: ScheduledVisit, attempt: int, cell: Cell, load: Load) -> VisitRequest:
        grounds = self._grounds
        scratch = self._allowed(grounds.plan.scratch_device_for(canary=visit.canary))
        journal = grounds.plan.journal_device_for(cell.filesystem)
        if scratch.is_image and scratch.image_directory is None:
            scratch = replace(scratch, image_directory=str(self._store.scratch_directory))
        return VisitRequest(
            format_version=FORMAT_VERSION,
            key=VisitKey(visit.cell_id, visit.dataset_id, visit.repetition, attempt, canary=visit.canary),
            cell=cell,
            dataset=load.dataset,
            runs=load.runs,
            scratch_device=scratch,
            journal_device=None if journal is None else self._allowed(journal),
            build=grounds.builds[cell.build] if cell.build.has_postgresql else None,
            native_drivers=grounds.native_drivers,
            inputs=grounds.inputs.get(load.dataset, {}),
            expected_answers=self._answers.digests,
            answer_sources=self._answers.sources,
            state_directory=str(state_directory()),
            # The same load for every cell of a repetition, another one in the next.
            seed=int(digest([grounds.plan.seed, visit.repetition, visit.dataset_id], length=7), 16),
            provenance={
                "machine": self._store.facts.machine_identity,
                "plan": grounds.plan.digest,
            },
        )

    def _allowed(self, device: ScratchDevice) -> ScratchDevice:
        return replace(device, erase=self._grounds.erase, erase_foreign=self._grounds.erase_foreign)

    def _estimate(self, visit: ScheduledVisit) -> float:
        cell, load = self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return visit_seconds(
            self._grounds.plan, cell, load, canary=visit.canary, executor=self._executor.name
        )

    def _seconds_left(self, left: Sequence[ScheduledVisit]) -> float:
        correction = self._taken_s / self._estimated_s if self._estimated_s else 1.0
        return correction * sum(self._estimate(visit) for visit in left)


def _make_figures(directory: Path, record: VisitRecord) -> tuple[list[RunFigures], list[str]]:
    """The figures of every run that left a record, and why some could not be made."""
    figures: list[RunFigures] = []
    problems: list[str] = []
    for name in record.runs:
        run = directory / "runs" / name
        if not (run / "record.json").exists():
            continue  # the visit ended within it, and says why
        try:
            figures.append(make_figures(directory, run))
        except OSError:
            raise
        except BedplateError as error:
            problems += [f"{name}: {reason}" for reason in error.reasons]
        except Exception as error:  # noqa: BLE001 -- the raw record stays, and a bug must not cost the study
            problems.append(f"{name}: its figures could not be made, please report: {error!r}")
    return figures, problems


def _lost(request: VisitRequest, error: BedplateError, executor: str, seconds: float) -> VisitRecord:
    """The record of a visit that left none: what is known is why."""
    return VisitRecord(
        format_version=FORMAT_VERSION,
        key=request.key,
        cell=request.cell,
        dataset=request.dataset,
        outcome=Outcome.FAILED,
        reasons=error.reasons,
        failed_step="visit process",
        started_wall_s=time.time() - seconds,
        seconds=seconds,
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        executor=executor,
        build_digest=None if request.build is None else request.build.digest,
        provenance=request.provenance,
    )


def _summary(record: VisitRecord, figures: Sequence[RunFigures]) -> str:
    """What a person wants to see of a visit that has just ended."""
    if record.outcome is not Outcome.COMPLETED:
        text = "; ".join(record.reasons)
        return text if len(text) <= _SHOWN_REASON_CHARACTERS else f"{text[: _SHOWN_REASON_CHARACTERS - 1]}…"
    told = [(run, words) for run in figures if (words := _speed(run)) is not None]
    parts = []
    for index, (run, words) in enumerate(told):
        count = _queries(run)
        # `cold 93 s, warm 80 s (22 of 22)`: said once of passes that are alike.
        again = index + 1 < len(told) and _queries(told[index + 1][0]) == count
        doubt = "" if run.validity.value == "valid" else f"({run.validity.value})"
        parts.append(" ".join(filter(None, (run.run, words, "" if again else count, doubt))))
    # A reader of the log shall not take it for the speed of anything real.
    return ", ".join(parts) + (" (emulated processors)" if parts and record.emulated else "")


def _speed(run: RunFigures) -> str | None:
    """What a run is about, as `24,310 tps` or `93 s`; `> 93 s` where a part was stopped; None without either."""
    whole = {row.metric: row for row in run.figures if row.phase == "measure" and not row.item}
    tps = whole.get("tps")
    if tps is not None and tps.value is not None:
        return f"{tps.value:,.0f} tps"
    for row in (whole[metric] for metric in _TIMES if metric in whole):
        seconds = row.limit if row.value is None else row.value
        if seconds is not None:
            words = format_duration(seconds) if seconds >= _WHOLE_SECONDS_FROM else f"{seconds:.1f} s"
            return f"> {words}" if row.value is None else words
    return None


def _queries(run: RunFigures) -> str:
    """How many queries ended within their limit, as `(22 of 22)`; nothing of a run without queries."""
    completed = next((row.value for row in run.figures if row.metric == "queries_completed"), None)
    asked = sum(row.metric == "query_s" and bool(row.item) for row in run.figures)
    return "" if completed is None else f"({completed:.0f} of {asked})"
