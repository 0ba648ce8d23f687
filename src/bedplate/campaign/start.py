"""One start of a study, as its executor gets it: what is due, and what all its visits share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bedplate.campaign.alike import AlikeFailures
from bedplate.campaign.dataset_inputs import MadeAnyway
from bedplate.campaign.keeping import SharedInputs, VisitRequests, keep, summary
from bedplate.campaign.known_answers import KnownAnswers
from bedplate.campaign.labels import Labels
from bedplate.campaign.latencies import refuse_latencies
from bedplate.campaign.preparation import drivers_of_plan, prepare_builds, prepare_inputs, prepare_programs
from bedplate.campaign.study_run import StudyRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.campaign.consent import Consent
    from bedplate.campaign.display import Display
    from bedplate.campaign.planning import PlannedStudy
    from bedplate.executors.protocol import StartOutcome, VisitRunner
    from bedplate.model.cell import Cell
    from bedplate.model.plan import Expansion, Load, Plan, ScheduledVisit
    from bedplate.model.visit import ScratchDevice, VisitRecord, VisitRequest
    from bedplate.study.store import Attempt, StudyStore


@dataclass(frozen=True)
class StudyStart:
    """The visits that are due, in order; `listener` shows them."""

    store: StudyStore
    shared: SharedInputs
    listener: Display
    due: Sequence[ScheduledVisit]

    @classmethod
    def prepared(
        cls,
        found: PlannedStudy,
        store: StudyStore,
        due: Sequence[ScheduledVisit],
        consent: Consent,
        display: Display,
        *,
        cells: Sequence[Cell] | None = None,
    ) -> StudyStart:
        """With builds, drivers and data, each made now where the cache lacks it; `cells` are those that are due, None for all."""
        cells = found.cells if cells is None else cells
        builds = prepare_builds(cells, display)
        drivers = drivers_of_plan(found.plan, found.workloads)
        refuse_latencies(cells, drivers)
        shared = SharedInputs(
            plan=found.plan,
            expansion=found.expansion,
            builds=builds,
            native_drivers={
                **drivers,
                **prepare_programs(found.plan.engines),
            },
            inputs=prepare_inputs(found.datasets, display, MadeAnyway(builds, cells, found.plan.archives)),
            erase=consent.erase,
            erase_foreign=consent.erase_foreign,
        )
        return cls(store, shared, display, due)

    @property
    def plan(self) -> Plan:
        """What is measured."""
        return self.shared.plan

    @property
    def expansion(self) -> Expansion:
        """The cells that the due visits are of."""
        return self.shared.expansion

    def allowed(self, device: ScratchDevice) -> ScratchDevice:
        """A device as visits get it: with what may be erased."""
        return self.shared.allowed(device)

    def label(self, visit: ScheduledVisit) -> str:
        """What a visit is called where its study is the context."""
        cell, load = self._found(visit)
        return self._labels.of(cell, load, visit)

    def request(self, visit: ScheduledVisit, attempt: int) -> VisitRequest:
        """What is asked of one attempt at a visit, on its node where it has one."""
        cell, load = self._found(visit)
        return self._requests.request(visit, attempt, cell, load)

    def keep(
        self, attempt: Attempt, record: VisitRecord, *, seconds_before: float
    ) -> tuple[VisitRecord, str]:
        """Make the figures of a visit that has ended and put it into the study; its final record, and a line of it."""
        record, figures = keep(attempt, record, seconds_before=seconds_before)
        self._answers.learn(sorted(attempt.directory.glob("runs/*/record.json")))
        attempt.finish()
        return record, summary(record, figures)

    def has_ended(self, record: VisitRecord) -> None:
        """Count a visit among those that decide whether the rest would fail alike."""
        self._alike.add(record)

    def hopeless(self, left: Iterable[ScheduledVisit]) -> tuple[str, ...]:
        """Sentences if no visit of these is worth its time; empty if one is, or none is left."""
        return self._alike.verdict((self._found(visit)[0], visit.dataset_id, visit.node) for visit in left)

    def _found(self, visit: ScheduledVisit) -> tuple[Cell, Load]:
        return self.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self.expansion)

    @cached_property
    def _answers(self) -> KnownAnswers:
        return KnownAnswers.of_study(self.store.layout.visits)

    @cached_property
    def _requests(self) -> VisitRequests:
        return VisitRequests(self.store, self.shared, self._answers)

    @cached_property
    def _alike(self) -> AlikeFailures:
        return AlikeFailures()

    def one_by_one(self, runner: VisitRunner) -> StartOutcome:
        """Run the due visits in order, and keep each as soon as it is done; closes the runner."""
        return StudyRun(self.store, self.shared, runner, self.listener).run(self.due)
