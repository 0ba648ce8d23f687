"""A start of a study: `run` makes or goes on with one, `extend` adds to one. docs/EXPORT.md shows it in five lines.

Both come to the same: plan, refuse what is wrong, hold the study and its devices, prepare, run what is due.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.campaign.display import Display, LineDisplay
from bedplate.campaign.planning import (
    BegunStudy,
    PlannedStudy,
    kept_plan,
    read_begun_study,
    read_plan,
    repeated,
    work_out,
)
from bedplate.errors import (
    EXIT_DONE,
    EXIT_REQUIREMENT_MISSING,
    EXIT_SOME_RUNS_FAILED,
    DeviceInUse,
    DeviceRefused,
    PlanError,
    RequirementMissing,
    StudyError,
)
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory, state_directory
from bedplate.host.ledger import release_orphans
from bedplate.host.lock import IMAGE_FILES, study_lock, wait_for_last_visit
from bedplate.host.ownership import first_made, give_to_caller, make_for_caller
from bedplate.host.requirement import Requirement
from bedplate.host.scratch_device import (
    device_identity,
    image_path,
    journal_places,
    journal_refusal_reasons,
    refusal_reasons,
    shared_bytes_reasons,
)
from bedplate.model import codec
from bedplate.model.cell import Cell
from bedplate.model.devices import DeviceIdentity
from bedplate.model.machine import fleet_identity
from bedplate.model.plan import Plan, SearchRecord, pruned_lines
from bedplate.model.visit import ScratchDevice
from bedplate.study.layout import StudyLayout, is_study
from bedplate.study.records import PairedRecord, read_nodes
from bedplate.study.store import StudyStore, refuse_unless_new

if TYPE_CHECKING:
    from bedplate.executors.protocol import AfterRepetition, Executor, StartOutcome

# The visit of a killed start stops its server and unmounts; a full cache on a slow disk takes long.
_LEAVING_LIMIT_S = 300.0

# Where journals in memory stand.
_MEMORY = Path("/dev/shm")  # noqa: S108 -- files of bedplate's own


@contextlib.contextmanager
def claim_devices(
    scratch: ScratchDevice,
    *,
    study: Path,
    display: Display,
    journal: ScratchDevice | None,
    executor: Executor,
    recorded: Mapping[str, DeviceIdentity] | None = None,
    is_timed: bool = True,
) -> Iterator[Mapping[str, DeviceIdentity]]:
    """Hold the scratch device, and that of external journals, while the study runs; yields which disks they are, by their names.

    DeviceInUse if another study has one or a killed start's leavings cannot be given back, DeviceRefused
    with every reason why one may not be erased, or is not the one that the study has `recorded`. `study` need not exist yet.
    Where visits run on a fleet each claims the device of its own node, and nothing is held here.
    """
    if executor.fleet is not None:
        yield {}
        return
    # Before the locks, which would only say that this very start has the disk.
    if journal is not None and (reasons := shared_bytes_reasons(journal, scratch)):
        raise DeviceRefused(*reasons)
    names = [scratch.device] if scratch.device else [IMAGE_FILES, str(image_path(scratch, study / "scratch"))]
    if journal is not None and journal.device is not None:
        names.append(journal.device)

    def tell(holder: str) -> None:
        display.note(f"waiting for {holder}: a visit on the same device, which its start no longer watches")

    with contextlib.ExitStack() as stack:
        # In one order whatever they are used for, so that two studies cannot wait for each other.
        for name in sorted(names):
            stack.enter_context(study_lock(state_directory(), name, study=str(study), is_timed=is_timed))
        for name in names:
            wait_for_last_visit(
                state_directory(), name, deadline_s=_LEAVING_LIMIT_S, on_wait=tell, is_timed=is_timed
            )
        free_what_was_left(display)
        # Known before they are looked at: what is erased later is what was looked at, whatever a name does meanwhile.
        known = _identities((scratch, journal), recorded or {})
        reasons = _refusals(
            scratch.recorded_in(known),
            None if journal is None else journal.recorded_in(known),
            _image_directory(study),
            executor,
        )
        if reasons:
            raise DeviceRefused(*reasons)
        yield known


def _identities(
    scratch_devices: Iterable[ScratchDevice | None], recorded: Mapping[str, DeviceIdentity]
) -> Mapping[str, DeviceIdentity]:
    """As they were recorded, else as they are now; what is not there has none, and is refused."""
    known = {}
    for device in scratch_devices:
        if device is None or device.device is None:
            continue
        found = recorded.get(device.device) or device_identity(device.device)
        if found is not None:
            known[device.device] = found
    return known


def _refusals(
    scratch: ScratchDevice, journal: ScratchDevice | None, directory: Path, executor: Executor
) -> tuple[str, ...]:
    commands = Commands()
    reasons = [*refusal_reasons(scratch, commands, directory=directory)]
    for place in journal_places(journal):
        reasons += journal_refusal_reasons(place, scratch, commands, directory=_MEMORY)
    devices = (scratch.device, journal.device if journal else None)
    reasons += executor.device_reasons(device for device in devices if device is not None)
    return tuple(reasons)


def free_what_was_left(display: Display) -> None:
    """Release orphans and say so; DeviceInUse if something cannot be given back."""
    report = release_orphans(state_directory(), Commands())
    for done in report.released:
        display.note(f"left behind by a killed start: {done}")
    if report.problems:
        raise DeviceInUse(*report.problems, "see `bedplate release`")


def _image_directory(study: Path) -> Path:
    """Where an image would stand, or the nearest place above it that is there: on the same disk."""
    wanted = study / "scratch"
    return next(path for path in (wanted, *wanted.parents) if path.is_dir())


def _nobody(_question: str) -> bool:
    return False


@dataclass(frozen=True)
class Consent:
    """Which devices may be erased, also with a foreign signature, and whether packages may be installed.

    `ask` puts a question to a person, and is True for a yes.
    """

    erase: tuple[str, ...] = ()
    erase_foreign: bool = False
    yes: bool = False
    ask: Callable[[str], bool] = _nobody

    def allow_erasing(self, scratch: ScratchDevice) -> ScratchDevice:
        """The device with what may be erased."""
        return replace(scratch, erase=self.erase, erase_foreign=self.erase_foreign)


def ensure_requirements(study_plan: PlannedStudy, display: Display, consent: Consent) -> None:
    """Everything that the plan needs of the system, and what its executor fetches before cells are chosen.

    RequirementMissing with the exact command when nobody can be asked, or the answer is no.
    """
    from bedplate.campaign.preparation import install, is_root  # noqa: PLC0415
    from bedplate.host.requirement import install_command, read_os_release  # noqa: PLC0415

    lacking = lacking_of(study_plan)
    if lacking:
        command = install_command(lacking, os_release=read_os_release())
        sentences = [item.sentence for item in lacking]
        if command is None:
            raise RequirementMissing(*sentences, "this distribution is not known; install these by hand")
        shown = " ".join(command)
        if not is_root():
            raise RequirementMissing(*sentences, f"install them: sudo {shown}")
        # Where nobody can be asked, the error alone names them.
        if not consent.yes and not consent.ask("\n".join((*sentences, f"Install them now with `{shown}`?"))):
            raise RequirementMissing(*sentences, f"install them: {shown}")
        install(command, display)
        still = lacking_of(study_plan)
        if still:
            raise RequirementMissing(*(f"after installing: {item.sentence}" for item in still))
    study_plan.executor.prepare(study_plan.plan, display)


def lacking_of(study_plan: PlannedStudy) -> tuple[Requirement, ...]:
    """What of the system is missing; RequirementMissing where the executor cannot be had at all."""
    from bedplate.campaign.preparation import requirements_of  # noqa: PLC0415
    from bedplate.host.requirement import missing  # noqa: PLC0415

    return missing(requirements_of(study_plan.cells, study_plan.workloads, executor=study_plan.executor))


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


def refuse_wrong_call(study_plan: PlannedStudy, consent: Consent) -> None:
    """What is wrong with the plan or the call, before anything else is looked at."""
    refuse_nothing_to_run(study_plan)
    refuse_datasets(study_plan)
    devices = study_plan.plan.devices_erased
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
            f"`bedplate run {study} --repetitions N` visits all cells"
        )


def refuse_nothing_to_run(study_plan: PlannedStudy) -> None:
    """PlanError with what prunes the cells, where none is left."""
    if not study_plan.expansion.cells:
        causes = dict.fromkeys(
            str(reason) for pruned in study_plan.expansion.pruned for reason in pruned.reasons
        )
        raise PlanError("no cell of this plan can run here", *causes)


def refuse_a_side_left_out(study_plan: PlannedStudy, paired: PairedRecord) -> None:
    """PlanError with what prunes it, where a cell of a pair cannot run here after all: a pair of one is none, and blocks would have no end."""
    kept = {planned.cell.id for planned in study_plan.expansion.cells}
    if all({pair.baseline, pair.contender} <= kept for pair in paired.pairs):
        return
    causes = dict.fromkeys(str(reason) for pruned in study_plan.expansion.pruned for reason in pruned.reasons)
    raise PlanError(
        f"a side of {paired.contender} beside {paired.baseline} cannot run here, so there is nothing to compare it with",
        *causes,
    )


def refuse_datasets(study_plan: PlannedStudy) -> None:
    """RequirementMissing where what a dataset is made of cannot be had here, or where its visits run."""
    from bedplate.campaign.preparation import inputs_by_workload  # noqa: PLC0415

    makers, on_nodes = inputs_by_workload(), study_plan.executor.fleet is not None
    obstacles = (
        makers[dataset.workload].obstacle(dataset, on_nodes=on_nodes)
        for dataset in dict.fromkeys(study_plan.datasets)
        if dataset.workload in makers
    )
    if reasons := tuple(dict.fromkeys(filter(None, obstacles))):
        raise RequirementMissing(*reasons)


def refuse_without_root(study_plan: PlannedStudy) -> None:
    """RequirementMissing where visits would change this system, and may not."""
    from bedplate.campaign.preparation import is_root  # noqa: PLC0415

    if study_plan.executor.runs_here and not is_root():
        raise RequirementMissing(
            "measuring formats and mounts, which needs root: give the same command with sudo, "
            "or with --executor qemu, which does it in a guest",
            "without root you can look: `bedplate plan`, `doctor`, and on any study `show`, "
            "`report`, `export`",
        )


def refuse_another_plan(study_plan: PlannedStudy, study: Path) -> None:
    """Asked of a study that is held: nobody else can extend it meanwhile."""
    from bedplate.plan.differences import differences, obstacles_to_extend  # noqa: PLC0415

    before = kept_plan(study)
    changed = differences(before.plan, study_plan.plan)
    if changed and not obstacles_to_extend(study_plan.plan, before.plan):
        raise StudyError(
            *(f"{study} was extended since: {change}" for change in changed),
            f"go on with `bedplate run {study} --repetitions {before.plan.repetitions}`",
        )
    if changed:
        raise StudyError(
            *(f"{study} was begun with another plan: {change}" for change in changed),
            "give the same plan, another --study, or add to this one with `bedplate run STUDY --repetitions N`",
        )


def refuse_another_machine(study_plan: PlannedStudy, store: StudyStore) -> None:
    """StudyError where the executor cannot go on here; another kernel that it takes is noted in the study."""
    facts = store.facts
    obstacle = study_plan.executor.another_machine(study_plan.plan, facts, study_plan.machine)
    if obstacle is not None:
        raise StudyError(f"{store.layout.directory} {obstacle}")
    if study_plan.executor.runs_here and facts.kernel_release != study_plan.machine.kernel_release:
        store.note_kernel(study_plan.machine.kernel_release)


def refuse_lost_visits(study_plan: PlannedStudy, store: StudyStore) -> None:
    """What the study holds must stay in its schedule, whatever this machine would refuse by now."""
    kept = {planned.cell.id for planned in study_plan.expansion.cells}
    why = {pruned.cell.id: pruned.reasons for pruned in study_plan.expansion.pruned}
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


def setting_doubts(study_plan: PlannedStudy) -> tuple[str, ...]:
    """What the servers that are built do not know of the plan's settings; nothing of one that has yet to be built."""
    checks = registry.engine_parts("settings_check").values()
    return tuple(dict.fromkeys(words for check in checks for words in check(study_plan.cells)))


