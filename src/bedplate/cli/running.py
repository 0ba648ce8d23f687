"""`bedplate run` and `bedplate extend`: what must hold before, the study, and what is said after."""

from __future__ import annotations

import os
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.cli.fleet import known_nodes, look_at_nodes, require_same_nodes, run_on_fleet
from bedplate.cli.ownership import first_made, give_to_caller, make_for_caller
from bedplate.cli.planning import Begun, Prospect, cells_of, datasets_of, prospect, prospect_of, workloads_of
from bedplate.cli.prepare import ensure_requirements
from bedplate.errors import (
    EXIT_DONE,
    EXIT_REQUIREMENT_MISSING,
    EXIT_SOME_RUNS_FAILED,
    PlanError,
    RequirementMissing,
    StudyError,
)
from bedplate.model.fleet import fleet_identity
from bedplate.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from bedplate.cli.planning import Tell
    from bedplate.executor.display import Display
    from bedplate.executor.protocol import Executor
    from bedplate.executor.study_run import Tally
    from bedplate.model.plan import ScheduledVisit
    from bedplate.model.visit import ScratchDevice
    from bedplate.study.store import StudyStore


@dataclass(frozen=True)
class Leave:
    """What the command line allows: which device may be erased, foreign signatures, packages."""

    erase: tuple[str, ...] = ()
    erase_foreign: bool = False
    yes: bool = False


def run(
    plan: Path, study: Path, *, leave: Leave, executor: str | None = None, retry_failed: bool = False
) -> int:
    """Run a plan into a study, or go on with it; `executor` takes the place of the plan's."""
    from bedplate.executor.claim import free_what_was_left  # noqa: PLC0415
    from bedplate.executor.display import LineDisplay  # noqa: PLC0415
    from bedplate.study.layout import is_study  # noqa: PLC0415
    from bedplate.study.store import refuse_unless_new  # noqa: PLC0415

    study = _absolute(study)
    begun = _begun(study) if is_study(study) else None
    found = prospect(plan, executor=executor, begun=begun, nodes=known_nodes(study))
    _refuse_wrong_call(found, leave)
    made = first_made(study)
    with ExitStack() as stack:
        stack.callback(give_to_caller, made)
        if begun is not None:
            found, store = _go_on(found, study)
            stack.enter_context(store)
            print(f"going on with {study}", flush=True)
            if store.due(found.schedule, retry_failed=retry_failed):
                stack.enter_context(_claim(found, study, leave, LineDisplay()))
                _live_apart(found, study, plan)
            else:
                # A killed start of a complete study may have left something all the same.
                free_what_was_left(LineDisplay())
        else:
            refuse_unless_new(study)
            _refuse_without_root(found)
            ensure_requirements(found, LineDisplay(), yes=leave.yes)
            stack.enter_context(_claim(found, study, leave, LineDisplay()))
            _live_apart(found, study, plan)
            # Once more, now that it can be known what each kernel takes.
            nodes = None
            if found.choice.platform.has_nodes:
                make_for_caller(study)
                nodes = look_at_nodes(found, study, leave)
            found = prospect(plan, executor=executor, tell_trials=tell_trials, nodes=nodes)
            _refuse_nothing_to_run(found)
            make_for_caller(study)
            store = stack.enter_context(_begin(found, study))
        go_on = f"bedplate run {plan} --study {study}" + (f" --executor {executor}" if executor else "")
        return _measure(found, store, leave=leave, retry_failed=retry_failed, go_on=go_on)


