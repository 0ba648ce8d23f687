"""Doubts about a plan that stop nothing: what it asks that makes its runs less worth, and settings that no server built here knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.model.plan import pruned_lines

if TYPE_CHECKING:
    from collections.abc import Collection

    from bedplate.campaign.display import Display
    from bedplate.campaign.planning import PlannedStudy
    from bedplate.model.cell import Cell


def setting_doubts(found: PlannedStudy) -> tuple[str, ...]:
    """What the servers that are built do not know of the plan's settings; nothing of one that has yet to be built."""
    checks = registry.engine_parts("settings_check").values()
    return tuple(dict.fromkeys(words for check in checks for words in check(found.cells)))


def plan_doubts(found: PlannedStudy) -> tuple[str, ...]:
    """All of them, a sentence each."""
    return (*found.expansion.warnings, *setting_doubts(found))


def tell_pruned(found: PlannedStudy, display: Display, *, besides: Collection[Cell] = ()) -> None:
    """The cells that cannot be, `besides` those that were told before, with the reasons: a trial may know more than the plan did."""
    for line in pruned_lines(each for each in found.expansion.pruned if each.cell not in besides):
        display.note(line)


def tell_doubts(found: PlannedStudy, display: Display) -> None:
    """The pruned cells, and a line for each doubt, as `bedplate plan` has them."""
    tell_pruned(found, display)
    for words in plan_doubts(found):
        display.note(f"warning: {words}")
