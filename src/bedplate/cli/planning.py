"""Reads a plan from a file and works out what it comes to on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.machine import Machine
    from bedplate.model.plan import Expansion, Plan, Schedule
    from bedplate.plan.estimate import Estimate

    # Done and total of the trials.
    Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Prospect:
    """A plan, what it expands to here, in which order, and what that costs."""

    text: str
    directory: Path
    plan: Plan
    machine: Machine
    expansion: Expansion
    schedule: Schedule
    estimate: Estimate


def prospect(path: Path, *, tell_trials: Tell | None = None) -> Prospect:
    """Read, validate, expand, order and estimate; PlanError has every reason.

    Touches nothing, unless `tell_trials` is given: then file systems of which it is not known whether
    this kernel takes them are tried on a small image, which needs root.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        shown = [f"plans/{plan.name}" for plan in sorted(own_plans().glob("*.toml"))]
        raise PlanError(f"{path} cannot be read: {error}", f"ready plans: {', '.join(shown)}") from error
    return prospect_of(text, source=str(path), directory=path.resolve().parent, tell_trials=tell_trials)


def prospect_of(text: str, *, source: str, directory: Path, tell_trials: Tell | None = None) -> Prospect:
    """The same for a plan's text; `directory` is where its own files (scripts, configurations) stand."""
    from bedplate.host.facts import read_machine  # noqa: PLC0415
    from bedplate.plan.estimate import estimate  # noqa: PLC0415
    from bedplate.plan.expand import expand  # noqa: PLC0415
    from bedplate.plan.load import load_plan  # noqa: PLC0415
    from bedplate.plan.order import order  # noqa: PLC0415

    plan = load_plan(text, source=source, directory=directory)
    machine = read_machine()
    expansion = expand(plan, machine, refusals=_refusals(plan, machine, tell_trials))
    schedule = order(plan, expansion)
    return Prospect(text, directory, plan, machine, expansion, schedule, estimate(plan, expansion, schedule))


def _refusals(
    plan: Plan, machine: Machine, tell_trials: Tell | None
) -> Mapping[FilesystemLevels, tuple[str, ...]]:
    from bedplate.executor.trial import find_refusals, known_refusals  # noqa: PLC0415

    if plan.executor != "local":
        return {}  # another kernel than this one will be asked
    if tell_trials is None:
        return known_refusals(plan.filesystems, machine)
    return find_refusals(plan.filesystems, machine, tell=tell_trials)


def own_plans() -> Path:
    """The ready plans beside the program."""
    return Path(__file__).resolve().parents[3] / "plans"
