"""A start of a study: `run` makes or goes on with one, `extend` adds to one. docs/PYTHON.md shows it in five lines.

Both come to the same: plan, refuse what is wrong, hold the study and its devices, prepare, run what is due.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.campaign.claim import claimed, free_what_was_left
from bedplate.campaign.consent import Consent
from bedplate.campaign.display import LineDisplay
from bedplate.campaign.doubts import tell_doubts, tell_pruned
from bedplate.campaign.planning import begun_study, kept_plan, read_plan, repeated, work_out
from bedplate.campaign.refusals import (
    absolute,
    refuse_a_side_left_out,
    refuse_another_machine,
    refuse_another_plan,
    refuse_lost_visits,
    refuse_nothing_to_run,
    refuse_unended_search,
    refuse_without_root,
    refuse_wrong_call,
)
from bedplate.campaign.requirements import ensure_requirements
from bedplate.errors import EXIT_DONE, EXIT_REQUIREMENT_MISSING, EXIT_SOME_RUNS_FAILED, PlanError, StudyError
from bedplate.host.cache import cache_directory
from bedplate.host.ownership import first_made, give_to_caller, make_for_caller
from bedplate.host.state import state_directory
from bedplate.model import codec
from bedplate.model.fleet import fleet_identity
from bedplate.study.layout import StudyLayout, is_study
from bedplate.study.nodes import read_nodes
from bedplate.study.store import StudyStore, refuse_unless_new

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from bedplate.campaign.display import Display
    from bedplate.campaign.planning import BegunStudy, PlannedStudy
    from bedplate.executors.protocol import StartOutcome
    from bedplate.model.devices.identity import DeviceIdentity
    from bedplate.model.plan import Plan
    from bedplate.model.search import SearchRecord
    from bedplate.study.paired import PairedRecord

    # What shows the visits of a start, while it is entered.
    Watch = Callable[[], AbstractContextManager[Display]]


@dataclass(frozen=True)
class StudyOutcome:
    """What a start came to. `failed` counts visits of the whole study, of `visits` in all.

    `start` is None where nothing was due.
    """

    study: Path
    plan: Plan
    visits: int
    failed: int
    start: StartOutcome | None
    kernel_release: str

    @property
    def exit_code(self) -> int:
        """That of `bedplate run`: it speaks of the whole study."""
        if self.start is not None and (self.start.needs_kernel is not None or self.start.not_built):
            return EXIT_REQUIREMENT_MISSING
        left_behind = self.start is not None and self.start.left_behind
        return EXIT_SOME_RUNS_FAILED if self.failed or left_behind else EXIT_DONE


def run(
    plan: Path,
    study: Path,
    *,
    consent: Consent | None = None,
    executor: str | None = None,
    retry_failed: bool = False,
    doubts: bool = True,
    watch: Watch = LineDisplay,
    paired: PairedRecord | None = None,
) -> StudyOutcome:
    """Run a plan into a study, or go on with it; `executor` takes the place of the plan's.

    A new study begins with the doubts about its plan; without `doubts` the caller has told them. With `paired` it is one of pairs,
    and has its first block alone, which says whether others are worth their time.
    """
    consent, study, lines = consent or Consent(), absolute(study), LineDisplay()
    begun, found = called(
        plan, study, consent, executor=executor, refuse=refuse_unended_search, one_block=paired is not None
    )
    made = first_made(study)
    with ExitStack() as stack:
        stack.callback(give_to_caller, made)
        if begun is not None:
            store = reopened(found, study, stack)
            found = found.as_recorded(store.schedule)
            lines.note(f"going on with {study}")
            if store.due(found.schedule, retry_failed=retry_failed):
                hold_devices(found, study, consent, stack, plan, store=store)
            else:
                # A killed start of a complete study may have left something all the same.
                free_what_was_left(lines)
        else:
            refuse_without_root(found)
            before = {each.cell for each in found.expansion.pruned}
            found, devices = held(found, study, consent, stack, plan)
            if paired is not None:
                refuse_a_side_left_out(found, paired)
            if doubts:
                tell_doubts(found, lines)
            else:
                tell_pruned(found, lines, besides=before)
            make_for_caller(study)
            store = stack.enter_context(begin(found, study, devices=devices, paired=paired))
        return _measure(found, store, consent, watch, retry_failed=retry_failed)


def extend(
    study: Path,
    *,
    repetitions: int | None = None,
    plan: Path | None = None,
    consent: Consent | None = None,
    executor: str | None = None,
    retry_failed: bool = False,
    watch: Watch = LineDisplay,
) -> StudyOutcome:
    """Add repetitions or cells, write that down, and run what is due."""
    if (repetitions is None) == (plan is None):
        raise PlanError("say either --repetitions N or --plan PLAN: what is to be added?")
    consent, study, lines = consent or Consent(), absolute(study), LineDisplay()
    found, _ = _extended(study, repetitions, plan, executor)
    refuse_wrong_call(found, consent)
    refuse_without_root(found)
    with ExitStack() as stack:
        stack.callback(give_to_caller, first_made(study))
        store = stack.enter_context(StudyStore.open(study))
        # Once more, now that nobody else can change it.
        found, what = _extended(study, repetitions, plan, executor)
        refuse_another_machine(found, store)
        hold_devices(found, study, consent, stack, *filter(None, (plan,)), store=store)
        ensure_requirements(found, lines, consent)
        found = work_out(found, begun=found.circumstances.begun, tell_trials=tell_trials).with_searched()
        refuse_lost_visits(found, store)
        if plan is not None:
            tell_doubts(found, lines)
        before = store.search
        if found.plan.digest == store.facts.plan_digest and (before is None or before.extended is not None):
            lines.note(f"{study} has all of that already; going on with it")
        else:
            store.extend(
                plan=found.plan,
                plan_text=found.text,
                plan_files=found.plan.files,
                expansion=found.expansion,
                schedule=found.schedule,
                what=what,
                search=None if before is None else replace(before, extended=found.plan.repetitions),
            )
        return _measure(found, store, consent, watch, retry_failed=retry_failed)


def tell_trials(done: int, total: int) -> None:
    """One line for all of them: they take a tenth of a second each."""
    if done == 0:
        LineDisplay().note(f"trying {total} file systems of the plan on this kernel")


def _extended(
    study: Path, repetitions: int | None, plan: Path | None, executor: str | None
) -> tuple[PlannedStudy, str]:
    """The larger plan and what the study's history will say; StudyError if it does not only add."""
    from bedplate.plan.differences import obstacles_to_extend  # noqa: PLC0415

    before, begun = kept_plan(study), begun_study(study)
    if plan is not None:
        read = read_plan(plan, executor=executor, begun=begun)
        what = f"extended by {plan.name}"
    else:
        read = repeated(before, repetitions or 0, executor=executor, begun=begun)
        what = f"extended from {before.plan.repetitions} to {repetitions} repetitions"
    if begun.search is not None and begun.search.extended is None:
        what = f"extended from a search to {read.plan.repetitions} repetitions of all cells"
    found = work_out(read, begun=begun).with_searched()
    obstacles = obstacles_to_extend(before.plan, found.plan)
    if obstacles:
        raise StudyError(*(f"{study} cannot be extended so: {obstacle}" for obstacle in obstacles))
    return found, what