def extend(
    study: Path,
    *,
    repetitions: int | None,
    plan: Path | None,
    leave: Leave,
    executor: str | None = None,
    retry_failed: bool = False,
) -> int:
    """Add repetitions or cells, write that down, and run what is due."""
    from bedplate.executor.display import LineDisplay  # noqa: PLC0415
    from bedplate.study.store import StudyStore  # noqa: PLC0415

    if (repetitions is None) == (plan is None):
        raise PlanError("say either --repetitions N or --plan PLAN: what is to be added?")
    study = _absolute(study)
    found, _ = _extended(study, repetitions, plan, executor)
    _refuse_wrong_call(found, leave)
    _refuse_without_root(found)
    with ExitStack() as stack:
        stack.callback(give_to_caller, first_made(study))
        store = stack.enter_context(StudyStore.open(study))
        # Once more, now that nobody else can change it.
        found, what = _extended(study, repetitions, plan, executor)
        _refuse_another_machine(found, store)
        stack.enter_context(_claim(found, study, leave, LineDisplay()))
        _live_apart(found, study, *filter(None, (plan,)))
        ensure_requirements(found, LineDisplay(), yes=leave.yes)
        found, _ = _extended(study, repetitions, plan, executor, tell_trials=tell_trials)
        _refuse_lost_visits(found, store)
        if found.plan.digest == store.facts.plan_digest:
            print(f"{study} has all of that already; going on with it", flush=True)
        else:
            store.extend(
                plan=found.plan,
                plan_text=found.text,
                plan_files=found.plan.files,
                expansion=found.expansion,
                schedule=found.schedule,
                what=what,
            )
        go_on = f"bedplate extend {study} --repetitions {found.plan.repetitions}"
        return _measure(found, store, leave=leave, retry_failed=retry_failed, go_on=go_on)


def frozen(study: Path) -> Prospect:
    """The plan that a study keeps, as it comes out on this machine."""
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415
    from bedplate.study.version import require_known_format  # noqa: PLC0415

    layout = StudyLayout(study)
    require_known_format(layout)
    directory = layout.plan_files if layout.plan_files.is_dir() else layout.directory
    try:
        text = layout.plan.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{layout.plan}, the study's own plan, cannot be read: {error}") from error
    try:
        return prospect_of(
            text,
            source=str(layout.plan),
            directory=directory,
            begun=_begun(study),
            nodes=known_nodes(study),
        )
    except PlanError as error:
        raise StudyError(
            *(f"the study's own plan is damaged: {reason}" for reason in error.reasons)
        ) from error


def _begun(study: Path) -> Begun:
    """What a study was begun with, read before anybody holds it; StudyError if it is of another format."""
    from bedplate.model import codec  # noqa: PLC0415
    from bedplate.model.plan import Schedule  # noqa: PLC0415
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415
    from bedplate.study.records import StudyFacts  # noqa: PLC0415
    from bedplate.study.schedule import read_schedule  # noqa: PLC0415
    from bedplate.study.version import require_known_format  # noqa: PLC0415

    layout = StudyLayout(study)
    require_known_format(layout)
    record = read_schedule(layout)
    visited = dict.fromkeys(visit.cell_id for visit in record.visits if not visit.canary)
    facts = codec.read(StudyFacts, layout.facts)
    return Begun(
        facts.executor,
        tuple(record.cells[cell_id] for cell_id in visited),
        Schedule(record.seed, record.repetitions, record.visits),
        facts.defaults,
    )


def tell_trials(done: int, total: int) -> None:
    """One line for all of them: they take a tenth of a second each."""
    if done == 0:
        print(f"trying {total} file systems of the plan on this kernel", flush=True)


