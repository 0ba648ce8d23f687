"""One start of a study, as its executor gets it: what is due, and what all its visits share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bedplate.campaign.dataset_inputs import MadeAnyway
from bedplate.campaign.engine_preparation import preparations
from bedplate.campaign.keeping import SharedInputs, VisitRequests, keep, summary
from bedplate.campaign.known_answers import KnownAnswers
from bedplate.campaign.labels import Labels
from bedplate.campaign.latencies import refuse_latencies
from bedplate.campaign.preparation import (
    drivers_of_plan,
    own_library_of,
    prepare_builds,
    prepare_inputs,
    prepare_programs,
)
from bedplate.campaign.study_run import StudyRun
from bedplate.executors.protocol import StartOutcome
from bedplate.model.alike import AlikeFailures
from bedplate.study.nodes import node_devices
from bedplate.units import format_count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from bedplate.campaign.consent import Consent
    from bedplate.campaign.display import Display
    from bedplate.campaign.planning import PlannedStudy
    from bedplate.errors import BuildFailed
    from bedplate.executors.protocol import Executor, VisitRunner
    from bedplate.model.cell import BuildLevels, Cell
    from bedplate.model.plan import Expansion, Load, Plan, ScheduledVisit
    from bedplate.model.visit import ScratchDevice, VisitRecord, VisitRequest
    from bedplate.study.store import Attempt, StudyStore


@dataclass(frozen=True)
class StudyStart:
    """The visits that are due, in order; `listener` shows them. `not_built` are sentences about those that were left out."""

    store: StudyStore
    shared: SharedInputs
    listener: Display
    due: Sequence[ScheduledVisit]
    not_built: tuple[str, ...] = ()

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
        builds = prepare_builds(cells, display, sources=found.plan.sources)
        drivers = drivers_of_plan(found.plan, found.workloads)
        refuse_latencies(cells, drivers.made)
        shared = SharedInputs(
            plan=found.plan,
            expansion=found.expansion,
            builds=builds.made,
            native_drivers={
                **drivers.made,
                **prepare_programs(found.plan.engines),
            },
            inputs=prepare_inputs(
                found.datasets, display, MadeAnyway(builds.made, cells, found.plan.archives)
            ),
            erase=consent.erase,
            erase_foreign=consent.erase_foreign,
            devices=store.facts.devices,
            node_devices=node_devices(store.layout, found.plan),
        )
        start = cls(store, shared, display, due).without_builds(builds.failed)
        return start.without_libraries(drivers.failed)

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

    def without(self, cells: Collection[str], what: str, reasons: Sequence[str]) -> StudyStart:
        """The same start, without the due visits of these cells, by their ids: `what` was not built, for these reasons.

        A side alone is no pair, so that of a study of pairs nothing is left.
        """
        left = tuple(visit for visit in self.due if visit.cell_id not in cells)
        count = len(self.due) - len(left)
        if not count:
            return self
        if self.store.paired is not None:
            left = ()
        sentence = f"{format_count(count, 'visit')} of {what} did not run, as it was not built: {reasons[0] if reasons else 'no reason is known'}"
        return replace(self, due=left, not_built=(*self.not_built, sentence, *reasons[1:]))

    def without_builds(self, failed: Mapping[BuildLevels, BuildFailed]) -> StudyStart:
        """The same start, without the due visits of builds that could not be made."""
        start = self
        for levels, error in failed.items():
            cells = {visit.cell_id for visit in self.due if self._found(visit)[0].build == levels}
            start = start.without(cells, preparations()[levels.engine].words(levels), error.reasons)
        return start

    def without_libraries(self, failed: Mapping[str, BuildFailed]) -> StudyStart:
        """The same start, without the due visits of libraries that could not be made, by their level in cells."""
        start = self
        for level, error in failed.items():
            cells = {visit.cell_id for visit in self.due if self._library(visit) == level}
            start = start.without(cells, f"the library {level}", error.reasons)
        return start

    def _library(self, visit: ScheduledVisit) -> str | None:
        cell = self._found(visit)[0]
        return own_library_of(cell.build.engine, cell.cluster.settings)

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

    def by(self, executor: Executor) -> StartOutcome:
        """Have the due visits run; nothing is begun where none is left."""
        outcome = executor.run(self) if self.due else StartOutcome(0, 0, 0.0)
        # An executor that builds too has added to them.
        return replace(outcome, not_built=outcome.not_built or self.not_built)

    def one_by_one(self, runner: VisitRunner) -> StartOutcome:
        """Run the due visits in order, and keep each as soon as it is done; closes the runner."""
        outcome = StudyRun(self.store, self.shared, runner, self.listener).run(self.due)
        return replace(outcome, not_built=self.not_built)