def plan_doubts(study_plan: PlannedStudy) -> tuple[str, ...]:
    """All of them, a sentence each."""
    return (*study_plan.expansion.warnings, *setting_doubts(study_plan))


def tell_pruned(study_plan: PlannedStudy, display: Display, *, besides: Collection[Cell] = ()) -> None:
    """The cells that cannot be, `besides` those that were told before, with the reasons: a trial may know more than the plan did."""
    for line in pruned_lines(each for each in study_plan.expansion.pruned if each.cell not in besides):
        display.note(line)


def tell_doubts(study_plan: PlannedStudy, display: Display) -> None:
    """The pruned cells, and a line for each doubt, as `bedplate plan` has them."""
    tell_pruned(study_plan, display)
    for words in plan_doubts(study_plan):
        display.note(f"warning: {words}")


if TYPE_CHECKING:
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
    bad_without_cut: int = 0
    """runs of power cuts in which something was missing or damaged where nothing was cut"""

    @property
    def exit_code(self) -> int:
        """That of `bedplate run`: it speaks of the whole study."""
        if self.start is not None and (self.start.needs_kernel is not None or self.start.not_built):
            return EXIT_REQUIREMENT_MISSING
        left_behind = self.start is not None and self.start.left_behind
        return EXIT_SOME_RUNS_FAILED if self.failed or left_behind or self.bad_without_cut else EXIT_DONE


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
    after_repetition: AfterRepetition | None = None,
) -> StudyOutcome:
    """Run a plan into a study, or go on with it; `executor` takes the place of the plan's.

    A new study begins with the doubts about its plan; without `doubts` the caller has told them. With `paired` it is one of pairs,
    and has its first block alone, which says whether others are worth their time.
    """
    consent, study, lines = consent or Consent(), absolute(study), LineDisplay()
    prior, study_plan = read_call(
        plan, study, consent, executor=executor, refuse=refuse_unended_search, one_block=paired is not None
    )
    made = first_made(study)
    with ExitStack() as stack:
        stack.callback(give_to_caller, made)
        if prior is not None:
            store = reopened(study_plan, study, stack)
            study_plan = study_plan.as_recorded(store.schedule)
            lines.note(f"going on with {study}")
            if store.due_visits(study_plan.schedule, retry_failed=retry_failed):
                hold_devices(study_plan, study, consent, stack, plan, store=store)
            else:
                # A killed start of a complete study may have left something all the same.
                free_what_was_left(lines)
        else:
            refuse_without_root(study_plan)
            before = {each.cell for each in study_plan.expansion.pruned}
            study_plan, devices = hold_new_study(study_plan, study, consent, stack, plan)
            if paired is not None:
                refuse_a_side_left_out(study_plan, paired)
            if doubts:
                tell_doubts(study_plan, lines)
            else:
                tell_pruned(study_plan, lines, besides=before)
            make_for_caller(study)
            store = stack.enter_context(begin(study_plan, study, identities=devices, paired=paired))
        return _measure(
            study_plan,
            store,
            consent,
            watch,
            retry_failed=retry_failed,
            after_repetition=after_repetition,
        )


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
        raise PlanError("say either --repetitions N or --add PLAN: what is to be added?")
    consent, study, lines = consent or Consent(), absolute(study), LineDisplay()
    study_plan, _ = _extended(study, repetitions, plan, executor)
    refuse_wrong_call(study_plan, consent)
    refuse_without_root(study_plan)
    with ExitStack() as stack:
        stack.callback(give_to_caller, first_made(study))
        store = stack.enter_context(StudyStore.open(study))
        # Once more, now that nobody else can change it.
        study_plan, what = _extended(study, repetitions, plan, executor)
        refuse_another_machine(study_plan, store)
        hold_devices(study_plan, study, consent, stack, *filter(None, (plan,)), store=store)
        ensure_requirements(study_plan, lines, consent)
        study_plan = work_out(
            study_plan, prior=study_plan.circumstances.begun, tell_trials=tell_trials
        ).with_searched()
        refuse_lost_visits(study_plan, store)
        if plan is not None:
            tell_doubts(study_plan, lines)
        before = store.search
        if study_plan.plan.digest == store.facts.plan_digest and (
            before is None or before.extended is not None
        ):
            lines.note(f"{study} has all of that already; going on with it")
        else:
            store.extend(
                plan=study_plan.plan,
                plan_text=study_plan.text,
                plan_files=study_plan.plan.files,
                expansion=study_plan.expansion,
                schedule=study_plan.schedule,
                change=what,
                search=None if before is None else replace(before, extended=study_plan.plan.repetitions),
            )
        return _measure(study_plan, store, consent, watch, retry_failed=retry_failed)


