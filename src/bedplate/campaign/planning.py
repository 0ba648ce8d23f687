"""What a plan is, and what it comes to on this machine.

A plan is read once, and worked out once: again only when more is known of the machine (a kernel was fetched, file
systems were tried, nodes were looked at) than when it was worked out before.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bedplate.errors import BedplateError, PlanError, StudyError
from bedplate.executors.registry import executor_for
from bedplate.filesystem.refusals import MKFS_REFUSED, MKFS_WARNED, PASSING_TROUBLE, probe_key, probe_refusals
from bedplate.filesystem.registry import FILESYSTEMS, filesystem_for
from bedplate.host.command import Commands
from bedplate.host.files import SYSTEM_CACHE, cache_directory, state_directory
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import Ledger
from bedplate.installation import shipped
from bedplate.model import codec, limits
from bedplate.model.cell import SOURCES, Cell, Dataset, FilesystemLevels, KernelLevels, is_commit_level
from bedplate.model.course import first_of
from bedplate.model.filesystem import BARRIER_BY_MOUNT_OPTION, TRAITS, contradictions, without_age
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine, NodeFacts
from bedplate.model.plan import DEFAULTS_VERSION, Expansion, Plan, Schedule, SearchRecord
from bedplate.near_names import near_names, near_paths, quoted
from bedplate.plan.rules import LOCAL, QEMU, SLURM, Platform, kernel_refusals
from bedplate.study.layout import StudyLayout, is_study, refuse_imported, require_known_format
from bedplate.study.records import StudyFacts, StudySchedule, read_nodes, read_order, recorded_expansion
from bedplate.study.stored import scheduled_place
from bedplate.text_encoding import decode_text
from bedplate.units import format_size

if TYPE_CHECKING:
    from bedplate.executors.protocol import Executor
    from bedplate.plan.estimate import StudyEstimate


def with_repetitions(text: str, repetitions: int) -> str:
    """The plan with that number; PlanError where its text cannot be changed with certainty."""
    line = f"repetitions = {repetitions}"
    return _with_line(text, "repetitions", repetitions, line) or _refuse(
        f"the study's plan cannot be changed to {repetitions} repetitions by itself; copy its plan.toml, "
        f"write `{line}` there, and give that with --plan"
    )


def with_executor(text: str, executor: str) -> str:
    """The plan with that executor; PlanError as above."""
    line = f'executor = "{executor}"'
    return _with_line(text, "executor", executor, line) or _refuse(
        f"the plan cannot be changed to --executor {executor} by itself; write `{line}` into a copy of it, "
        "and give the copy"
    )


def _refuse(reason: str) -> str:
    raise PlanError(reason)


def _with_line(text: str, key: str, value: str | int, line: str) -> str | None:
    wanted = {**tomllib.loads(text), key: value}
    # The key may be quoted, and stand under spaces; what TOML makes of a candidate decides.
    lines = re.compile(rf"""(?m)^[ \t]*(?:{key}|"{key}"|'{key}')[ \t]*=[^\n#]*""")
    candidates = [f"{text[: found.start()]}{line} {text[found.end() :]}" for found in lines.finditer(text)]
    # A plan that is silent gets the line at its top: keys before the first table belong there.
    for candidate in (*candidates, f"{line}\n{text}"):
        try:
            changed = tomllib.loads(candidate)
        except tomllib.TOMLDecodeError:
            continue
        if changed == wanted:
            return candidate
    return None


# A tenth of a second each. A plan with more is judged by the rules, and by its visits.
MOST_TRIALS = 200

# What a loop device lacks and a real one may have, or what fits a large device and not a small image.
_OF_THE_DEVICE = re.compile(
    r"(?:^|,)(?:dax|discard|(?:su|sw|sunit|swidth|stride|stripe|stripe[-_]width|ag\w+|size|maxpct)=)"
)

_LOOP = re.compile(r"(?:/dev/)?\bloop\d+\b")


@dataclass(frozen=True)
class Trial:
    """One question: these levels, kept under that name."""

    levels: FilesystemLevels
    key: str


def usual_levels(machine: Machine) -> tuple[FilesystemLevels, ...]:
    """What plans ask of the types that `machine` has, one level at a time beside the type's defaults.

    Every block size, every level of a type's own factors, no barriers, no journal. A journal on a second
    device is left out, as a trial has one image.
    """
    found: list[FilesystemLevels] = []
    for kind, traits in TRAITS.items():
        if kind not in FILESYSTEMS or not set(traits.kernel_types) & set(machine.filesystems):
            continue
        plain = FilesystemLevels(kind)
        found.append(plain)
        found += [replace(plain, block_size_bytes=size) for size in traits.block_sizes]
        found += [
            replace(plain, features=Levels({name: level}))
            for name, levels in traits.features.items()
            for level in levels
            if without_age(Levels({name: level}))
        ]
        # Where the device's switch does it, the file system is not asked.
        if traits.barrier_by == BARRIER_BY_MOUNT_OPTION:
            found.append(replace(plain, barrier=False))
        if "none" in traits.journals:
            found.append(replace(plain, journal="none"))
    return tuple(found)


def known_refusals(
    filesystems: Iterable[FilesystemLevels], machine: Machine
) -> Mapping[FilesystemLevels, tuple[str, ...]]:
    """The answers that are there already, by levels: none refused, or the reasons. Needs no root."""
    found = {}
    for trial in _trials(filesystems, machine):
        answer = _read_answer(trial.key)
        if answer is not None:
            found[trial.levels] = answer
    return found


def find_refusals(
    filesystems: Iterable[FilesystemLevels], machine: Machine, *, tell: Callable[[int, int], None]
) -> Mapping[FilesystemLevels, tuple[str, ...]]:
    """The same with what is not known tried now: needs root; `tell` is given done and total.

    A trial that cannot be made (a tool is missing, no loop device) leaves its levels out: the rules
    then judge them, and in the end a visit.
    """
    trials = tuple(_trials(filesystems, machine))
    found = {trial.levels: answer for trial in trials if (answer := _read_answer(trial.key)) is not None}
    unknown = [trial for trial in trials if trial.levels not in found][:MOST_TRIALS]
    if not unknown:
        return found
    commands = Commands()
    ledger = Ledger.open(state_directory(), f"{os.getpid()}-trial")
    try:
        for number, trial in enumerate(unknown):
            tell(number, len(unknown))
            try:
                reasons = probe_refusals(trial.levels, commands=commands, ledger=ledger)
            except BedplateError:
                continue
            codes = {reason.code for reason in reasons}
            # Options of the plan's own that mkfs minds it may take on a device of another size.
            of_the_size = bool(trial.levels.mkfs_options and codes & {MKFS_REFUSED, MKFS_WARNED})
            if of_the_size or PASSING_TROUBLE in codes:
                continue
            answer = tuple(_LOOP.sub("a trial image", reason.sentence) for reason in reasons)
            found[trial.levels] = answer
            _keep(trial.key, answer)
        tell(len(unknown), len(unknown))
    finally:
        with defer_interruptions():
            ledger.release(commands)
            ledger.close()
    return found


def _trials(filesystems: Iterable[FilesystemLevels], machine: Machine) -> Iterator[Trial]:
    """What trying can answer, each once: not what the kernel lacks altogether, nor what no kernel has."""
    versions: dict[str, Mapping[str, str] | None] = {}
    for levels in dict.fromkeys(filesystems):
        kind = levels.type
        if kind not in FILESYSTEMS or not set(TRAITS[kind].kernel_types) & set(machine.filesystems):
            continue
        if contradictions(levels) or _asks_of_the_device(levels):
            continue
        if kind not in versions:
            versions[kind] = _versions(kind)
        told = versions[kind]
        if told is not None:
            tried = replace(levels, features=without_age(levels.features))
            yield Trial(levels, probe_key(tried, versions=told))


def _asks_of_the_device(levels: FilesystemLevels) -> bool:
    return any(
        _OF_THE_DEVICE.search(word) is not None for word in (*levels.mount_options, *levels.mkfs_options)
    )


def _versions(kind: str) -> Mapping[str, str] | None:
    try:
        return filesystem_for(kind).versions(commands=Commands())
    except BedplateError:
        return None  # its tool is missing, which `doctor` and `run` say


def _read_answer(key: str) -> tuple[str, ...] | None:
    for place in dict.fromkeys((cache_directory(), SYSTEM_CACHE)):
        try:
            answer = json.loads((place / "refusals" / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(answer, list) and all(isinstance(reason, str) for reason in answer):
            return tuple(answer)
    return None


def _keep(key: str, reasons: tuple[str, ...]) -> None:
    folder = cache_directory() / "refusals"
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{key}.{os.getpid()}"
    temporary.write_text(json.dumps(reasons), encoding="utf-8")
    temporary.replace(folder / f"{key}.json")


AUTO = "auto"

_MOST_NAMES = 6


class GuestKernels(Protocol):
    """What is known of guests before one runs."""

    def machine(self, release: str | None) -> Machine | None:
        """The guest as a machine under the kernel that is asked for; None if that is not in the cache."""

    def releases(self) -> tuple[str, ...]:
        """Every kernel in the cache, the newest first."""


@dataclass(frozen=True)
class Chosen:
    """What was chosen (`executor`, `kernel`), which one, and why; a sentence of neither has no `what`."""

    words: str
    what: str = ""
    which: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.which}: {self.words}" if self.what else self.words


@dataclass(frozen=True)
class ExecutorChoice:
    """Where the cells of a plan run, and why."""

    platform: Platform
    reasons: tuple[Chosen, ...]

    @property
    def executor(self) -> str:
        """`local`, `qemu` or `slurm`."""
        return self.platform.executor


class CachedKernels:
    """The kernels that are in the cache; ZFS counts where its modules have been built."""

    def __init__(self, cache: Path, *, host: Machine, memory_bytes: int) -> None:
        self._cache = cache
        self._host = host
        self._memory_bytes = memory_bytes

    def machine(self, release: str | None) -> Machine | None:
        """The guest as a machine; PlanError for a path that holds no kernel."""
        from bedplate.executors.qemu.kernels import find_kernel, guest_machine  # noqa: PLC0415
        from bedplate.executors.qemu.zfs import with_zfs  # noqa: PLC0415

        kernel = find_kernel(release, cache_directory=self._cache)
        if kernel is None:
            return None
        found = guest_machine(kernel, memory_bytes=self._memory_bytes, host=self._host)
        return with_zfs(found, kernel, self._cache)

    def releases(self) -> tuple[str, ...]:
        """Those in the cache, the newest first."""
        from bedplate.executors.qemu.kernels import known_kernels  # noqa: PLC0415

        return tuple(kernel.release for kernel in reversed(known_kernels(self._cache)))


def choose(plan: Plan, machine: Machine, *, kernels: GuestKernels) -> ExecutorChoice:
    """Where this plan would run now.

    `local`, `qemu` and `slurm` are taken at their word. `auto` is local for root under a kernel that has every
    file system of the plan, else qemu. A guest's kernel is the one that the plan names, else the
    executor's own if it takes every file system, else the newest that does, else one per cell.
    """
    executor, words = _executor(plan, machine)
    why = Chosen(words, "executor", executor)
    if executor in {LOCAL, SLURM}:
        return ExecutorChoice(Platform(executor), (why,))
    asked = tuple(levels.release for levels in plan.kernels)
    if asked != (None,):
        guests = _machines_of(asked, kernels)
        return ExecutorChoice(Platform(QEMU, guests), (why, *_not_fetched(asked, guests)))
    guests = _machines_of((None,), kernels)
    if None not in guests:
        return ExecutorChoice(Platform(QEMU), (why, *_not_fetched((None,), guests)))
    chosen, sentences = _kernels(plan, guests[None], kernels)
    guests |= _machines_of(tuple(chosen.values()), kernels)
    return ExecutorChoice(Platform(QEMU, guests, chosen), (why, *sentences))


def recorded_choice(
    plan: Plan, machine: Machine, *, executor: str, cells: Iterable[Cell], kernels: GuestKernels
) -> ExecutorChoice:
    """The choice that a study was begun with; file systems that are new to it are chosen for now.

    `cells` are those that the study keeps, `executor` its own.
    """
    kept = {cell.filesystem: cell.kernel.release for cell in cells}
    now = choose(replace(plan, executor=executor), machine, kernels=kernels)
    chosen = {levels: release for levels, release in now.platform.chosen.items() if levels not in kept}
    if executor not in {LOCAL, SLURM}:
        chosen |= {levels: release for levels, release in kept.items() if release is not None}
    guests = (
        now.platform.guests if executor in {LOCAL, SLURM} else _machines_of((None, *chosen.values()), kernels)
    )
    platform = Platform(executor, {**now.platform.guests, **guests}, chosen)
    begun_with_it = Chosen("the study was begun with it", "executor", executor)
    return ExecutorChoice(platform, (begun_with_it, *now.reasons[1:]))


def _executor(plan: Plan, machine: Machine) -> tuple[str, str]:
    if plan.executor != AUTO:
        # A plan may leave it out, and --executor may replace it. All three look alike here.
        asked = (
            "nothing else is asked for" if plan.executor == LOCAL else "the plan or --executor asks for it"
        )
        return plan.executor, asked
    if not machine.is_root:
        return QEMU, "this is not root, and a guest needs none"
    named = [levels.release for levels in plan.kernels if not levels.takes(machine.kernel_release)]
    if named:
        return QEMU, (
            f"the plan asks for kernel {_listed(map(str, named))}, this is {machine.kernel_release}"
        )
    here = set(machine.filesystems)
    types = dict.fromkeys(levels.type for levels in plan.filesystems)
    lacking = [kind for kind in types if not set(TRAITS[kind].kernel_types) & here]
    if lacking:
        return QEMU, f"the running kernel {machine.kernel_release} has no {_listed(lacking)}"
    return LOCAL, f"this is root, and kernel {machine.kernel_release} has every file system of the plan"


def _kernels(
    plan: Plan, default_guest: Machine, kernels: GuestKernels
) -> tuple[dict[FilesystemLevels, str], tuple[Chosen, ...]]:
    """The kernel of each variant where it is not the executor's own, and why."""
    refused_by_own = _refused(plan, default_guest)
    if not refused_by_own:
        return {}, (Chosen("it has every file system of the plan", "kernel", default_guest.kernel_release),)
    others = {
        release: found
        for release in kernels.releases()
        if release != default_guest.kernel_release and (found := kernels.machine(release)) is not None
    }
    refused = {release: _refused(plan, found) for release, found in others.items()}
    # What no kernel at hand takes is pruned under any, and decides nothing.
    hopeless = refused_by_own.intersection(*refused.values())
    if refused_by_own == hopeless:
        return {}, (
            Chosen("no kernel at hand takes more of the plan", "kernel", default_guest.kernel_release),
        )
    for release, one in refused.items():
        if one == hopeless:
            why = "the newest at hand that has every file system of the plan"
            words = f"{why} ({default_guest.kernel_release} lacks one)"
            return dict.fromkeys(plan.filesystems, release), (Chosen(words, "kernel", release),)
    chosen: dict[FilesystemLevels, str] = {}
    for levels in plan.filesystems:
        if levels in refused_by_own and levels not in hopeless:
            chosen[levels] = next(release for release, found in refused.items() if levels not in found)
    return chosen, (
        Chosen(
            f"no kernel at hand has every file system of the plan: {default_guest.kernel_release}, and for what it lacks"
        ),
        *(
            Chosen(
                _listed(_variants(levels for levels, one in chosen.items() if one == release)),
                "kernel",
                release,
            )
            for release in dict.fromkeys(chosen.values())
        ),
    )


def _refused(plan: Plan, machine: Machine) -> frozenset[FilesystemLevels]:
    return frozenset(levels for levels in plan.filesystems if kernel_refusals(levels, machine))


def _machines_of(releases: Iterable[str | None], kernels: GuestKernels) -> dict[str | None, Machine]:
    found = {release: kernels.machine(release) for release in dict.fromkeys(releases)}
    return {release: machine for release, machine in found.items() if machine is not None}


def _not_fetched(
    releases: tuple[str | None, ...], guests: Mapping[str | None, Machine]
) -> tuple[Chosen, ...]:
    names = [release or "of guests" for release in releases if release not in guests]
    if not names:
        return tuple(
            Chosen(f"the plan asks for {release}", "kernel", guests[release].kernel_release)
            for release in releases
            if release is not None
        )
    which = _listed((names[0], *(f"kernel {name}" for name in names[1:])))
    built = any(is_commit_level(name) for name in names)
    done, does = ("built", "builds") if built else ("fetched", "fetches")
    words = f"not {done} yet, so what it lacks is not known; `bedplate doctor PLAN --install` {does} it"
    return (Chosen(words, "kernel", which),)


def _variants(levels: Iterable[FilesystemLevels]) -> dict[str, None]:
    return dict.fromkeys(
        f"{one.type} with {format_size(one.block_size_bytes)} blocks" if one.block_size_bytes else one.type
        for one in levels
    )


def _listed(names: Iterable[str]) -> str:
    return first_of(list(names), _MOST_NAMES)


def runs_here(kernel_levels: KernelLevels) -> bool:
    """Whether this machine runs the kernel; one of the user's own is known by the release in its folder, or by that of its build."""
    running = os.uname().release
    if not kernel_levels.is_path and not kernel_levels.is_built:
        return kernel_levels.takes(running)
    from bedplate.executors.qemu.kernels import find_kernel  # noqa: PLC0415

    kernel = find_kernel(kernel_levels.release, cache_directory=cache_directory())
    return kernel is not None and kernel.release == running


if TYPE_CHECKING:
    Tell = Callable[[int, int], None]

_TOML = ".toml"

# Of UTF-8.
_CHARACTER_BYTES_MOST = 4


@dataclass(frozen=True)
class ReadPlan:
    """A plan as it was read; `directory` is where its own files (scripts, configurations) stand."""

    text: str
    directory: Path
    plan: Plan


@dataclass(frozen=True)
class BegunStudy:
    """What a study was begun with, and stays with: its executor, its cells, its order, its table of defaults.

    `nodes` are the facts of its fleet, empty without one. `search` is None of a study of all cells. `sources` are its notes of
    trees and patches, by their paths beside its plan: it stays with these commits, wherever their branches are by now.
    """

    executor: str
    cells: tuple[Cell, ...]
    schedule: Schedule
    nodes: Mapping[str, NodeFacts]
    defaults: int = 1
    search: SearchRecord | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Circumstances:
    """What a plan is worked out from, beside itself: who runs it, on what, and what that is known to refuse.

    `machine` is None where visits run on nodes that nobody has looked at: of those nothing is known.
    """

    choice: ExecutorChoice
    machine: Machine | None
    refusals: Mapping[FilesystemLevels, tuple[str, ...]]
    begun: BegunStudy | None


@dataclass(frozen=True)
class PlannedStudy(ReadPlan):
    """A plan, who would run it, what it expands to here, in which order, and what that costs."""

    circumstances: Circumstances
    machine: Machine
    expansion: Expansion
    schedule: Schedule
    estimate: StudyEstimate

    @property
    def choice(self) -> ExecutorChoice:
        """Who would run it, and why."""
        return self.circumstances.choice

    @cached_property
    def executor(self) -> Executor:
        """Who would run it."""
        return executor_for(self.choice.executor)

    def as_recorded(self, schedule: StudySchedule, search: SearchRecord | None = None) -> PlannedStudy:
        """With the cells and the order that a study keeps, in place of what comes out now."""
        expansion, ordered = recorded_expansion(schedule, search)
        return replace(self, expansion=expansion, schedule=ordered)

    def with_searched(self) -> PlannedStudy:
        """With the visits of the search that the study was, as they are: first, in their order; the rest of the plan's behind them."""
        begun = self.circumstances.begun
        if begun is None or begun.search is None:
            return self
        there = {scheduled_place(visit) for visit in begun.schedule.visits}
        rest = [visit for visit in self.schedule.visits if scheduled_place(visit) not in there]
        visits = (*begun.schedule.visits, *rest)
        numbered = tuple(replace(visit, index=index) for index, visit in enumerate(visits))
        return replace(self, schedule=replace(self.schedule, visits=numbered))

    @property
    def cells(self) -> list[Cell]:
        """Every cell that would run, the canary's as well."""
        return [planned.cell for planned in self.expansion.planned]

    @property
    def datasets(self) -> list[Dataset]:
        """Every dataset that would be loaded, each once."""
        return list(dict.fromkeys(load.dataset for cell in self.expansion.cells for load in cell.loads))

    @property
    def workloads(self) -> list[str]:
        """The type of every workload that would run, the canary's as well."""
        return list(
            dict.fromkeys(load.dataset.workload for cell in self.expansion.planned for load in cell.loads)
        )


def read_begun_study(study: Path) -> BegunStudy:
    """What a study was begun with, read before anybody holds it; StudyError if it is of another format."""
    layout = StudyLayout(study)
    require_known_format(layout)
    refuse_imported(layout)
    record, search = read_order(layout)
    visited = dict.fromkeys(visit.cell_id for visit in record.visits if not visit.canary)
    # A search keeps the cells that it did not come to as well.
    if search is not None:
        visited |= dict.fromkeys((*(e.cell for e in search.candidates), *(e.cell for e in search.left_out)))
    facts = codec.read(StudyFacts, layout.facts)
    return BegunStudy(
        facts.executor,
        tuple(record.cells[cell_id] for cell_id in visited),
        Schedule(record.seed, record.repetitions, record.visits),
        read_nodes(layout),
        facts.defaults,
        search,
        _kept_sources(layout),
    )


def _kept_sources(layout: StudyLayout) -> Mapping[str, str]:
    folder = layout.plan_files / SOURCES
    return {f"{SOURCES}/{name}": codec.read_text(folder / name) for name in limits.names_in(folder)}


def read_plan(path: Path, *, executor: str | None = None, prior: BegunStudy | None = None) -> ReadPlan:
    """Read and validate; PlanError has every reason. `executor` takes the place of the plan's.

    `prior` is the study that the plan goes on with, or adds to.
    """
    from bedplate.plan.toml import MOST_CHARACTERS  # noqa: PLC0415

    path = plan_path(path)
    if is_study(path):
        raise PlanError(f"{path} is a study, and a plan is wanted; `bedplate show {path}` shows it")
    try:
        # No more than a plan may have: what the path names may have no end.
        with path.open("rb") as file:
            data = file.read(_CHARACTER_BYTES_MOST * MOST_CHARACTERS + 1)
        text = StringIO(decode_text(data), newline=None).getvalue()
    except (OSError, ValueError) as error:
        raise PlanError(
            f"{quoted(str(path))} cannot be read: {_error_words(error)}", _what_may_be_meant(path)
        ) from error
    return _read_plan(
        text,
        source=str(path),
        directory=path.resolve().parent,
        executor=executor,
        defaults=_defaults(prior),
        kept_sources=None if prior is None else prior.sources,
    )


def plan_path(path: Path) -> Path:
    """The path itself where something is there, else the ready plan of that name: `quick`, `quick.toml`."""
    try:
        if path.exists() or path.name != str(path):
            return path
    except OSError:
        return path
    ready = own_plans() / f"{path.name.removesuffix(_TOML)}{_TOML}"
    return ready if ready.is_file() else path


def _error_words(error: OSError | ValueError) -> str:
    """Without the path, which stands before it."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _what_may_be_meant(path: Path) -> str:
    """Files beside it and ready plans whose names are near, the likeliest first, else all ready plans."""
    ready = [plan.stem for plan in sorted(own_plans().glob(f"*{_TOML}"))]
    beside = {each.stem: str(each) for each in near_paths(path) if each.suffix == _TOML}
    known = {stem: stem for stem in ready} | beside
    near = [known[stem] for stem in near_names(path.name.removesuffix(_TOML), known)]
    return f"did you mean {' or '.join(near)}?" if near else f"ready plans: {', '.join(ready)}"


def kept_plan(study: Path) -> ReadPlan:
    """The plan that a study keeps; StudyError if it is damaged."""
    layout = StudyLayout(study)
    require_known_format(layout)
    refuse_imported(layout)
    directory = layout.plan_files if limits.is_there(layout.plan_files) else layout.directory
    text = codec.read_text(layout.plan)
    defaults = codec.read(StudyFacts, layout.facts).defaults
    try:
        return _read_plan(text, source=str(layout.plan), directory=directory, defaults=defaults)
    except PlanError as error:
        raise StudyError(
            *(f"the study's own plan is damaged: {reason}" for reason in error.reasons)
        ) from error


def repeated(
    plan_file: ReadPlan, repetitions: int, *, executor: str | None, prior: BegunStudy | None = None
) -> ReadPlan:
    """The plan with that number of repetitions; PlanError where its text cannot be changed with certainty."""
    text = with_repetitions(plan_file.text, repetitions)
    return _read_plan(
        text,
        source="the extended plan",
        directory=plan_file.directory,
        executor=executor,
        defaults=_defaults(prior),
        kept_sources=None if prior is None else prior.sources,
    )


def work_out(
    plan_file: ReadPlan,
    *,
    prior: BegunStudy | None = None,
    tell_trials: Tell | None = None,
    nodes: Mapping[str, NodeFacts] | None = None,
) -> PlannedStudy:
    """Expand, order and estimate; PlanError has every reason. What is a `PlannedStudy` that still holds stays it.

    `prior` is the study that the plan goes on with, or adds to. `nodes` are the facts of a fleet's, where they
    have been found out anew. Touches nothing, unless `tell_trials` is given: then file systems of which it is not
    known whether this kernel takes them are tried on a small image, which needs root.
    """
    from bedplate.host.facts import read_machine  # noqa: PLC0415 -- a plan that is wrong loads less
    from bedplate.plan.estimate import estimate  # noqa: PLC0415
    from bedplate.plan.expand import expand  # noqa: PLC0415
    from bedplate.plan.order import order  # noqa: PLC0415

    plan, here = plan_file.plan, read_machine()
    choice = _choice(plan, here, prior)
    executor = executor_for(choice.executor)
    machine: Machine | None = here
    if executor.fleet is not None:
        machine = executor.fleet.machine(plan, nodes or (prior.nodes if prior else {}))
    refusals = _refusals(plan, here, tell_trials) if executor.runs_here else {}
    circumstances = Circumstances(choice, machine, refusals, prior)
    if isinstance(plan_file, PlannedStudy) and plan_file.circumstances == circumstances:
        return plan_file
    expansion = expand(plan, machine, refusals=refusals, platform=choice.platform)
    standing = None if prior is None else prior.schedule
    schedule = order(plan, expansion, executor=choice.executor, schedule=standing)
    costs = estimate(plan, expansion, schedule, executor=choice.executor)
    return PlannedStudy(
        plan_file.text, plan_file.directory, plan, circumstances, machine or here, expansion, schedule, costs
    )


def planned_study(path: Path, *, executor: str | None = None) -> PlannedStudy:
    """What a plan would come to as a new study; touches nothing."""
    return work_out(read_plan(path, executor=executor))


def planned_text(text: str, *, source: str, directory: Path | None = None) -> PlannedStudy:
    """The same of a text that is not written yet; `source` stands for its path in errors, its own files are in `directory`."""
    return work_out(
        _read_plan(text, source=source, directory=directory or Path.cwd(), defaults=DEFAULTS_VERSION)
    )


def own_plans() -> Path:
    """The ready plans beside the program."""
    return shipped("plans")


def _defaults(prior: BegunStudy | None) -> int:
    return DEFAULTS_VERSION if prior is None else prior.defaults


def _read_plan(
    text: str,
    *,
    source: str,
    directory: Path,
    defaults: int,
    executor: str | None = None,
    kept_sources: Mapping[str, str] | None = None,
) -> ReadPlan:
    from bedplate.host.git import GitRevisions  # noqa: PLC0415
    from bedplate.plan.load import load_plan  # noqa: PLC0415 -- pydantic

    plan = load_plan(
        text,
        source=source,
        directory=directory,
        defaults=defaults,
        revisions=GitRevisions(),
        kept_sources=kept_sources,
    )
    if executor is not None and executor != plan.executor:
        plan, text = replace(plan, executor=executor), with_executor(text, executor)
    return ReadPlan(text, directory, plan)


def _choice(plan: Plan, machine: Machine, prior: BegunStudy | None) -> ExecutorChoice:
    from bedplate.executors.qemu.executor import guest_memory_bytes  # noqa: PLC0415

    kernels = CachedKernels(cache_directory(), host=machine, memory_bytes=guest_memory_bytes(plan))
    if prior is None:
        return choose(plan, machine, kernels=kernels)
    return recorded_choice(plan, machine, executor=prior.executor, cells=prior.cells, kernels=kernels)


def _refusals(
    plan: Plan, machine: Machine, tell_trials: Tell | None
) -> Mapping[FilesystemLevels, tuple[str, ...]]:
    from bedplate.campaign.planning import find_refusals, known_refusals  # noqa: PLC0415

    if tell_trials is None:
        return known_refusals(plan.filesystems, machine)
    return find_refusals(plan.filesystems, machine, tell=tell_trials)
