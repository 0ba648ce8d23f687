"""`bedplate power-cut points`: which cuts of a study were bad, by the numbers that `replay` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.figures.power_cut_points import finding_of, read_cuts
from bedplate.model.power_cut import LOG_FILE
from bedplate.model.power_cut_verdict import GOOD
from bedplate.study.layout import StudyLayout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bedplate.figures.power_cut_points import Cuts
    from bedplate.model.power_cut import PointRecord

_INDENT = "  "


def run_lines(study: Path, folders: Sequence[Path]) -> Iterator[str]:
    """A line for each run: how many of its cuts were bad, whether they can be cut again, and its folder."""
    if not folders:
        raise StudyError(f"{study} has no run of power cuts")
    for folder in folders:
        cuts = read_cuts(folder)
        points = [record for record in cuts.points if not record.point.control]
        bad = sum(record.outcome.is_bad for record in points)
        log = "log kept" if (folder / LOG_FILE).exists() else "no log"
        yield f"{bad:>4} of {len(points):<4} bad  {log:8}  {folder.relative_to(StudyLayout(study).visits)}"


def point_lines(folder: Path, *, every: bool) -> Iterator[str]:
    """Two lines for each bad cut of a run in the order of their numbers, with `every` for all and the controls."""
    cuts = read_cuts(folder)
    yield from (f"{_INDENT}{problem}" for problem in cuts.problems)
    chosen = [record for record in cuts.points if every or _is_bad(record)]
    if not chosen:
        yield f"none of {len(cuts.points)} cuts was bad, but for the controls; --all lists them"
    for record in sorted(chosen, key=lambda record: record.point.number):
        point = record.point
        kind = "control" if point.control else point.placement.value
        yield f"{point.number:>5}  {point.profile.value:10}  {kind:8}  {_finding(record, cuts)}"
        yield from (f"{_INDENT * 4}{problem}" for problem in record.problems[:1])


def _is_bad(record: PointRecord) -> bool:
    return record.outcome.is_bad and not record.point.control


def _finding(record: PointRecord, cuts: Cuts) -> str:
    """In the verdict's words, which know what the engine's settings call bounded."""
    found = str(record.outcome.value) if cuts.recording is None else finding_of(record, cuts.recording)
    return found if found in GOOD or record.lost_ms is None else f"{found}, since {record.lost_ms:.3g} ms"