def called(
    plan: Path,
    study: Path,
    consent: Consent,
    *,
    executor: str | None,
    refuse: Callable[[Path, SearchRecord | None], None],
    one_block: bool = False,
) -> tuple[BegunStudy | None, PlannedStudy]:
    """The study as it was begun, None of a new one, and the plan worked out for it; nothing is touched.

    `refuse` is asked about what stands there before the plan is read. PlanError, StudyError where the call cannot be.
    """
    begun = begun_study(study) if is_study(study) else None
    if begun is not None:
        refuse(study, begun.search)
    else:
        refuse_unless_new(study)
    read = read_plan(plan, executor=executor, begun=begun)
    if one_block and begun is None:
        read = repeated(read, 1, executor=executor)
    found = work_out(read, begun=begun, nodes=read_nodes(StudyLayout(study)))
    refuse_wrong_call(found, consent)
    return begun, found


def reopened(found: PlannedStudy, study: Path, stack: ExitStack) -> StudyStore:
    """The store of a study that was begun, held until the stack ends. StudyError if it was begun with another plan or elsewhere."""
    refuse_without_root(found)
    store = stack.enter_context(StudyStore.open(study))
    refuse_another_plan(found, study)
    refuse_another_machine(found, store)
    return store


def held(
    found: PlannedStudy, study: Path, consent: Consent, stack: ExitStack, plan: Path
) -> tuple[PlannedStudy, Mapping[str, DeviceIdentity]]:
    """What a new study needs is there and its devices are held; the plan, now that more is known, and the devices. PlanError if no cell is left."""
    ensure_requirements(found, LineDisplay(), consent)
    devices = hold_devices(found, study, consent, stack, plan)
    found = known_better(found, study, consent)
    refuse_nothing_to_run(found)
    return found, devices


