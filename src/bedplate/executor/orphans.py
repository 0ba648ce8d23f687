"""At each start: give back what a killed start left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse
from bedplate.executor.state import state_directory
from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans

if TYPE_CHECKING:
    from bedplate.executor.display import Display


def free_what_was_left(display: Display) -> None:
    """Release orphans and say so; DeviceInUse if something cannot be given back."""
    report = release_orphans(state_directory(), Commands())
    for done in report.released:
        display.note(f"left behind by a killed start: {done}")
    if report.problems:
        raise DeviceInUse(*report.problems, "see `bedplate release`")