def _extended(
    study: Path,
    repetitions: int | None,
    plan: Path | None,
    executor: str | None,
    *,
    tell_trials: Tell | None = None,
) -> tuple[Prospect, str]:
    """The larger plan and what the study's history will say; StudyError if it does not only add."""
    from bedplate.cli.plan_text import with_repetitions  # noqa: PLC0415
    from bedplate.plan.differences import obstacles_to_extend  # noqa: PLC0415

    before, begun = frozen(study), _begun(study)
    if plan is not None:
        found = prospect(
            plan, executor=executor, begun=begun, tell_trials=tell_trials, nodes=known_nodes(study)
        )
        what = f"extended by {plan.name}"
    else:
        found = prospect_of(
            with_repetitions(before.text, repetitions or 0),
            source="the extended plan",
            directory=before.directory,
            executor=executor,
            begun=begun,
            tell_trials=tell_trials,
            nodes=known_nodes(study),
        )
        what = f"extended from {before.plan.repetitions} to {repetitions} repetitions"
    obstacles = obstacles_to_extend(before.plan, found.plan)
    if obstacles:
        raise StudyError(*(f"{study} cannot be extended so: {obstacle}" for obstacle in obstacles))
    return found, what


def _begin(found: Prospect, study: Path) -> StudyStore:
    from bedplate.host.facts import tool_versions  # noqa: PLC0415
    from bedplate.study.store import StudyStore  # noqa: PLC0415

    # A fleet's machine has what was found on its nodes.
    is_fleet = found.choice.platform.has_nodes
    tools = found.machine.tools if is_fleet else tool_versions()
    return StudyStore.create(
        study,
        plan=found.plan,
        plan_text=found.text,
        plan_files=found.plan.files,
        machine=replace(found.machine, tools=tools),
        machine_identity=fleet_identity(known_nodes(study)) if is_fleet else None,
        expansion=found.expansion,
        schedule=found.schedule,
        executor=found.choice.executor,
    )


def _go_on(found: Prospect, study: Path) -> tuple[Prospect, StudyStore]:
    """The store of a study that was begun, and its own cells and order in place of what comes out now.

    StudyError if it was begun with another plan or elsewhere.
    """
    from bedplate.plan.differences import differences, obstacles_to_extend  # noqa: PLC0415
    from bedplate.study.schedule import recorded_expansion  # noqa: PLC0415
    from bedplate.study.store import StudyStore  # noqa: PLC0415

    before = frozen(study)
    changed = differences(before.plan, found.plan)
    if changed and not obstacles_to_extend(found.plan, before.plan):
        raise StudyError(
            *(f"{study} was extended since: {change}" for change in changed),
            f"go on with `bedplate extend {study} --repetitions {before.plan.repetitions}`",
        )
    if changed:
        raise StudyError(
            *(f"{study} was begun with another plan: {change}" for change in changed),
            "give the same plan, another --study, or add to this one with `bedplate extend`",
        )
    _refuse_without_root(found)
    store = StudyStore.open(study)
    try:
        _refuse_another_machine(found, store)
        expansion, schedule = recorded_expansion(store.schedule)
    except BaseException:
        store.close()
        raise
    return replace(found, expansion=expansion, schedule=schedule), store


def _claim(found: Prospect, study: Path, leave: Leave, display: Display) -> AbstractContextManager[None]:
    from bedplate.executor.claim import claimed  # noqa: PLC0415

    if found.choice.platform.has_nodes:
        # Each node's device is claimed there, by the visit that uses it.
        return nullcontext()
    journal = found.plan.journal_device
    return claimed(
        _allowed(found.plan.scratch_device, leave),
        study=study,
        display=display,
        journal=None if journal is None else _allowed(journal, leave),
        in_guests=found.choice.platform.has_guests,
    )


def _live_apart(found: Prospect, *files: Path) -> None:
    """What is mounted from here on, nobody else can hold; guests and nodes mount nothing on this machine.

    Not before what a killed start left is given back: an earlier version mounted where everybody sees it. `files` are
    read or written afterwards.
    """
    from bedplate.executor.preparation import is_root  # noqa: PLC0415
    from bedplate.executor.state import state_directory  # noqa: PLC0415
    from bedplate.host.cache import cache_directory  # noqa: PLC0415
    from bedplate.host.own_mounts import (  # noqa: PLC0415
        enter_own_namespaces,
        let_go_of_foreign_mounts,
        paths_in,
    )
    from bedplate.model import codec  # noqa: PLC0415

    platform = found.choice.platform
    if platform.has_guests or platform.has_nodes or not is_root():
        return
    enter_own_namespaces()
    needed = (*files, state_directory(), cache_directory(), Path.home(), *paths_in(codec.to_json(found.plan)))
    let_go_of_foreign_mounts(needed)


