"""What an inquest into one cut ends with."""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.model.power_cut import CutPoint  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.power_cut_blame import BlameEvidence  # noqa: TC001 -- as above


@dataclass(frozen=True)
class Found:
    """The evidence, and the cut that loses the smallest set alone."""

    evidence: BlameEvidence
    smallest: CutPoint
