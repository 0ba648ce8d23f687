"""A search: a study whose next visits follow from those that it has, until it knows the best cell or its time is over.

Blocks are written down before their first visit, so a start that was killed goes on where it stopped. What comes next says
a `SearchCourse`, from the study alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bedplate.campaign.display import Display, LineDisplay, SearchDisplay
from bedplate.campaign.planning import PlannedStudy
from bedplate.campaign.questions import SearchAsked, asked_again, search_record
from bedplate.campaign.running import (
    Consent,
    absolute,
    begin,
    ensure_requirements,
    free_what_was_left,
    hold_devices,
    hold_new_study,
    read_call,
    refuse_without_root,
    reopened,
    tell_doubts,
)
from bedplate.errors import EXIT_DONE, EXIT_REQUIREMENT_MISSING, EXIT_SOME_RUNS_FAILED, StudyError
from bedplate.executors.protocol import StartOutcome
from bedplate.host.ownership import first_made, give_to_caller, make_for_caller
from bedplate.model.cell import Cell
from bedplate.model.plan import Schedule, ScheduledVisit, SearchRecord, SearchStep
from bedplate.plan.order import block_visits, canary_visit
from bedplate.study.store import StudyStore
from bedplate.units import format_duration

if TYPE_CHECKING:
    from bedplate.campaign.running import Watch


class SearchCourse(Protocol):
    """What a search does next, worked out from its records alone."""

    def refuse(self, record: SearchRecord, cells: Mapping[str, Cell], seed: int) -> None:
        """PlanError where the search could not even begin."""

    def next(self, study: Path) -> SearchStep:
        """The next step of a search that stands on disk."""


@dataclass(frozen=True)
class SearchOutcome:
    """What a start of a search came to; `has_ended` where nothing more would follow, `names_a_cell` where some cell was measured.

    `start` is None where nothing was due.
    """

    study: Path
    start: StartOutcome | None
    has_ended: bool
    names_a_cell: bool
    kernel_release: str

    @property
    def exit_code(self) -> int:
        """A cell that fails is a result of a search: what counts is whether it came to its end."""
        if self.start is not None and self.start.needs_kernel is not None:
            return EXIT_REQUIREMENT_MISSING
        return EXIT_DONE if self.has_ended and self.names_a_cell else EXIT_SOME_RUNS_FAILED


def search(
    plan: Path,
    study: Path,
    search_options: SearchAsked,
    course: SearchCourse,
    *,
    consent: Consent | None = None,
    executor: str | None = None,
    watch: Watch = LineDisplay,
) -> SearchOutcome:
    """Search a plan's cells for the best one in a study, or go on with that; `executor` takes the place of the plan's."""
    consent, study, lines = consent or Consent(), absolute(study), LineDisplay()
    prior, study_plan = read_call(plan, study, consent, executor=executor, refuse=_refuse_no_search)
    made = first_made(study)
    with ExitStack() as stack:
        stack.callback(give_to_caller, made)
        if prior is not None:
            store = reopened(study_plan, study, stack)
            _go_on(store, search_options, lines)
            study_plan = study_plan.as_recorded(store.schedule, store.search)
            if _is_over(store, course):
                # A killed start of a search that has ended may have left something all the same.
                free_what_was_left(lines)
            else:
                hold_devices(study_plan, study, consent, stack, plan, store=store)
                ensure_requirements(study_plan, lines, consent)
        else:
            record = search_record(search_options, study_plan)
            course.refuse(record, _cells(study_plan), study_plan.plan.seed)
            refuse_without_root(study_plan)
            study_plan, devices = hold_new_study(study_plan, study, consent, stack, plan)
            tell_doubts(study_plan, lines)
            # Once more, now that it is known which cells can be visited.
            record = search_record(search_options, study_plan)
            course.refuse(record, _cells(study_plan), study_plan.plan.seed)
            make_for_caller(study)
            study_plan = replace(
                study_plan,
                schedule=Schedule(study_plan.plan.seed, study_plan.plan.repetitions, _opening(study_plan)),
            )
            store = stack.enter_context(begin(study_plan, study, identities=devices, search=record))
            study_plan = study_plan.as_recorded(store.schedule, store.search)
        return _search(study_plan, store, course, consent, watch)


def _refuse_no_search(study: Path, record: SearchRecord | None) -> None:
    if record is None:
        raise StudyError(
            f"{study} is a study of all its cells and no search; `bedplate run` goes on with it. Name another --study to search"
        )
    if record.extended is not None:
        raise StudyError(
            f"{study} was a search, and is a study of all its cells since it was extended; go on with "
            f"`bedplate run {study} --repetitions {record.extended}`"
        )


def _go_on(store: StudyStore, search_options: SearchAsked, display: LineDisplay) -> None:
    """The question is the one that the study was begun with, its budget may be larger now."""
    record = store.search
    _refuse_no_search(store.layout.directory, record)
    if record is None:
        raise AssertionError("a study that is no search was refused")
    changed = asked_again(search_options, record)
    display.note(f"going on with {store.layout.directory}")
    if changed != record:
        what = f"the search's budget was raised from {format_duration(record.budget_s)} to {format_duration(changed.budget_s)}"
        store.search_on(changed, change=what)


def _cells(study_plan: PlannedStudy) -> dict[str, Cell]:
    return {planned.cell.id: planned.cell for planned in study_plan.expansion.cells}


def _opening(study_plan: PlannedStudy) -> tuple[ScheduledVisit, ...]:
    """The canary that opens the study, on each node of a fleet; it tells later starts what a canary is here."""
    fleet = study_plan.plan.fleet if study_plan.executor.fleet is not None else None
    made: tuple[ScheduledVisit, ...] = ()
    for node in fleet.nodes if fleet is not None else (None,):
        made += canary_visit(
            study_plan.plan, study_plan.expansion, made, node=node, executor=study_plan.choice.executor
        )
    return made


def _is_over(store: StudyStore, course: SearchCourse) -> bool:
    step = course.next(store.layout.directory)
    return step.has_failed or (step.is_last and not _due_visits(store))


def _due_visits(store: StudyStore) -> tuple[ScheduledVisit, ...]:
    """Visits of the schedule that have not ended."""
    schedule = store.schedule
    return store.due_visits(Schedule(schedule.seed, schedule.repetitions, schedule.visits))


def _search(
    study_plan: PlannedStudy, store: StudyStore, course: SearchCourse, consent: Consent, watch: Watch
) -> SearchOutcome:
    """Step after step, until nothing more follows or a start of visits ends early."""
    starts: list[StartOutcome] = []
    has_ended = False
    if study_plan.executor.fleet is not None:
        study_plan.executor.fleet.require_same(
            study_plan.plan, store, LineDisplay(), erase_foreign=consent.erase_foreign
        )
    with watch() as display:
        while True:
            step = course.next(store.layout.directory)
            if step.has_failed:
                has_ended = True
                break
            again = _write_down(study_plan, store, step)
            due = (*_due_visits(store), *again)
            if not due:
                has_ended = True
                break
            display.note(step.words)
            starts.append(_start(study_plan, store, step, due, consent=consent, display=display))
            last = starts[-1]
            if last.left_behind and course.next(store.layout.directory).has_failed:
                continue
            if (
                last.needs_kernel is not None
                or last.left_behind
                or last.not_built
                or not last.completed + last.failed
            ):
                break
    return SearchOutcome(
        store.layout.directory,
        _sum_of(starts, has_ended=has_ended),
        has_ended,
        step.names_a_cell,
        study_plan.machine.kernel_release,
    )


def _write_down(study_plan: PlannedStudy, store: StudyStore, step: SearchStep) -> tuple[ScheduledVisit, ...]:
    """Add a step's visits to the schedule; the visits of earlier blocks that get a further attempt."""
    record, visits = store.search, list(store.schedule.visits)
    if record is None:
        raise AssertionError("a search has its record")
    plan, expansion, executor = study_plan.plan, study_plan.expansion, study_plan.choice.executor
    known = len(record.blocks)
    again = [
        (cell, block.number + 1) for block in step.blocks if block.number < known for cell in block.cells
    ]
    fresh = tuple(block for block in step.blocks if block.number >= known)
    keys = [([(cell, record.dataset) for cell in block.cells], block.number + 1) for block in fresh]
    if step.cuts and record.cut_dataset is not None:
        keys.append(([(cell, record.cut_dataset) for cell in step.cuts], 1))
    begun = len(visits)
    for block, repetition in keys:
        visits += block_visits(
            plan, expansion, block, repetition=repetition, earlier_visits=visits, executor=executor
        )
    if step.is_last and not _due_visits(store):
        visits += _closing(study_plan, visits)
    if len(visits) > begun:
        store.search_on(replace(record, blocks=(*record.blocks, *fresh)), visits[begun:])
    wanted = set(again)
    return tuple(
        visit
        for visit in store.schedule.visits
        if not visit.canary
        and visit.dataset_id == record.dataset
        and (visit.cell_id, visit.repetition) in wanted
    )