def hold_devices(
    found: PlannedStudy,
    study: Path,
    consent: Consent,
    stack: ExitStack,
    *files: Path,
    store: StudyStore | None = None,
) -> Mapping[str, DeviceIdentity]:
    """The devices of the plan until the stack ends, by their names; and what is mounted from here on, nobody else can hold.

    Not before what a killed start left is given back: an earlier version mounted where everybody sees it. `files`
    are read or written afterwards. With the `store` of a study that was begun they must be its own; one that has recorded none does so now.
    """
    from bedplate.campaign.preparation import is_root  # noqa: PLC0415
    from bedplate.host.own_mounts import (  # noqa: PLC0415
        enter_own_namespaces,
        follow_no_links_below,
        let_go_of_foreign_mounts,
        paths_in,
    )

    journal = found.plan.journal_device
    devices = stack.enter_context(
        claimed(
            consent.allowed(found.plan.scratch_device),
            study=study,
            display=LineDisplay(),
            journal=None if journal is None else consent.allowed(journal),
            executor=found.executor,
            recorded=None if store is None else store.facts.devices,
        )
    )
    if store is not None:
        store.record_devices(devices)
    # Guests and nodes mount nothing on this machine.
    if found.executor.runs_here and is_root():
        enter_own_namespaces()
        own = (state_directory(), cache_directory(), Path.home())
        # The image may stand on a disk of its own, mounted there.
        places = (study, StudyLayout(study).scratch)
        let_go_of_foreign_mounts((*places, *files, *own, *paths_in(codec.to_json(found.plan))))
        if store is not None:
            follow_no_links_below(study)
    return devices


def known_better(found: PlannedStudy, study: Path, consent: Consent) -> PlannedStudy:
    """The same, now that it can be known what each kernel takes, and what the nodes of a fleet are."""
    nodes, fleet = None, found.executor.fleet
    if fleet is not None:
        make_for_caller(study)
        nodes = fleet.look(found.plan, study, LineDisplay(), erase_foreign=consent.erase_foreign)
    return work_out(found, tell_trials=tell_trials, nodes=nodes)


def begin(
    found: PlannedStudy,
    study: Path,
    *,
    devices: Mapping[str, DeviceIdentity],
    search: SearchRecord | None = None,
    paired: PairedRecord | None = None,
) -> StudyStore:
    """The new study on disk, held by its store, with the `devices` that were held for it; with `search` it is one, with `paired` one of pairs."""
    from bedplate.campaign.preparation import is_root  # noqa: PLC0415
    from bedplate.host.facts import tool_versions  # noqa: PLC0415
    from bedplate.host.own_mounts import follow_no_links_below  # noqa: PLC0415

    # A fleet's machine has what was found on its nodes.
    fleet = found.executor.fleet
    store = StudyStore.create(
        study,
        plan=found.plan,
        plan_text=found.text,
        plan_files=found.plan.files,
        machine=found.machine if fleet else replace(found.machine, tools=tool_versions()),
        machine_identity=fleet_identity(read_nodes(StudyLayout(study))) if fleet else None,
        expansion=found.expansion,
        schedule=found.schedule,
        executor=found.choice.executor,
        search=search,
        paired=paired,
        devices=devices,
    )
    # By now in mounts of its own.
    if found.executor.runs_here and is_root():
        follow_no_links_below(study)
    return store


def _measure(
    found: PlannedStudy, store: StudyStore, consent: Consent, watch: Watch, *, retry_failed: bool
) -> StudyOutcome:
    """The due visits of a study whose devices are held."""
    due = store.due(found.schedule, retry_failed=retry_failed)
    start = None
    if due:
        from bedplate.campaign.start import StudyStart  # noqa: PLC0415 -- polars

        ensure_requirements(found, LineDisplay(), consent)
        if found.executor.fleet is not None:
            found.executor.fleet.require_same(
                found.plan, store, LineDisplay(), erase_foreign=consent.erase_foreign
            )
        with watch() as display:
            start = StudyStart.prepared(found, store, due, consent, display).by(found.executor)
    failed = 0 if start is not None and start.needs_kernel is not None else store.unsuccessful(found.schedule)
    return StudyOutcome(
        store.layout.directory,
        found.plan,
        len(found.schedule.visits),
        failed,
        start,
        found.machine.kernel_release,
    )
