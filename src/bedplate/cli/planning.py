"""Reads a plan from a file and works out what it comes to on this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.executor.choice import Choice
    from bedplate.model.cell import Cell, Dataset, FilesystemLevels
    from bedplate.model.fleet import NodeFacts
    from bedplate.model.machine import Machine
    from bedplate.model.plan import Expansion, Plan, Schedule
    from bedplate.plan.estimate import Estimate

    # Done and total of the trials.
    Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Prospect:
    """A plan, who would run it, what it expands to here, in which order, and what that costs."""

    text: str
    directory: Path
    plan: Plan
    machine: Machine
    choice: Choice
    expansion: Expansion
    schedule: Schedule
    estimate: Estimate


@dataclass(frozen=True)
class Begun:
    """What a study was begun with, and stays with: its executor, its cells, its order, its table of defaults."""

    executor: str
    cells: tuple[Cell, ...]
    schedule: Schedule
    defaults: int = 1


def prospect(
    path: Path,
    *,
    executor: str | None = None,
    begun: Begun | None = None,
    tell_trials: Tell | None = None,
    nodes: Mapping[str, NodeFacts] | None = None,
) -> Prospect:
    """Read, validate, expand, order and estimate; PlanError has every reason.

    `executor` takes the place of the plan's. `begun` is the study that the plan goes on with, or adds
    to. `nodes` are the facts of a fleet's, where they have been found out. Touches nothing, unless `tell_trials` is given: then file systems of which it is not known
    whether this kernel takes them are tried on a small image, which needs root.
    """
    from bedplate.plan.toml_text import MOST_CHARACTERS  # noqa: PLC0415

    try:
        # No more than a plan may have: what the path names may have no end.
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        shown = [f"plans/{plan.name}" for plan in sorted(own_plans().glob("*.toml"))]
        raise PlanError(f"{path} cannot be read: {error}", f"ready plans: {', '.join(shown)}") from error
    return prospect_of(
        text,
        source=str(path),
        directory=path.resolve().parent,
        executor=executor,
        begun=begun,
        tell_trials=tell_trials,
        nodes=nodes,
    )


def prospect_of(
    text: str,
    *,
    source: str,
    directory: Path,
    executor: str | None = None,
    begun: Begun | None = None,
    tell_trials: Tell | None = None,
    nodes: Mapping[str, NodeFacts] | None = None,
) -> Prospect:
    """The same for a plan's text; `directory` is where its own files (scripts, configurations) stand."""
    from bedplate.cli.plan_text import with_executor  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415
    from bedplate.model.fleet import common_machine  # noqa: PLC0415
    from bedplate.model.plan import DEFAULTS_VERSION  # noqa: PLC0415
    from bedplate.plan.estimate import estimate  # noqa: PLC0415
    from bedplate.plan.expand import expand  # noqa: PLC0415
    from bedplate.plan.load import load_plan  # noqa: PLC0415
    from bedplate.plan.order import order  # noqa: PLC0415

    defaults = DEFAULTS_VERSION if begun is None else begun.defaults
    plan = load_plan(text, source=source, directory=directory, defaults=defaults)
    if executor is not None and executor != plan.executor:
        plan, text = replace(plan, executor=executor), with_executor(text, executor)
    machine = read_machine()
    choice = _choice(plan, machine, begun)
    if choice.platform.has_nodes:
        if plan.fleet is None:
            raise PlanError('executor = "slurm" needs the table [slurm] with nodes = ["n1", "n2"]')
        machine = common_machine(nodes) if nodes else machine
    # Of nodes that nobody has looked at nothing is known, and this machine is none of them.
    known = None if choice.platform.has_nodes and not nodes else machine
    expansion = expand(
        plan, known, refusals=_refusals(plan, machine, choice, tell_trials), platform=choice.platform
    )
    schedule = order(
        plan, expansion, executor=choice.executor, standing=None if begun is None else begun.schedule
    )
    costs = estimate(plan, expansion, schedule, executor=choice.executor)
    return Prospect(text, directory, plan, machine, choice, expansion, schedule, costs)


def _choice(plan: Plan, machine: Machine, begun: Begun | None) -> Choice:
    from bedplate.executor.choice import (  # noqa: PLC0415
        CachedKernels,
        choose,
        guest_memory_bytes,
        recorded_choice,
    )
    from bedplate.host.cache import cache_directory  # noqa: PLC0415

    kernels = CachedKernels(cache_directory(), host=machine, memory_bytes=guest_memory_bytes(plan))
    if begun is None:
        return choose(plan, machine, kernels=kernels)
    return recorded_choice(plan, machine, executor=begun.executor, cells=begun.cells, kernels=kernels)


def _refusals(
    plan: Plan, machine: Machine, choice: Choice, tell_trials: Tell | None
) -> Mapping[FilesystemLevels, tuple[str, ...]]:
    from bedplate.executor.trial import find_refusals, known_refusals  # noqa: PLC0415
    from bedplate.plan.platforms import LOCAL  # noqa: PLC0415

    if choice.executor != LOCAL:
        return {}  # another kernel than this one will be asked
    if tell_trials is None:
        return known_refusals(plan.filesystems, machine)
    return find_refusals(plan.filesystems, machine, tell=tell_trials)


def cells_of(found: Prospect) -> list[Cell]:
    """Every cell that would run, the canary's as well."""
    canary = (found.expansion.canary,) if found.expansion.canary else ()
    return [planned.cell for planned in (*found.expansion.cells, *canary)]


def datasets_of(found: Prospect) -> list[Dataset]:
    """Every dataset that would be loaded, each once."""
    return list(dict.fromkeys(load.dataset for planned in found.expansion.cells for load in planned.loads))


def workloads_of(found: Prospect) -> list[str]:
    """The type of every workload that would run, the canary's as well."""
    canary = (found.expansion.canary,) if found.expansion.canary else ()
    planned = (*found.expansion.cells, *canary)
    return list(dict.fromkeys(load.dataset.workload for cell in planned for load in cell.loads))


def own_plans() -> Path:
    """The ready plans beside the program."""
    return Path(__file__).resolve().parents[3] / "plans"
