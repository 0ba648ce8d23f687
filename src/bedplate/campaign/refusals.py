"""What a start refuses before it touches anything: a wrong call, another plan, another machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.campaign.planning import kept_plan
from bedplate.errors import PlanError, RequirementMissing, StudyError

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.campaign.consent import Consent
    from bedplate.campaign.planning import PlannedStudy
    from bedplate.model.search import SearchRecord
    from bedplate.study.paired import PairedRecord
    from bedplate.study.store import StudyStore


def absolute(study: Path) -> Path:
    """A visit is another process and stands elsewhere; StudyError for a name that records cannot hold.

    A link that the call names is followed here, once: from then on it is the directory.
    """
    path = study.resolve() if study.is_symlink() else study.absolute()
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise StudyError(f"{os.fsencode(path)!r} is no UTF-8; name another directory with --study") from None
    return path


def refuse_wrong_call(found: PlannedStudy, consent: Consent) -> None:
    """What is wrong with the plan or the call, before anything else is looked at."""
    refuse_nothing_to_run(found)
    refuse_datasets(found)
    devices = found.plan.devices_erased
    used = f"{' and '.join(devices)} alone" if devices else "an image file and erases no device"
    reasons = [
        f"this plan erases {name}; say that you mean it: --erase {name}"
        for name in devices
        if name not in consent.erase
    ]
    reasons += [f"--erase {name}: this plan uses {used}" for name in consent.erase if name not in devices]
    if reasons:
        raise PlanError(*reasons)


def refuse_unended_search(study: Path, search: SearchRecord | None) -> None:
    """StudyError where a study is a search still: its visits follow from each other, and not from the plan alone."""
    if search is not None and search.extended is None:
        raise StudyError(
            f"{study} is a search; `bedplate search PLAN --study {study}` goes on with it, and "
            f"`bedplate extend {study} --repetitions N` visits all cells"
        )


def refuse_nothing_to_run(found: PlannedStudy) -> None:
    """PlanError with what prunes the cells, where none is left."""
    if not found.expansion.cells:
        causes = dict.fromkeys(str(reason) for pruned in found.expansion.pruned for reason in pruned.reasons)
        raise PlanError("no cell of this plan can run here", *causes)


def refuse_a_side_left_out(found: PlannedStudy, paired: PairedRecord) -> None:
    """PlanError with what prunes it, where a cell of a pair cannot run here after all: a pair of one is none, and blocks would have no end."""
    kept = {planned.cell.id for planned in found.expansion.cells}
    if all({pair.baseline, pair.contender} <= kept for pair in paired.pairs):
        return
    causes = dict.fromkeys(str(reason) for pruned in found.expansion.pruned for reason in pruned.reasons)
    raise PlanError(
        f"a side of {paired.contender} beside {paired.baseline} cannot run here, so there is nothing to compare it with",
        *causes,
    )


def refuse_datasets(found: PlannedStudy) -> None:
    """RequirementMissing where what a dataset is made of cannot be had here, or where its visits run."""
    from bedplate.campaign.dataset_inputs import inputs_by_workload  # noqa: PLC0415

    makers, on_nodes = inputs_by_workload(), found.executor.fleet is not None
    obstacles = (
        makers[dataset.workload].obstacle(dataset, on_nodes=on_nodes)
        for dataset in dict.fromkeys(found.datasets)
        if dataset.workload in makers
    )
    if reasons := tuple(dict.fromkeys(filter(None, obstacles))):
        raise RequirementMissing(*reasons)


def refuse_without_root(found: PlannedStudy) -> None:
    """RequirementMissing where visits would change this system, and may not."""
    from bedplate.campaign.preparation import is_root  # noqa: PLC0415

    if found.executor.runs_here and not is_root():
        raise RequirementMissing(
            "measuring formats and mounts, which needs root: give the same command with sudo, "
            "or with --executor qemu, which does it in a guest",
            "without root you can look: `bedplate plan`, `doctor`, and on any study `status`, `show`, "
            "`report`, `export`",
        )


def refuse_another_plan(found: PlannedStudy, study: Path) -> None:
    """Asked of a study that is held: nobody else can extend it meanwhile."""
    from bedplate.plan.differences import differences, obstacles_to_extend  # noqa: PLC0415

    before = kept_plan(study)
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


def refuse_another_machine(found: PlannedStudy, store: StudyStore) -> None:
    """StudyError where the executor cannot go on here; another kernel that it takes is noted in the study."""
    facts = store.facts
    obstacle = found.executor.another_machine(found.plan, facts, found.machine)
    if obstacle is not None:
        raise StudyError(f"{store.layout.directory} {obstacle}")
    if found.executor.runs_here and facts.kernel_release != found.machine.kernel_release:
        store.note_kernel(found.machine.kernel_release)


def refuse_lost_visits(found: PlannedStudy, store: StudyStore) -> None:
    """What the study holds must stay in its schedule, whatever this machine would refuse by now."""
    kept = {planned.cell.id for planned in found.expansion.cells}
    why = {pruned.cell.id: pruned.reasons for pruned in found.expansion.pruned}
    recorded = {visit.cell_id for visit in store.schedule.visits if not visit.canary}
    lost = sorted(recorded - kept)
    if lost:
        raise StudyError(
            *(
                f"{cell}, which the study has, can no longer run here: {'; '.join(map(str, why[cell]))}"
                for cell in lost
            ),
            "undo what changed on this machine, or name another --study",
        )
