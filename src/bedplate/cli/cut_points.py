"""`bedplate power-cut points`: which cuts of a study were bad, by the numbers that `replay` takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from bedplate.cuts.blame import Repeatability, Story
from bedplate.cuts.points import GOOD, Cuts, finding_of, read_cuts
from bedplate.cuts.records import LOG_FILE, Placement, PointRecord
from bedplate.cuts.verdict import recoveries_not_whole
from bedplate.errors import StudyError
from bedplate.model import limits
from bedplate.study.layout import StudyLayout
from bedplate.study.power_cut_stories import read_stories
from bedplate.units import format_count, format_milliseconds

_INDENT = "  "


def run_lines(study: Path, folders: Mapping[str, Path]) -> Iterator[str]:
    """For each run its name, how many of its cuts were bad, whether they can be cut again, and its folder; below it what its stories say together."""
    if not folders:
        raise StudyError(f"{study} has no run of power cuts")
    width = max(map(len, folders))
    for name, folder in folders.items():
        cuts = read_cuts(folder)
        points = [record for record in cuts.points if not record.point.control]
        bad = sum(record.outcome.is_bad for record in points)
        log = "log kept" if limits.is_there(folder / LOG_FILE) else "no log"
        again = [record for record in cuts.recuts if record.point.placement is not Placement.WHOLE]
        words = f"{sum(map(_is_bad, again))} of {len(again)} in recovery  " if again else ""
        if refused := recoveries_not_whole(cuts):
            words = f"recoveries refused ({len(refused)} not whole)  "
        remounted = sum(record.failed_once is not None for record in (*cuts.points, *cuts.recuts))
        words += f"{remounted} good at the second look only  " if remounted else ""
        yield f"{name:{width}}  {bad:>4} of {len(points):<4} bad  {words}{log:8}  {folder.relative_to(StudyLayout(study).visits)}"
        bad_numbers = {record.point.number for record in (*points, *again) if _is_bad(record)}
        explained = [
            story
            for number, story in read_stories(study, folder).items()
            if number in bad_numbers and story.evidence.steadiness is not Repeatability.NOT_BAD_AGAIN
        ]
        yield from (f"{_INDENT * 4}{line}" for line in _story_lines(explained, bad_cuts=len(bad_numbers)))


def _story_lines(stories: Sequence[Story], *, bad_cuts: int) -> Iterator[str]:
    """How few writes were enough, where these lay, and whose faults they are, each with the number of cuts."""
    if not stories:
        return
    found = [story.evidence for story in stories]
    enough = Counter(format_count(len(one.smallest), "write") if one.smallest else "nothing" for one in found)
    places = Counter(place for one in found for place in {write.place.value for write in one.smallest})
    yield f"{len(stories)} of {bad_cuts} explained, by the loss of {_counted(enough)}"
    if places:
        yield f"what is lost: {_counted(places)}"
    yield f"fault: {_counted(Counter(f'{story.party.value}, {story.reason.code}' for story in stories))}"
    if unsure := sum(not one.is_smallest or one.steadiness is not Repeatability.STEADY for one in found):
        yield f"of these {unsure} may shrink further, or answered differently when asked again"


def _counted(counts: Counter[str]) -> str:
    """The most frequent first, and words in their order."""
    return "; ".join(
        f"{words} ({count})" for words, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )


def point_lines(
    folder: Path, *, every: bool, stories: Mapping[int, Story] = MappingProxyType({})
) -> Iterator[str]:
    """Two lines for each bad cut of a run in the order of their numbers, with `every` for all and the controls.

    One with a story has that in place of what was wrong first.
    """
    cuts = read_cuts(folder)
    yield from (f"{_INDENT}{problem}" for problem in cuts.problems)
    if cuts.recording is not None:
        yield from (f"{_INDENT}without any cut: {problem}" for problem in cuts.recording.without_cut)
    yield from (f"{_INDENT}cuts in recovery do not count: {reason}" for reason in recoveries_not_whole(cuts))
    found = (*cuts.points, *cuts.recuts)
    chosen = [record for record in found if every or _is_bad(record) or record.failed_once is not None]
    if not chosen:
        judged = sum(not _is_control(record) for record in found)
        yield f"none of {judged} cuts was bad; --all lists them, and the {len(found) - judged} controls"
    for record in sorted(chosen, key=lambda record: record.point.number):
        point = record.point
        kind = "control" if point.control else point.placement.value
        again = "" if point.recovery_of is None else f"recovery from {point.recovery_of}: "
        weaker = "" if record.weaker is None else f", and as {record.weaker.profile.value}"
        yield f"{point.number:>5}  {point.profile.value:10}  {kind:8}  {again}{_finding(record, cuts)}{weaker}"
        story = stories.get(point.number)
        more = record.problems[:1] if story is None else (*record.problems[:1], *story.lines[1:])
        yield from (f"{_INDENT * 4}{line}" for line in more)
        if record.failed_once is not None:
            yield f"{_INDENT * 4}good at the second look, at a fresh copy; the first ended on: {record.failed_once}"


def _is_bad(record: PointRecord) -> bool:
    return record.outcome.is_bad and not record.point.control


def _is_control(record: PointRecord) -> bool:
    """Also what stands behind a recovery that nothing cut."""
    return record.point.control or record.point.placement is Placement.WHOLE


def _finding(record: PointRecord, cuts: Cuts) -> str:
    """In the verdict's words, which know what the engine's settings call bounded."""
    found = str(record.outcome.value) if cuts.recording is None else finding_of(record, cuts.recording)
    return (
        found
        if found in GOOD or record.lost_ms is None
        else f"{found}, since {format_milliseconds(record.lost_ms)}"
    )
