"""Whether a study goes on where it was begun: figures of two machines are never one study."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.model.machine import Machine
    from bedplate.study.records import StudyFacts


def other_hardware(begun: StudyFacts, machine: Machine) -> str | None:
    """Why this is not the machine of the study; None where it is."""
    if begun.machine_identity == machine.identity:
        return None
    return (
        "was begun on another machine (machine.json says which); figures of two machines are never one study: "
        "name another --study"
    )