def tell_trials(current: int, total: int) -> None:
    """One line for all of them: they take a tenth of a second each."""
    if current == 0:
        LineDisplay().note(f"trying {total} file systems of the plan on this kernel")


def _extended(
    study: Path, repetitions: int | None, plan: Path | None, executor: str | None
) -> tuple[PlannedStudy, str]:
    """The larger plan and what the study's history will say; StudyError if it does not only add."""
    from bedplate.plan.differences import obstacles_to_extend  # noqa: PLC0415

    before, prior = kept_plan(study), read_begun_study(study)
    if plan is not None:
        plan_file = read_plan(plan, executor=executor, prior=prior)
        what = f"extended by {plan.name}"
    else:
        plan_file = repeated(before, repetitions or 0, executor=executor, prior=prior)
        what = f"extended from {before.plan.repetitions} to {repetitions} repetitions"
    if prior.search is not None and prior.search.extended is None:
        what = f"extended from a search to {plan_file.plan.repetitions} repetitions of all cells"
    study_plan = work_out(plan_file, prior=prior).with_searched()
    obstacles = obstacles_to_extend(before.plan, study_plan.plan)
    if obstacles:
        raise StudyError(*(f"{study} cannot be extended so: {obstacle}" for obstacle in obstacles))
    return study_plan, what