def _allowed(scratch: ScratchDevice, leave: Leave) -> ScratchDevice:
    return replace(scratch, erase=leave.erase, erase_foreign=leave.erase_foreign)


def _refuse_another_machine(found: Prospect, store: StudyStore) -> None:
    facts = store.facts
    if found.choice.platform.has_nodes:
        return  # each visit looks at its own node
    if facts.machine_identity != found.machine.identity:
        raise StudyError(
            f"{store.layout.directory} was begun on another machine (machine.json says which); figures of two "
            "machines are never one study: name another --study"
        )
    if facts.kernel_release == found.machine.kernel_release:
        return
    if found.choice.platform.has_guests:
        raise StudyError(
            f"{store.layout.directory} was begun under kernel {facts.kernel_release} of this machine, this is "
            f"{found.machine.kernel_release}, and guests are only as fast as what runs them; boot the former, "
            "or name another --study"
        )
    if all(levels.release is None for levels in found.plan.kernels):
        raise StudyError(
            f"{store.layout.directory} was begun under kernel {facts.kernel_release}, this is "
            f"{found.machine.kernel_release}, and the plan does not vary the kernel; boot the former, or name "
            "another --study"
        )
    store.note_kernel(found.machine.kernel_release)


def _refuse_lost_visits(found: Prospect, store: StudyStore) -> None:
    """What the study holds must stay in its schedule, whatever this machine would refuse by now."""
    kept = {planned.cell.id for planned in found.expansion.cells}
    why = {pruned.cell.id: pruned.reasons for pruned in found.expansion.pruned}
    recorded = {visit.cell_id for visit in store.schedule.visits if not visit.canary}
    lost = sorted(recorded - kept)
    if lost:
        raise StudyError(
            *(
                f"{cell}, which the study has, can no longer run here: {'; '.join(why[cell])}"
                for cell in lost
            ),
            "undo what changed on this machine, or name another --study",
        )


def _refuse_wrong_call(found: Prospect, leave: Leave) -> None:
    """What is wrong with the plan or the call, before anything else is looked at."""
    _refuse_nothing_to_run(found)
    devices = found.plan.devices_erased
    used = f"{' and '.join(devices)} alone" if devices else "an image file and erases no device"
    reasons = [
        f"this plan erases {name}; say that you mean it: --erase {name}"
        for name in devices
        if name not in leave.erase
    ]
    reasons += [f"--erase {name}: this plan uses {used}" for name in leave.erase if name not in devices]
    if reasons:
        raise PlanError(*reasons)


def _refuse_nothing_to_run(found: Prospect) -> None:
    if not found.expansion.cells:
        causes = dict.fromkeys(reason for pruned in found.expansion.pruned for reason in pruned.reasons)
        raise PlanError("no cell of this plan can run here", *causes)


def _refuse_without_root(found: Prospect) -> None:
    from bedplate.executor.preparation import is_root  # noqa: PLC0415

    platform = found.choice.platform
    if not is_root() and not platform.has_guests and not platform.has_nodes:
        raise RequirementMissing(
            "measuring formats and mounts, which needs root: give the same command with sudo, "
            "or with --executor qemu, which does it in a guest",
            "without root you can look: `bedplate plan`, `doctor`, and on any study `status`, `show`, "
            "`report`, `export`",
        )


def _absolute(study: Path) -> Path:
    """A visit is another process and stands elsewhere; StudyError for a name that records cannot hold."""
    path = study.absolute()
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise StudyError(f"{os.fsencode(path)!r} is no UTF-8; name another directory with --study") from None
    return path


