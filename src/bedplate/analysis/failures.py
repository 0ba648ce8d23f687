"""What went wrong in a study, as rows of a table: nothing is overwritten, nothing is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.model.reason import sentences

if TYPE_CHECKING:
    from bedplate.analysis.overview import Measurement, Overview


@dataclass(frozen=True)
class FailureRow:
    """A run that failed, is in doubt or is missing; `logs` is a folder within the study, which is called `study`."""

    kind: str
    cell: str
    repetition: str
    reasons: tuple[str, ...]
    logs: str
    study: str


def failures(found: Overview, study: str) -> list[FailureRow]:
    """One entry per visit that failed and per run that failed, is suspect or is missing; `study` is what it is called."""
    entries: dict[FailureRow, None] = {}
    for m in found.measurements:
        if m.trouble is None:
            continue
        cell = found.cells[m.cell].label.full if m.cell in found.cells else "canary"
        entries[
            FailureRow(
                kind=m.trouble.value,
                cell=f"{cell} · {m.run}" if m.figures else cell,
                repetition=f"{'canary ' if m.canary else ''}{m.repetition}",
                reasons=sentences(m.reasons) or ("no reason was recorded",),
                logs=_logs(found, m),
                study=study,
            )
        ] = None
    return [*entries, *_earlier_attempts(found, study)]


def _logs(found: Overview, m: Measurement) -> str:
    if m.directory is not None:
        return str(m.directory.relative_to(found.study.directory) / "logs")
    for visit in found.study.visits:
        key = visit.record.key
        if (key.cell, key.dataset, key.repetition, key.attempt) == (
            m.cell,
            m.dataset,
            m.repetition,
            m.attempt,
        ):
            return str(visit.directory.relative_to(found.study.directory) / "logs")
    return ""


def _earlier_attempts(found: Overview, study: str) -> list[FailureRow]:
    """Attempts that a later one replaced: nothing is overwritten, nothing is hidden."""
    latest: dict[tuple[str, str, int, bool], int] = {}
    for visit in found.study.visits:
        key = visit.record.key
        place = (key.cell, key.dataset, key.repetition, key.canary)
        latest[place] = max(latest.get(place, 0), key.attempt)
    return [
        FailureRow(
            kind="replaced",
            cell=found.cells[key.cell].label.full if key.cell in found.cells else "canary",
            repetition=f"{key.repetition}, attempt {key.attempt}",
            reasons=sentences(visit.record.reasons) or (f"the visit was {visit.record.outcome.value}",),
            logs=str(visit.directory.relative_to(found.study.directory) / "logs"),
            study=study,
        )
        for visit in found.study.visits
        if (key := visit.record.key).attempt < latest[key.cell, key.dataset, key.repetition, key.canary]
    ]