def _closing(study_plan: PlannedStudy, earlier_visits: Sequence[ScheduledVisit]) -> list[ScheduledVisit]:
    """The canary that closes the study, on each node; none where one was the last visit there already."""
    last = {visit.node: visit for visit in earlier_visits}
    made: list[ScheduledVisit] = []
    for node, visit in last.items():
        if not visit.canary:
            made += canary_visit(
                study_plan.plan,
                study_plan.expansion,
                (*earlier_visits, *made),
                node=node,
                executor=study_plan.choice.executor,
            )
    return made


def _start(
    study_plan: PlannedStudy,
    store: StudyStore,
    step: SearchStep,
    due_visits: Sequence[ScheduledVisit],
    *,
    consent: Consent,
    display: Display,
) -> StartOutcome:
    from bedplate.campaign.start import StudyStart  # noqa: PLC0415 -- polars

    # What the cells of these visits need is made now: most builds of a plan may never be visited.
    cells = dict.fromkeys(
        study_plan.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)[0]
        for visit in due_visits
    )
    record = store.search
    budget_s = 0.0 if record is None else record.budget_s * record.at_once
    watched = SearchDisplay(
        display,
        offset=len(store.schedule.visits) - len(due_visits),
        seconds_left=budget_s - step.spent_s,
    )
    return StudyStart.prepared(study_plan, store, due_visits, consent, watched, cells=tuple(cells)).by(
        study_plan.executor
    )


def _sum_of(starts: Sequence[StartOutcome], *, has_ended: bool) -> StartOutcome | None:
    if not starts:
        return None
    return replace(
        starts[-1],
        # Nothing is due of a search that has ended, and its answer says why.
        left_behind=() if has_ended else starts[-1].left_behind,
        completed=sum(each.completed for each in starts),
        failed=sum(each.failed for each in starts),
        seconds=sum(each.seconds for each in starts),
    )
