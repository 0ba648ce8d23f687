"""Blocks of pairs until they tell: a study that gets one block after the other, looked at after each.

What comes next says a `PairedCourse`, from the study alone: a start that was killed goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from bedplate.campaign.display import LineDisplay
from bedplate.campaign.planning import kept_plan
from bedplate.campaign.running import extend, run
from bedplate.errors import PlanError, StudyError
from bedplate.study.layout import StudyLayout, is_study
from bedplate.study.paired import PairedStep, read_paired
from bedplate.study.schedule import read_schedule
from bedplate.study.store import StudyStore
from bedplate.units import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.campaign.consent import Consent
    from bedplate.campaign.paired.sides import PairedPlan
    from bedplate.campaign.running import StudyOutcome, Watch
    from bedplate.study.paired import PairedRecord


class PairedCourse(Protocol):
    """What a study of pairs does next, worked out from its records alone. It ends after `first_blocks` of them, or where a side lacks what is asked for."""

    @property
    def first_blocks(self) -> int:
        """Blocks that run before the first look; after one of them it is asked whether the others are worth their time."""
        ...

    def next(self, study: Path) -> PairedStep:
        """The next step of a study that stands on disk, whose due visits have ended."""
        ...


@dataclass(frozen=True)
class PairedOutcome:
    """What a start came to; `has_ended` where nothing more would follow."""

    last: StudyOutcome
    has_ended: bool


def refuse_too_short(plan: PairedPlan, record: PairedRecord) -> None:
    """PlanError where not even the first look fits into the budget."""
    needed = plan.found.estimate.seconds
    if needed > record.budget_s:
        blocks = plan.found.plan.repetitions
        raise PlanError(
            f"the first look comes after {blocks} block{'s' * (blocks > 1)}, about {format_duration(needed)}, and the budget is "
            f"{format_duration(record.budget_s)}; give a longer one (--budget), or a plan with shorter visits or fewer cells"
        )


def measure_pairs(
    plan: Path,
    study: Path,
    asked: PairedRecord,
    course: PairedCourse,
    *,
    consent: Consent,
    watch: Watch = LineDisplay,
) -> PairedOutcome:
    """Begin a study of pairs, or go on with it, until it tells or its time is gone.

    StudyError where the study asks something else. A block whose visit fails or is suspect is no pair, and the next one takes its place.
    """
    lines = LineDisplay()
    if is_study(study):
        _go_on(study, asked)
        last = extend(study, repetitions=kept_plan(study).plan.repetitions, consent=consent, watch=watch)
    else:
        # What is doubtful of the plan was told with it.
        last = run(plan, study, consent=consent, watch=watch, paired=asked, doubts=False)
    while True:
        start = last.start
        if start is not None and (start.needs_kernel is not None or start.not_built):
            return PairedOutcome(last, has_ended=False)
        step = course.next(study)
        lines.note(step.words)
        if step.is_last or (start is not None and start.left_behind):
            return PairedOutcome(last, has_ended=step.is_last)
        blocks = max(last.plan.repetitions + 1, course.first_blocks)
        last = extend(study, repetitions=blocks, consent=consent, watch=watch)
        if last.start is None or not last.start.completed + last.start.failed:
            # A block that ran nothing would be followed by another such one.
            return PairedOutcome(last, has_ended=False)


def _go_on(study: Path, asked: PairedRecord) -> None:
    """The question is the one that the study was begun with; its budget may be larger now, and more doubts may be accepted."""
    layout = StudyLayout(study)
    record = read_paired(layout, read_schedule(layout))
    if record is None:
        raise StudyError(f"{study} does not measure pairs until they tell; name another --directory")
    if replace(record, budget_s=asked.budget_s, accepted=asked.accepted) != asked:
        raise StudyError(
            f"{study} was begun with another question: {record.contender} beside {record.baseline}, within {record.margin:g}, "
            f"{record.condition or 'without a condition'}; name another --directory"
        )
    if missing := [word for word in record.accepted if word not in asked.accepted]:
        raise StudyError(
            f"{study} was begun with {' '.join(f'--accept {word!r}' for word in missing)}; what was accepted stays so. Give it again, or name "
            "another --directory"
        )
    changes = []
    if asked.budget_s > record.budget_s:
        changes.append(
            f"the budget was raised from {format_duration(record.budget_s)} to {format_duration(asked.budget_s)}"
        )
    if more := [word for word in asked.accepted if word not in record.accepted]:
        changes.append(f"from here on a doubt counts that has {' or '.join(map(repr, more))}")
    if changes:
        with StudyStore.open(study) as store:
            store.pair_on(
                replace(asked, budget_s=max(asked.budget_s, record.budget_s)), what="; ".join(changes)
            )
