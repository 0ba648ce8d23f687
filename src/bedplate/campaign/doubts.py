"""Doubts about a plan that stop nothing: what it asks that makes its runs less worth, and settings that no server built here knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate import registry

if TYPE_CHECKING:
    from bedplate.campaign.display import Display
    from bedplate.campaign.planning import PlannedStudy


def setting_doubts(found: PlannedStudy) -> tuple[str, ...]:
    """What the servers that are built do not know of the plan's settings; nothing of one that has yet to be built."""
    checks = registry.engine_parts("settings_check").values()
    return tuple(dict.fromkeys(words for check in checks for words in check(found.cells)))


def plan_doubts(found: PlannedStudy) -> tuple[str, ...]:
    """All of them, a sentence each."""
    return (*found.expansion.warnings, *setting_doubts(found))


def tell_doubts(found: PlannedStudy, display: Display) -> None:
    """A line for each, as `bedplate plan` has them."""
    for words in plan_doubts(found):
        display.note(f"warning: {words}")