def _measure(found: Prospect, store: StudyStore, *, leave: Leave, retry_failed: bool, go_on: str) -> int:
    """The due visits of a study whose scratch device is held; the exit code speaks of the whole study."""
    due = store.due(found.schedule, retry_failed=retry_failed)
    left_behind: tuple[str, ...] = ()
    if due:
        tally = _live_through(due, found, store, leave)
        if tally.needs_kernel is not None:
            print(
                f"the next visit needs kernel {tally.needs_kernel}, this is {found.machine.kernel_release}; "
                f"boot that one, then go on with: {go_on}"
            )
            return EXIT_REQUIREMENT_MISSING
        left_behind = tally.left_behind
    else:
        print(f"{store.layout.directory} is complete: {len(found.schedule.visits)} visits")
    for sentence in left_behind:
        print(sentence)
    if left_behind:
        print(f"what was not lived is due again: {go_on}")
    failed = store.unsuccessful(found.schedule)
    if failed:
        print(
            f"{failed} of {len(found.schedule.visits)} visits failed: `bedplate status` says why, "
            "the same command with --retry-failed does them again"
        )
    return EXIT_SOME_RUNS_FAILED if failed or left_behind else EXIT_DONE


def _live_through(due: Sequence[ScheduledVisit], found: Prospect, store: StudyStore, leave: Leave) -> Tally:
    from bedplate.executor.display import LineDisplay, display_for_terminal  # noqa: PLC0415
    from bedplate.executor.keeping import Grounds  # noqa: PLC0415
    from bedplate.executor.preparation import prepare_builds, prepare_drivers, prepare_inputs  # noqa: PLC0415
    from bedplate.executor.study_run import StudyRun  # noqa: PLC0415

    cells = cells_of(found)
    ensure_requirements(found, LineDisplay(), yes=leave.yes)
    if found.choice.platform.has_nodes:
        require_same_nodes(found, store, leave)
    with display_for_terminal() as display:
        builds = prepare_builds(cells, display)
        grounds = Grounds(
            plan=found.plan,
            expansion=found.expansion,
            builds=builds,
            native_drivers=prepare_drivers(workloads_of(found)),
            inputs=prepare_inputs(datasets_of(found), display, builds.values()),
            erase=leave.erase,
            erase_foreign=leave.erase_foreign,
        )
        if found.choice.platform.has_nodes:
            tally = run_on_fleet(store, grounds, display, due)
        else:
            tally = StudyRun(store, grounds, _executor(found, store, leave, display), display).run(due)
    print(f"{tally.completed} visits completed, {tally.failed} failed, in {format_duration(tally.seconds)}")
    return tally


def _executor(found: Prospect, store: StudyStore, leave: Leave, display: Display) -> Executor:
    """Who lives the visits; what a guest needs is fetched now where the cache lacks it."""
    if not found.choice.platform.has_guests:
        from bedplate.executor.local import LocalExecutor  # noqa: PLC0415

        return LocalExecutor()
    from bedplate.executor.choice import guest_memory_bytes  # noqa: PLC0415
    from bedplate.executor.guest_preparation import prepare_guests  # noqa: PLC0415
    from bedplate.executor.qemu.executor import QemuExecutor  # noqa: PLC0415

    return QemuExecutor(
        place=store.scratch_directory,
        memory_bytes=guest_memory_bytes(found.plan),
        trees=prepare_guests(cells_of(found), display),
        journal=_journal_of_all(found, leave),
    )


def _journal_of_all(found: Prospect, leave: Leave) -> ScratchDevice | None:
    """The device of the plan's external journals; None without any, or if there are two kinds of them."""
    journals = {found.plan.journal_device_for(cell.filesystem) for cell in cells_of(found)} - {None}
    if len(journals) != 1:
        return None
    journal = journals.pop()
    return None if journal is None else _allowed(journal, leave)