def read_call(
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
    prior = read_begun_study(study) if is_study(study) else None
    if prior is not None:
        refuse(study, prior.search)
    else:
        refuse_unless_new(study)
    plan_file = read_plan(plan, executor=executor, prior=prior)
    if one_block and prior is None:
        plan_file = repeated(plan_file, 1, executor=executor)
    study_plan = work_out(plan_file, prior=prior, nodes=read_nodes(StudyLayout(study)))
    refuse_wrong_call(study_plan, consent)
    return prior, study_plan


def reopened(study_plan: PlannedStudy, study: Path, stack: ExitStack) -> StudyStore:
    """The store of a study that was begun, held until the stack ends. StudyError if it was begun with another plan or elsewhere."""
    refuse_without_root(study_plan)
    store = stack.enter_context(StudyStore.open(study))
    refuse_another_plan(study_plan, study)
    refuse_another_machine(study_plan, store)
    return store


def hold_new_study(
    study_plan: PlannedStudy, study: Path, consent: Consent, stack: ExitStack, plan: Path
) -> tuple[PlannedStudy, Mapping[str, DeviceIdentity]]:
    """What a new study needs is there and its devices are held; the plan, now that more is known, and the devices. PlanError if no cell is left."""
    ensure_requirements(study_plan, LineDisplay(), consent)
    devices = hold_devices(study_plan, study, consent, stack, plan)
    study_plan = known_better(study_plan, study, consent)
    refuse_nothing_to_run(study_plan)
    return study_plan, devices


def hold_devices(
    study_plan: PlannedStudy,
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
    from bedplate.host.mount import (  # noqa: PLC0415
        enter_own_namespaces,
        follow_no_links_below,
        let_go_of_foreign_mounts,
        paths_in,
    )

    journal = study_plan.plan.journal_device
    devices = stack.enter_context(
        claim_devices(
            consent.allow_erasing(study_plan.plan.scratch_device),
            study=study,
            display=LineDisplay(),
            journal=None if journal is None else consent.allow_erasing(journal),
            executor=study_plan.executor,
            recorded=None if store is None else store.facts.devices,
            is_timed=study_plan.expansion.is_timed,
        )
    )
    if store is not None:
        store.record_devices(devices)
    # Guests and nodes mount nothing on this machine.
    if study_plan.executor.runs_here and is_root():
        enter_own_namespaces()
        own = (state_directory(), cache_directory(), Path.home())
        # The image may stand on a disk of its own, mounted there.
        places = (study, StudyLayout(study).scratch)
        let_go_of_foreign_mounts((*places, *files, *own, *paths_in(codec.to_json(study_plan.plan))))
        if store is not None:
            follow_no_links_below(study)
    return devices


def known_better(study_plan: PlannedStudy, study: Path, consent: Consent) -> PlannedStudy:
    """The same, now that it can be known what each kernel takes, and what the nodes of a fleet are."""
    nodes, fleet = None, study_plan.executor.fleet
    if fleet is not None:
        make_for_caller(study)
        nodes = fleet.look(study_plan.plan, study, LineDisplay(), erase_foreign=consent.erase_foreign)
    return work_out(study_plan, tell_trials=tell_trials, nodes=nodes)


def begin(
    study_plan: PlannedStudy,
    study: Path,
    *,
    identities: Mapping[str, DeviceIdentity],
    search: SearchRecord | None = None,
    paired: PairedRecord | None = None,
) -> StudyStore:
    """The new study on disk, held by its store, with the `identities` that were held for it; with `search` it is one, with `paired` one of pairs."""
    from bedplate.campaign.preparation import is_root  # noqa: PLC0415
    from bedplate.host.facts import tool_versions  # noqa: PLC0415
    from bedplate.host.mount import follow_no_links_below  # noqa: PLC0415

    # A fleet's machine has what was found on its nodes.
    fleet = study_plan.executor.fleet
    store = StudyStore.create(
        study,
        plan=study_plan.plan,
        plan_text=study_plan.text,
        plan_files=study_plan.plan.files,
        machine=study_plan.machine if fleet else replace(study_plan.machine, tools=tool_versions()),
        machine_identity=fleet_identity(read_nodes(StudyLayout(study))) if fleet else None,
        expansion=study_plan.expansion,
        schedule=study_plan.schedule,
        executor=study_plan.choice.executor,
        search=search,
        paired=paired,
        identities=identities,
    )
    # By now in mounts of its own.
    if study_plan.executor.runs_here and is_root():
        follow_no_links_below(study)
    return store


def _measure(
    study_plan: PlannedStudy,
    store: StudyStore,
    consent: Consent,
    watch: Watch,
    *,
    retry_failed: bool,
    after_repetition: AfterRepetition | None = None,
) -> StudyOutcome:
    """The due visits of a study whose devices are held."""
    due = store.due_visits(study_plan.schedule, retry_failed=retry_failed)
    start = None
    if due:
        from bedplate.campaign.start import StudyStart  # noqa: PLC0415 -- polars

        ensure_requirements(study_plan, LineDisplay(), consent)
        if study_plan.executor.fleet is not None:
            study_plan.executor.fleet.require_same(
                study_plan.plan, store, LineDisplay(), erase_foreign=consent.erase_foreign
            )
        with watch() as display:
            prepared = StudyStart.prepared(study_plan, store, due, consent, display)
            start = replace(prepared, after_repetition=after_repetition).by(study_plan.executor)
    failed = (
        0 if start is not None and start.needs_kernel is not None else store.unsuccessful(study_plan.schedule)
    )
    return StudyOutcome(
        store.layout.directory,
        study_plan.plan,
        len(study_plan.schedule.visits),
        failed,
        start,
        study_plan.machine.kernel_release,
        store.bad_without_cut(study_plan.schedule),
    )
