"""The validity of a run as it is read: what its own rules say, joined with what became of its visit.

A run is judged when its figures are made, and its file is not written again. That its visit failed afterwards (fsck found
errors, the server did not stop) stands in the visit's record alone. Here the two meet, for all readers alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.model.reason import distinct
from bedplate.model.visit import Outcome, Validity

if TYPE_CHECKING:
    from bedplate.model.figure import RunFigures
    from bedplate.model.visit import VisitRecord


def as_read(run: RunFigures, visit: VisitRecord) -> RunFigures:
    """The run with its visit's doubts: a completed run is suspect then, whatever its own rules say."""
    if not visit.doubts or run.outcome is not Outcome.COMPLETED:
        return run
    reasons = distinct((*visit.doubts, *run.validity_reasons))
    return replace(run, validity=Validity.SUSPECT, validity_reasons=reasons)


def is_doubted(outcome: str | None, validity: str | None, visit: VisitRecord) -> bool:
    """The same of a run of which only two values were read: whether it is completed and no part of a verdict."""
    return outcome == Outcome.COMPLETED and (bool(visit.doubts) or validity != Validity.VALID)
