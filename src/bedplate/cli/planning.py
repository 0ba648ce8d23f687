"""Reads a plan from a file and works out what it comes to on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import PlanError

if TYPE_CHECKING:
    from bedplate.model.machine import Machine
    from bedplate.model.plan import Expansion, Plan, Schedule
    from bedplate.plan.estimate import Estimate


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


def prospect(path: Path) -> Prospect:
    """Read, validate, expand, order and estimate; touches nothing. PlanError has every reason."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        shown = [f"plans/{plan.name}" for plan in sorted(own_plans().glob("*.toml"))]
        raise PlanError(f"{path} cannot be read: {error}", f"ready plans: {', '.join(shown)}") from error
    return prospect_of(text, source=str(path), directory=path.resolve().parent)


def prospect_of(text: str, *, source: str, directory: Path) -> Prospect:
    """The same for a plan's text; `directory` is where its own files (scripts, configurations) stand."""
    from bedplate.host.facts import read_machine  # noqa: PLC0415
    from bedplate.plan.estimate import estimate  # noqa: PLC0415
    from bedplate.plan.expand import expand  # noqa: PLC0415
    from bedplate.plan.load import load_plan  # noqa: PLC0415
    from bedplate.plan.order import order  # noqa: PLC0415

    plan = load_plan(text, source=source, directory=directory)
    machine = read_machine()
    expansion = expand(plan, machine)
    schedule = order(plan, expansion)
    return Prospect(text, directory, plan, machine, expansion, schedule, estimate(plan, expansion, schedule))


def own_plans() -> Path:
    """The ready plans beside the program."""
    return Path(__file__).resolve().parents[3] / "plans"
