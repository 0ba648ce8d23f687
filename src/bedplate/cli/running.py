"""`bedplate run` and `bedplate extend`: what must hold before, the study, and what is said after."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bedplate.cli.planning import Prospect, prospect, prospect_of
from bedplate.cli.prepare import ensure_packages
from bedplate.errors import (
    EXIT_DONE,
    EXIT_SOME_RUNS_FAILED,
    DeviceRefused,
    PlanError,
    RequirementMissing,
    StudyError,
)
from bedplate.units import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.executor.display import Display
    from bedplate.study.store import StudyStore


def run(
    plan: Path,
    study: Path,
    *,
    erase: tuple[str, ...],
    erase_foreign: bool,
    retry_failed: bool,
    yes: bool = False,
) -> int:
    """Run a plan into a study, or go on with it."""
    from bedplate.executor.display import display_for_terminal  # noqa: PLC0415
    from bedplate.study.store import is_study  # noqa: PLC0415

    found = prospect(plan)
    _check_before_touching(found, erase)
    with ExitStack() as stack:
        display = stack.enter_context(display_for_terminal())
        if is_study(study):
            store = stack.enter_context(_go_on(found, study, display))
        else:
            ensure_packages([planned.cell for planned in found.expansion.cells], display, yes=yes)
            store = stack.enter_context(_begin(found, study))
        return _measure(
            found,
            store,
            display,
            erase=erase,
            erase_foreign=erase_foreign,
            retry_failed=retry_failed,
            yes=yes,
        )


def extend(
    study: Path,
    *,
    repetitions: int | None,
    plan: Path | None,
    erase: tuple[str, ...],
    erase_foreign: bool,
) -> int:
    """Add repetitions or cells, write that down, and run what is due."""
    from bedplate.executor.display import display_for_terminal  # noqa: PLC0415
    from bedplate.plan.differences import obstacles_to_extend  # noqa: PLC0415
    from bedplate.study.store import StudyStore  # noqa: PLC0415

    if (repetitions is None) == (plan is None):
        raise PlanError("say either --repetitions N or --plan PLAN: what is to be added?")
    before = frozen(study)
    if plan is not None:
        found = prospect(plan)
        what = f"extended by {plan.name}"
    else:
        found = prospect_of(
            _with_repetitions(before.text, repetitions or 0),
            source="the extended plan",
            directory=before.directory,
        )
        what = f"extended from {before.plan.repetitions} to {repetitions} repetitions"
    obstacles = obstacles_to_extend(before.plan, found.plan)
    if obstacles:
        raise StudyError(*(f"{study} cannot be extended so: {obstacle}" for obstacle in obstacles))
    _check_before_touching(found, erase)
    with ExitStack() as stack:
        display = stack.enter_context(display_for_terminal())
        store = stack.enter_context(StudyStore.open(study))
        _refuse_another_machine(found, store)
        store.extend(
            plan=found.plan,
            plan_text=found.text,
            plan_files=found.plan.files,
            expansion=found.expansion,
            schedule=found.schedule,
            what=what,
        )
        return _measure(
            found, store, display, erase=erase, erase_foreign=erase_foreign, retry_failed=False, yes=False
        )


def frozen(study: Path) -> Prospect:
    """The plan that a study keeps, as it comes out on this machine."""
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415
    from bedplate.study.store import is_study  # noqa: PLC0415

    if not is_study(study):
        raise StudyError(f"{study} is not a study: it has no study.json")
    layout = StudyLayout(study)
    directory = layout.plan_files if layout.plan_files.is_dir() else layout.directory
    return prospect_of(layout.plan.read_text(encoding="utf-8"), source=str(layout.plan), directory=directory)


def _begin(found: Prospect, study: Path) -> StudyStore:
    from dataclasses import replace  # noqa: PLC0415

    from bedplate.host.facts import tool_versions  # noqa: PLC0415
    from bedplate.study.store import StudyStore  # noqa: PLC0415

    return StudyStore.create(
        study,
        plan=found.plan,
        plan_text=found.text,
        plan_files=found.plan.files,
        machine=replace(found.machine, tools=tool_versions()),
        expansion=found.expansion,
        schedule=found.schedule,
    )


def _go_on(found: Prospect, study: Path, display: Display) -> StudyStore:
    """The store of a study that was begun; StudyError if it was begun with another plan or elsewhere."""
    from bedplate.plan.differences import differences  # noqa: PLC0415
    from bedplate.study.store import StudyStore  # noqa: PLC0415

    before = frozen(study)
    changed = differences(before.plan, found.plan)
    if changed:
        raise StudyError(
            *(f"{study} was begun with another plan: {change}" for change in changed),
            "give the same plan, another --study, or add to this one with `bedplate extend`",
        )
    store = StudyStore.open(study)
    try:
        _refuse_another_machine(found, store)
    except BaseException:
        store.close()
        raise
    display.note(f"going on with {study}")
    return store


def _refuse_another_machine(found: Prospect, store: StudyStore) -> None:
    facts = store.facts
    if facts.machine_identity != found.machine.identity:
        raise StudyError(
            f"{store.layout.directory} was begun on another machine (machine.json says which); figures of two "
            "machines are never one study: name another --study"
        )
    if facts.kernel_release != found.machine.kernel_release:
        raise StudyError(
            f"{store.layout.directory} was begun under kernel {facts.kernel_release}, this is "
            f"{found.machine.kernel_release}, and the plan does not vary the kernel; boot the former, or name "
            "another --study"
        )


def _check_before_touching(found: Prospect, erase: tuple[str, ...]) -> None:
    """Everything that can be refused before the first command."""
    from bedplate.executor.preparation import is_root  # noqa: PLC0415

    if not found.expansion.cells:
        causes = dict.fromkeys(reason for pruned in found.expansion.pruned for reason in pruned.reasons)
        raise PlanError("no cell of this plan can run here", *causes)
    reasons: list[str] = []
    scratch = found.plan.scratch_device
    if scratch.device is not None and scratch.device not in erase:
        reasons.append(f"this plan erases {scratch.device}; say that you mean it: --erase {scratch.device}")
    if scratch.device is None and erase:
        reasons.append(f"--erase {erase[0]}: this plan uses an image file and erases no device")
    if reasons:
        raise DeviceRefused(*reasons)
    if not is_root():
        raise RequirementMissing(
            "measuring formats and mounts, which needs root: give the same command with sudo",
            "without root you can look: `bedplate plan`, `doctor`, and on any study `status`, `show`, "
            "`report`, `export`",
        )


def _measure(
    found: Prospect,
    store: StudyStore,
    display: Display,
    *,
    erase: tuple[str, ...],
    erase_foreign: bool,
    retry_failed: bool,
    yes: bool,
) -> int:
    from bedplate.executor.local import LocalExecutor  # noqa: PLC0415
    from bedplate.executor.orphans import free_what_was_left  # noqa: PLC0415
    from bedplate.executor.preparation import prepare_builds, prepare_drivers  # noqa: PLC0415
    from bedplate.executor.study_run import Grounds, StudyRun  # noqa: PLC0415

    due = store.due(found.schedule, retry_failed=retry_failed)
    if not due:
        display.note(f"{store.layout.directory} is complete: {len(found.schedule.visits)} visits")
        return EXIT_DONE
    free_what_was_left(display)
    planned = (*found.expansion.cells, *((found.expansion.canary,) if found.expansion.canary else ()))
    cells = [item.cell for item in planned]
    ensure_packages(cells, display, yes=yes)
    grounds = Grounds(
        plan=found.plan,
        expansion=found.expansion,
        builds=prepare_builds(cells, display),
        native_drivers=prepare_drivers(),
        erase=erase,
        erase_foreign=erase_foreign,
    )
    tally = StudyRun(store, grounds, LocalExecutor(), display).run(due)
    display.note(
        f"{tally.completed} visits completed, {tally.failed} failed, in {format_duration(tally.seconds)}"
    )
    return EXIT_SOME_RUNS_FAILED if tally.failed else EXIT_DONE


def _with_repetitions(text: str, repetitions: int) -> str:
    """The plan's text with another number of repetitions; everything else stays as it was written."""
    line = f"repetitions = {repetitions}"
    changed, count = re.subn(r"(?m)^repetitions\s*=\s*\d+", line, text, count=1)
    if count:
        return changed
    # Keys before the first table belong to the top; a plan that is silent gets the line there.
    return f"{line}\n{text}"
