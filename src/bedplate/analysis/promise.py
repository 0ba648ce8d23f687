"""What survives a power cut in a cell: what its visits declare together, and what its cuts measured.

Only completed visits have a class. Where fsck found errors after a clean unmount, without any power cut, nothing may be
built on the file system: the cell's class is unknown then, whatever was declared or measured. Of a visit that was done
again the last attempt counts, as for its figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.power_cut_view import durability_by_cuts
from bedplate.model.durability import UNKNOWN, promised, worse
from bedplate.model.reason import because
from bedplate.model.visit import Durability, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.analysis.power_cut_view import CutRun
    from bedplate.model.visit import VisitRecord
    from bedplate.study.stored import StoredVisit

_NONE_COMPLETED = because(
    "no-visit-completed", "no visit of the cell completed, and only completed visits have a class"
)


@dataclass(frozen=True)
class Promise:
    """`declared` by flushes and settings, and the class as it stands, measured where power was cut; None before a visit."""

    declared: Durability | None = None
    durability: Durability | None = None


def latest_records(visits: Iterable[StoredVisit]) -> dict[str, list[VisitRecord]]:
    """The records of the last attempts by cell, without canaries."""
    latest: dict[tuple[str, str, int], VisitRecord] = {}
    for record in sorted((visit.record for visit in visits), key=lambda record: record.key.attempt):
        key = record.key
        if not key.canary:
            latest[key.cell, key.dataset, key.repetition] = record
    found: dict[str, list[VisitRecord]] = {}
    for record in latest.values():
        found.setdefault(record.key.cell, []).append(record)
    return found


def promise(records: Sequence[VisitRecord], cuts: Sequence[CutRun]) -> Promise:
    """What the latest visits of a cell promise together."""
    told = [each for record in records if (each := promised(record)) is not None]
    if not told:
        nothing = Durability(UNKNOWN, UNKNOWN, "declared", (_NONE_COMPLETED,))
        any_failed = any(record.outcome is Outcome.FAILED for record in records)
        return Promise(None, durability_by_cuts(nothing if any_failed else None, cuts))
    declared = told[0]
    for each in told[1:]:
        declared = worse(declared, each)
    has_errors = any(record.found_errors for record in records)
    return Promise(declared, declared if has_errors else durability_by_cuts(declared, cuts))
