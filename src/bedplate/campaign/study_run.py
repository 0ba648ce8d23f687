"""Runs a study: visit after visit in the order of its schedule, each one kept as soon as it is done.

A visit that fails is a result and the study goes on, unless all that is left would fail alike (`model/alike.py`). What the
machine fails is no result, and ends the start. A study that was interrupted, or killed, goes on where it stopped:
what is complete is in its place, what is not is not there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bedplate.campaign.choice import runs_here
from bedplate.campaign.keeping import VisitRequests, keep, summary
from bedplate.campaign.known_answers import KnownAnswers
from bedplate.campaign.labels import Labels
from bedplate.errors import BedplateError, MachineUnfit
from bedplate.executors.lost import lost_record
from bedplate.executors.protocol import StartOutcome
from bedplate.host.interruption import held
from bedplate.model import codec
from bedplate.model.alike import AlikeFailures
from bedplate.model.reason import reasons_of
from bedplate.model.visit import Outcome, VisitRecord
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.platforms import LOCAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.campaign.display import Display
    from bedplate.campaign.keeping import SharedInputs
    from bedplate.executors.protocol import VisitRunner
    from bedplate.model.cell import Cell
    from bedplate.model.figure import RunFigures
    from bedplate.model.plan import Load, ScheduledVisit
    from bedplate.study.store import StudyStore


class StudyRun:
    """One start of a study; `run` returns when every visit that was due is in the store."""

    def __init__(
        self, store: StudyStore, shared: SharedInputs, runner: VisitRunner, display: Display
    ) -> None:
        self._store = store
        self._shared = shared
        self._runner = runner
        self._display = display
        self._labels = Labels(shared.expansion)
        self._answers = KnownAnswers.of_study(store.layout.visits)
        self._requests = VisitRequests(store, shared, self._answers)
        # Estimated seconds are wrong on every machine, but wrong by much the same factor.
        self._estimated_s = 0.0
        self._taken_s = 0.0

    def run(self, due: Sequence[ScheduledVisit]) -> StartOutcome:
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
                    (self._cell(later), later.dataset_id, later.node) for later in due[number + 1 :]
                )
                if left_behind:
                    break
        finally:
            # A guest, its disks and its folder: half of that given back is left behind.
            with held():
                self._runner.close()
        return StartOutcome(completed, failed, time.monotonic() - started, needs_kernel, left_behind)

    def _missing_kernel(self, visit: ScheduledVisit) -> str | None:
        """The kernel that must run here before this visit; None where it does, or guests bring theirs."""
        if self._runner.name != LOCAL:
            return None
        cell, _ = self._shared.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return None if runs_here(cell.kernel) else cell.kernel.release

    def _visit(
        self, visit: ScheduledVisit, *, number: int, of: int, left: Sequence[ScheduledVisit]
    ) -> VisitRecord:
        cell, load = self._shared.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
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
        return self._shared.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)[0]

    def _live(self, visit: ScheduledVisit, cell: Cell, load: Load) -> tuple[VisitRecord, list[RunFigures]]:
        """The visit as it stands in the store; OSError where the study cannot be written, MachineUnfit."""
        started = time.monotonic()
        with self._store.attempt(visit) as attempt:
            request = self._requests.request(visit, attempt.number, cell, load)
            file = attempt.directory / "visit.json"
            try:
                self._runner.run_visit(request, attempt.directory, self._display.event, boot=visit.boot)
                record = codec.read(VisitRecord, file)
            except MachineUnfit:
                raise
            except BedplateError as error:
                record = lost_record(
                    request, reasons_of(error), self._runner.name, time.monotonic() - started
                )
                codec.write(file, record)
            record, figures = keep(attempt, record, seconds_before=time.monotonic() - started)
            self._answers.learn(sorted(attempt.directory.glob("runs/*/record.json")))
            attempt.finish()
        return record, figures

    def _estimate(self, visit: ScheduledVisit) -> float:
        cell, load = self._shared.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return visit_seconds(self._shared.plan, cell, load, canary=visit.canary, executor=self._runner.name)

    def _seconds_left(self, left: Sequence[ScheduledVisit]) -> float:
        correction = self._taken_s / self._estimated_s if self._estimated_s else 1.0
        return correction * sum(self._estimate(visit) for visit in left)
