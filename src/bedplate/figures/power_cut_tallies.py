"""The cuts of a run counted: by profile, by finding, and by whether the file system itself broke."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.figures.power_cut_points import finding_of
from bedplate.model.power_cut import Placement, PointOutcome, PointRecord
from bedplate.model.power_cut_verdict import BROKEN, CutCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.model.power_cut import RecordingFacts


def tallies(points: Iterable[PointRecord], recording: RecordingFacts) -> dict[str, CutCounts]:
    """The drawn cuts by profile."""
    by_profile: dict[str, list[PointRecord]] = {}
    for record in points:
        if not record.point.control and is_drawn(record):
            by_profile.setdefault(record.point.profile.value, []).append(record)
    return {name: tally(records, recording) for name, records in sorted(by_profile.items())}


def with_unmounted(points: Sequence[PointRecord], recording: RecordingFacts) -> dict[str, CutCounts]:
    """The same, with those that broke the file system itself.

    A repair says nothing where good cuts need it too: without a journal, with a lost one, and on JFS, which never mounts behind a cut.
    """
    found = tallies(points, recording)
    good = [record for record in points if not record.outcome.is_bad]
    if 2 * sum(record.fsck_s is not None for record in good) >= len(good):
        return found
    broken = [record for record in points if _is_broken(record) and not _was_whole(record)]
    unmounted = tallies(broken, recording)
    return {
        name: replace(counted, unmounted=unmounted[name].cuts if name in unmounted else 0)
        for name, counted in found.items()
    }


def _is_broken(record: PointRecord) -> bool:
    return record.outcome.value in BROKEN


def _was_whole(record: PointRecord) -> bool:
    """Whether the file system mounted by itself and no check of it found errors."""
    is_lost = record.outcome is PointOutcome.FILE_SYSTEM_LOST
    return not is_lost and record.fsck_s is None and not record.unclean


def tally(records: Iterable[PointRecord], recording: RecordingFacts) -> CutCounts:
    """The findings of some cuts, counted."""
    return CutCounts.together([CutCounts(Counter(finding_of(record, recording) for record in records))])


def is_placed(placement: Placement, record: PointRecord) -> bool:
    """Whether a cut was placed in that way."""
    return record.point.placement is placement


def is_drawn(record: PointRecord) -> bool:
    """Whether chance placed a cut."""
    return is_placed(Placement.UNIFORM, record) or is_placed(Placement.WEIGHTED, record)
