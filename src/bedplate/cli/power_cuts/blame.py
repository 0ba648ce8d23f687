"""`bedplate power-cut blame`: why cuts of a kept log were bad, a story of five lines for each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.cli.power_cuts.stored_job import job_of, record_of_visit
from bedplate.figures.power_cut_points import finding_of, read_cuts
from bedplate.model.durability import with_kept_journal
from bedplate.model.power_cut import Profile
from bedplate.model.power_cut_blame import Repeatability, story_of
from bedplate.study.power_cut_stories import keep_stories, read_stories
from bedplate.workloads.power_cut.run.cut_questions import CutQuestion, inquests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.model.power_cut import CutPoint, PointRecord, RecordingFacts
    from bedplate.model.power_cut_blame import BlameEvidence, Story
    from bedplate.model.visit import Durability


def bad_points(folder: Path, *, every: bool) -> list[CutPoint]:
    """The bad cuts of a run in the order of their numbers; without `every` one for each finding of volatile, ordered and second cuts."""
    cuts = read_cuts(folder)
    bad = [
        record
        for record in (*cuts.points, *cuts.recuts)
        if record.outcome.is_bad and not record.point.control
    ]
    bad.sort(key=lambda record: record.point.number)
    if every:
        return [record.point for record in bad]
    return [record.point for record in _one_of_each(bad, cuts.recording)]


def _one_of_each(bad: Iterable[PointRecord], recording: RecordingFacts | None) -> Iterator[PointRecord]:
    seen = set()
    for record in bad:
        point = record.point
        # A loss within what settings may lose says nothing of one beyond it.
        kind = (
            finding_of(record, recording),
            point.profile is Profile.ORDERED,
            point.recovery_of is not None,
        )
        if kind not in seen:
            seen.add(kind)
            yield record


def without_story(study: Path, folder: Path, points: Iterable[CutPoint]) -> list[CutPoint]:
    """Those whose story is not told yet."""
    told = {number for number, story in read_stories(study, folder).items() if not story.evidence.control}
    return [point for point in points if point.number not in told]


def tell_stories(
    study: Path,
    folder: Path,
    points: Sequence[CutPoint],
    *,
    most: int,
    told: Callable[[Story], None],
    hold: Callable[[Callable[[BlameEvidence], None]], object] | None = None,
) -> None:
    """Make the story of each point in turn, and keep it in the study at once.

    `hold` holds the inquests where they are not held here, and hands on what each ends with.
    """
    declared, stored = declared_of(folder), _records_of(folder)

    def keep(evidence: BlameEvidence) -> None:
        beside = beside_record(evidence, stored.get((evidence.control, evidence.point)))
        story = story_of(beside, declared)
        keep_stories(study, folder, [story])
        told(story)

    if hold is not None:
        hold(keep)
        return
    question = CutQuestion(str(folder.absolute()), job_of(folder), tuple(points), most)
    for found in inquests(question, most):
        keep(found.evidence)


def beside_record(evidence: BlameEvidence, record: PointRecord | None) -> BlameEvidence:
    """The evidence with the study's own look at the cut counted in: another finding, or a first look that failed, is told as a change."""
    if record is None or evidence.steadiness is not Repeatability.STEADY:
        return evidence
    alike = record.outcome is evidence.outcome and record.failed_once is None
    return evidence if alike else replace(evidence, steadiness=Repeatability.CHANGES)


def record_of(folder: Path, point: CutPoint) -> PointRecord | None:
    """The study's own record of a cut; None without one."""
    return _records_of(folder).get((point.control, point.number))


def _records_of(folder: Path) -> Mapping[tuple[bool, int], PointRecord]:
    cuts = read_cuts(folder)
    return {(each.point.control, each.point.number): each for each in (*cuts.points, *cuts.recuts)}


def declared_of(folder: Path) -> Durability | None:
    """What flushes and settings declared for the cell of a run: of the visit that it is a part of.

    A journal in memory is no reason where the plan had it kept (`ram_journal`).
    """
    declared = record_of_visit(folder).durability
    recording = read_cuts(folder).recording
    if declared is None or recording is None or recording.loses_journal:
        return declared
    return with_kept_journal(declared)
