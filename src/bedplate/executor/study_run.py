"""Runs a study: visit after visit in the order of its schedule, each one kept as soon as it is done.

A visit that fails is a result and the study goes on. A study that was interrupted, or killed, goes on
where it stopped: what is complete is in its place, what is not is not there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.executor.state import state_directory
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import digest
from bedplate.model.visit import FORMAT_VERSION, Outcome, VisitKey, VisitRecord, VisitRequest
from bedplate.plan.estimate import visit_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.executor.display import Display
    from bedplate.executor.protocol import Executor
    from bedplate.model.cell import BuildLevels, Cell
    from bedplate.model.figure import RunFigures
    from bedplate.model.plan import Expansion, Load, Plan, ScheduledVisit
    from bedplate.model.visit import EngineBuild
    from bedplate.study.store import StudyStore

# In a summary of one line.
_SHOWN_REASON_CHARACTERS = 160


@dataclass(frozen=True)
class Grounds:
    """What all visits of a start share."""

    plan: Plan
    expansion: Expansion
    builds: Mapping[BuildLevels, EngineBuild]
    native_drivers: Mapping[str, str]
    erase: tuple[str, ...]
    erase_foreign: bool


@dataclass(frozen=True)
class Tally:
    """How a start of a study ended."""

    completed: int
    failed: int
    seconds: float


class StudyRun:
    """One start of a study; `run` returns when every visit that was due is in the store."""

    def __init__(self, store: StudyStore, grounds: Grounds, executor: Executor, display: Display) -> None:
        self._store = store
        self._grounds = grounds
        self._executor = executor
        self._display = display
        # Estimated seconds are wrong on every machine, but wrong by much the same factor.
        self._estimated_s = 0.0
        self._taken_s = 0.0

    def run(self, due: Sequence[ScheduledVisit]) -> Tally:
        """Live through the visits that are due, in order."""
        completed = failed = 0
        started = time.monotonic()
        for number, visit in enumerate(due):
            outcome = self._visit(visit, number=number + 1, of=len(due), left=due[number:])
            completed += outcome is Outcome.COMPLETED
            failed += outcome is not Outcome.COMPLETED
        return Tally(completed, failed, time.monotonic() - started)

    def _visit(
        self, visit: ScheduledVisit, *, number: int, of: int, left: Sequence[ScheduledVisit]
    ) -> Outcome:
        cell, load = self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        label = (
            f"canary {visit.repetition}"
            if visit.canary
            else f"{cell.variant} · repetition {visit.repetition}"
        )
        self._display.visit_begins(label, number=number, of=of, seconds_left=self._seconds_left(left))
        started = time.monotonic()
        with self._store.attempt(visit) as attempt:
            request = self._request(visit, attempt.number, cell, load)
            try:
                self._executor.run_visit(request, attempt.directory, self._display.event)
            except BedplateError as error:
                codec.write(
                    attempt.directory / "visit.json", _lost(request, error, time.monotonic() - started)
                )
            record = codec.read(VisitRecord, attempt.directory / "visit.json")
            figures = [
                make_figures(attempt.directory, attempt.directory / "runs" / name) for name in record.runs
            ]
            attempt.finish()
        seconds = time.monotonic() - started
        self._taken_s += seconds
        self._estimated_s += self._estimate(visit)
        self._display.visit_ends(record.outcome.value, seconds, _summary(record, figures))
        return record.outcome

    def _request(self, visit: ScheduledVisit, attempt: int, cell: Cell, load: Load) -> VisitRequest:
        grounds = self._grounds
        scratch = replace(
            grounds.plan.scratch_device_for(canary=visit.canary),
            erase=grounds.erase,
            erase_foreign=grounds.erase_foreign,
        )
        if scratch.is_image and scratch.image_directory is None:
            scratch = replace(scratch, image_directory=str(self._store.scratch_directory))
        return VisitRequest(
            format_version=FORMAT_VERSION,
            key=VisitKey(visit.cell_id, visit.dataset_id, visit.repetition, attempt, canary=visit.canary),
            cell=cell,
            dataset=load.dataset,
            runs=load.runs,
            scratch_device=scratch,
            build=grounds.builds[cell.build],
            native_drivers=grounds.native_drivers,
            state_directory=str(state_directory()),
            # The same load for every cell of a repetition, another one in the next.
            seed=int(digest([grounds.plan.seed, visit.repetition, visit.dataset_id], length=7), 16),
            provenance={
                "machine": self._store.facts.machine_identity,
                "plan": grounds.plan.digest,
            },
        )

    def _estimate(self, visit: ScheduledVisit) -> float:
        cell, load = self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return visit_seconds(self._grounds.plan, cell, load, canary=visit.canary)

    def _seconds_left(self, left: Sequence[ScheduledVisit]) -> float:
        correction = self._taken_s / self._estimated_s if self._estimated_s else 1.0
        return correction * sum(self._estimate(visit) for visit in left)


def _lost(request: VisitRequest, error: BedplateError, seconds: float) -> VisitRecord:
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
        executor="local",
        build_digest=request.build.digest,
    )


def _summary(record: VisitRecord, figures: Sequence[RunFigures]) -> str:
    """What a person wants to see of a visit that has just ended."""
    if record.outcome is not Outcome.COMPLETED:
        return "; ".join(record.reasons)[:_SHOWN_REASON_CHARACTERS]
    parts = []
    for run in figures:
        tps = next((row.value for row in run.figures if row.metric == "tps" and row.phase == "measure"), None)
        if tps is not None:
            parts.append(
                f"{run.run} {tps:,.0f} tps"
                + ("" if run.validity.value == "valid" else f" ({run.validity.value})")
            )
    return ", ".join(parts)
