"""Runs a study: visit after visit in the order of its schedule, each one kept as soon as it is done.

A visit that fails is a result and the study goes on, unless all that is left would fail alike (`alike.py`). What the
machine fails is no result, and ends the start. A study that was interrupted, or killed, goes on where it stopped:
what is complete is in its place, what is not is not there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, MachineUnfit
from bedplate.executor.alike import AlikeFailures
from bedplate.executor.choice import runs_here
from bedplate.executor.keeping import Desk, keep, lost_record, summary
from bedplate.executor.known_answers import KnownAnswers
from bedplate.executor.labels import Labels
from bedplate.model import codec
from bedplate.model.visit import Outcome, VisitRecord
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.platforms import LOCAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.executor.display import Display
    from bedplate.executor.keeping import Grounds
    from bedplate.executor.protocol import Executor
    from bedplate.model.cell import Cell
    from bedplate.model.figure import RunFigures
    from bedplate.model.plan import Load, ScheduledVisit
    from bedplate.study.store import StudyStore


@dataclass(frozen=True)
class Tally:
    """How a start of a study ended; `needs_kernel` is what must be booted before it can go on.

    `left_behind` are sentences: which visits are still due although nothing more comes of this start, and why.
    """

    completed: int
    failed: int
    seconds: float
    needs_kernel: str | None = None
    left_behind: tuple[str, ...] = ()


class StudyRun:
    """One start of a study; `run` returns when every visit that was due is in the store."""

    def __init__(self, store: StudyStore, grounds: Grounds, executor: Executor, display: Display) -> None:
        self._store = store
        self._grounds = grounds
        self._executor = executor
        self._display = display
        self._labels = Labels(grounds.expansion)
        self._answers = KnownAnswers.of_study(store.layout.visits)
        self._desk = Desk(store, grounds, self._answers)
        # Estimated seconds are wrong on every machine, but wrong by much the same factor.
        self._estimated_s = 0.0
        self._taken_s = 0.0

    def run(self, due: Sequence[ScheduledVisit]) -> Tally:
        """Live through the visits that are due, in order; on this machine up to one of another kernel."""
        completed = failed = 0
        started = time.monotonic()
        needs_kernel = None
        alike = AlikeFailures()
        left_behind: tuple[str, ...] = ()
        try:
            for number, visit in enumerate(due):
                needs_kernel = self._missing_kernel(visit)
                if needs_kernel is not None:
                    break
                record = self._visit(visit, number=number + 1, of=len(due), left=due[number:])
                completed += record.outcome is Outcome.COMPLETED
                failed += record.outcome is not Outcome.COMPLETED
                alike.add(record)
                left_behind = alike.verdict(
                    (self._cell(later), later.dataset_id) for later in due[number + 1 :]
                )
                if left_behind:
                    break
        finally:
            self._executor.close()
        return Tally(completed, failed, time.monotonic() - started, needs_kernel, left_behind)

    def _missing_kernel(self, visit: ScheduledVisit) -> str | None:
        """The kernel that must run here before this visit; None where it does, or guests bring theirs."""
        if self._executor.name != LOCAL:
            return None
        cell, _ = self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return None if runs_here(cell.kernel) else cell.kernel.release

    def _visit(
        self, visit: ScheduledVisit, *, number: int, of: int, left: Sequence[ScheduledVisit]
    ) -> VisitRecord:
        cell, load = self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        label = self._labels.of(cell, load, visit)
        self._display.visit_begins(label, number=number, of=of, seconds_left=self._seconds_left(left))
        started = time.monotonic()
        try:
            record, figures = self._live(visit, cell, load)
        except (OSError, MachineUnfit) as error:
            where = self._store.layout.directory
            if isinstance(error, MachineUnfit):
                reasons = error.reasons
            else:
                reasons = (f"{error.filename or where}: {error.strerror or error}",)
            raise MachineUnfit(
                *reasons,
                f"the visit under way is not in {where}, everything before it is. Mend that, and give the same command "
                "again",
            ) from error
        seconds = time.monotonic() - started
        self._taken_s += seconds
        self._estimated_s += self._estimate(visit)
        self._display.visit_ends(record.outcome.value, seconds, summary(record, figures))
        return record

    def _cell(self, visit: ScheduledVisit) -> Cell:
        return self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)[0]

    def _live(self, visit: ScheduledVisit, cell: Cell, load: Load) -> tuple[VisitRecord, list[RunFigures]]:
        """The visit as it stands in the store; OSError where the study cannot be written, MachineUnfit."""
        started = time.monotonic()
        with self._store.attempt(visit) as attempt:
            request = self._desk.request(visit, attempt.number, cell, load)
            file = attempt.directory / "visit.json"
            try:
                self._executor.run_visit(request, attempt.directory, self._display.event, boot=visit.boot)
                record = codec.read(VisitRecord, file)
            except MachineUnfit:
                raise
            except BedplateError as error:
                record = lost_record(request, error.reasons, self._executor.name, time.monotonic() - started)
                codec.write(file, record)
            record, figures = keep(attempt, record, seconds_before=time.monotonic() - started)
            self._answers.learn(sorted(attempt.directory.glob("runs/*/record.json")))
            attempt.finish()
        return record, figures

    def _estimate(self, visit: ScheduledVisit) -> float:
        cell, load = self._grounds.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return visit_seconds(
            self._grounds.plan, cell, load, canary=visit.canary, executor=self._executor.name
        )

    def _seconds_left(self, left: Sequence[ScheduledVisit]) -> float:
        correction = self._taken_s / self._estimated_s if self._estimated_s else 1.0
        return correction * sum(self._estimate(visit) for visit in left)
