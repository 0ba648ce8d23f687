"""What a plan is, and what it comes to on this machine.

A plan is read once, and worked out once: again only when more is known of the machine (a kernel was fetched, file
systems were tried, nodes were looked at) than when it was worked out before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.campaign.choice import CachedKernels, choose, recorded_choice
from bedplate.campaign.plan_text import with_executor, with_repetitions
from bedplate.errors import PlanError, StudyError
from bedplate.executors.registry import executor_for
from bedplate.host.cache import cache_directory
from bedplate.installation import shipped
from bedplate.model import codec, no_links
from bedplate.model.plan import DEFAULTS_VERSION, Schedule
from bedplate.model.source_commit import SOURCES
from bedplate.near_names import near_names, near_paths, quoted
from bedplate.study.layout import StudyLayout
from bedplate.study.nodes import read_nodes
from bedplate.study.records import StudyFacts
from bedplate.study.schedule import recorded_expansion
from bedplate.study.search import read_order
from bedplate.study.stored import scheduled_place
from bedplate.study.version import refuse_imported, require_known_format
from bedplate.text_encoding import decode_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.campaign.choice import ExecutorChoice
    from bedplate.executors.protocol import Executor
    from bedplate.model.cell import Cell, Dataset, FilesystemLevels
    from bedplate.model.fleet import NodeFacts
    from bedplate.model.machine import Machine
    from bedplate.model.plan import Expansion, Plan
    from bedplate.model.search import SearchRecord
    from bedplate.plan.estimate import StudyEstimate
    from bedplate.study.records import StudySchedule

    # Done and total of the trials.
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


def begun_study(study: Path) -> BegunStudy:
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
    return {f"{SOURCES}/{name}": codec.read_text(folder / name) for name in no_links.names_in(folder)}


def read_plan(path: Path, *, executor: str | None = None, begun: BegunStudy | None = None) -> ReadPlan:
    """Read and validate; PlanError has every reason. `executor` takes the place of the plan's.

    `begun` is the study that the plan goes on with, or adds to.
    """
    from bedplate.plan.toml.parsed import MOST_CHARACTERS  # noqa: PLC0415 -- a plan that is not there loads nothing

    path = plan_path(path)
    try:
        # No more than a plan may have: what the path names may have no end.
        with path.open("rb") as file:
            data = file.read(_CHARACTER_BYTES_MOST * MOST_CHARACTERS + 1)
        text = StringIO(decode_text(data), newline=None).getvalue()
    except (OSError, ValueError) as error:
        raise PlanError(
            f"{quoted(str(path))} cannot be read: {_why(error)}", _what_may_be_meant(path)
        ) from error
    return _read(
        text,
        source=str(path),
        directory=path.resolve().parent,
        executor=executor,
        defaults=_defaults(begun),
        kept=None if begun is None else begun.sources,
    )


def plan_path(asked: Path) -> Path:
    """The path itself where something is there, else the ready plan of that name: `quick`, `quick.toml`."""
    try:
        if asked.exists() or asked.name != str(asked):
            return asked
    except OSError:
        return asked
    ready = own_plans() / f"{asked.name.removesuffix(_TOML)}{_TOML}"
    return ready if ready.is_file() else asked


def _why(error: OSError | ValueError) -> str:
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
    directory = layout.plan_files if no_links.is_there(layout.plan_files) else layout.directory
    text = codec.read_text(layout.plan)
    defaults = codec.read(StudyFacts, layout.facts).defaults
    try:
        return _read(text, source=str(layout.plan), directory=directory, defaults=defaults)
    except PlanError as error:
        raise StudyError(
            *(f"the study's own plan is damaged: {reason}" for reason in error.reasons)
        ) from error


def repeated(
    before: ReadPlan, repetitions: int, *, executor: str | None, begun: BegunStudy | None = None
) -> ReadPlan:
    """The plan with that number of repetitions; PlanError where its text cannot be changed with certainty."""
    text = with_repetitions(before.text, repetitions)
    return _read(
        text,
        source="the extended plan",
        directory=before.directory,
        executor=executor,
        defaults=_defaults(begun),
        kept=None if begun is None else begun.sources,
    )


def work_out(
    read: ReadPlan,
    *,
    begun: BegunStudy | None = None,
    tell_trials: Tell | None = None,
    nodes: Mapping[str, NodeFacts] | None = None,
) -> PlannedStudy:
    """Expand, order and estimate; PlanError has every reason. What is a `PlannedStudy` that still holds stays it.

    `begun` is the study that the plan goes on with, or adds to. `nodes` are the facts of a fleet's, where they
    have been found out anew. Touches nothing, unless `tell_trials` is given: then file systems of which it is not
    known whether this kernel takes them are tried on a small image, which needs root.
    """
    from bedplate.host.facts import read_machine  # noqa: PLC0415 -- a plan that is wrong loads less
    from bedplate.plan.estimate import estimate  # noqa: PLC0415
    from bedplate.plan.expand import expand  # noqa: PLC0415
    from bedplate.plan.order import order  # noqa: PLC0415

    plan, here = read.plan, read_machine()
    choice = _choice(plan, here, begun)
    executor = executor_for(choice.executor)
    machine: Machine | None = here
    if executor.fleet is not None:
        machine = executor.fleet.machine(plan, nodes or (begun.nodes if begun else {}))
    refusals = _refusals(plan, here, tell_trials) if executor.runs_here else {}
    circumstances = Circumstances(choice, machine, refusals, begun)
    if isinstance(read, PlannedStudy) and read.circumstances == circumstances:
        return read
    expansion = expand(plan, machine, refusals=refusals, platform=choice.platform)
    standing = None if begun is None else begun.schedule
    schedule = order(plan, expansion, executor=choice.executor, standing=standing)
    costs = estimate(plan, expansion, schedule, executor=choice.executor)
    return PlannedStudy(
        read.text, read.directory, plan, circumstances, machine or here, expansion, schedule, costs
    )


def planned_study(path: Path, *, executor: str | None = None) -> PlannedStudy:
    """What a plan would come to as a new study; touches nothing."""
    return work_out(read_plan(path, executor=executor))


def planned_text(text: str, *, source: str, directory: Path | None = None) -> PlannedStudy:
    """The same of a text that is not written yet; `source` stands for its path in errors, its own files are in `directory`."""
    return work_out(_read(text, source=source, directory=directory or Path.cwd(), defaults=DEFAULTS_VERSION))


def own_plans() -> Path:
    """The ready plans beside the program."""
    return shipped("plans")


def _defaults(begun: BegunStudy | None) -> int:
    return DEFAULTS_VERSION if begun is None else begun.defaults


def _read(
    text: str,
    *,
    source: str,
    directory: Path,
    defaults: int,
    executor: str | None = None,
    kept: Mapping[str, str] | None = None,
) -> ReadPlan:
    from bedplate.host.git.revisions import GitRevisions  # noqa: PLC0415 -- likewise
    from bedplate.plan.load import load_plan  # noqa: PLC0415 -- pydantic

    plan = load_plan(
        text, source=source, directory=directory, defaults=defaults, revisions=GitRevisions(), kept=kept
    )
    if executor is not None and executor != plan.executor:
        plan, text = replace(plan, executor=executor), with_executor(text, executor)
    return ReadPlan(text, directory, plan)


def _choice(plan: Plan, machine: Machine, begun: BegunStudy | None) -> ExecutorChoice:
    from bedplate.executors.qemu.executor import guest_memory_bytes  # noqa: PLC0415

    kernels = CachedKernels(cache_directory(), host=machine, memory_bytes=guest_memory_bytes(plan))
    if begun is None:
        return choose(plan, machine, kernels=kernels)
    return recorded_choice(plan, machine, executor=begun.executor, cells=begun.cells, kernels=kernels)


def _refusals(
    plan: Plan, machine: Machine, tell_trials: Tell | None
) -> Mapping[FilesystemLevels, tuple[str, ...]]:
    from bedplate.campaign.trial import find_refusals, known_refusals  # noqa: PLC0415

    if tell_trials is None:
        return known_refusals(plan.filesystems, machine)
    return find_refusals(plan.filesystems, machine, tell=tell_trials)
