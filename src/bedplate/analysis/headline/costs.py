"""What it would cost to know more: the command, and how long it takes by the study's own times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bedplate.analysis.advice.extending import (
    extend_command,
    more_for_verdicts,
    seconds_of_a_repetition,
    seconds_of_visits,
    study_directory,
)
from bedplate.analysis.overview import Trouble
from bedplate.installation import COMMAND
from bedplate.model.durability import UNKNOWN, UNSAFE
from bedplate.statistics.comparison import Verdict
from bedplate.statistics.proportions import proportion, trials_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bedplate.analysis.headline.answered import RunAnswer
    from bedplate.analysis.headline.cuts import CutsAnswer
    from bedplate.analysis.overview import Measurement, Overview

# What a bound on the share of bad cuts is brought below, the first that is not reached.
_SHARES = (0.05, 0.025, 0.01, 0.005)


class StepKind(StrEnum):
    """What a step does."""

    RETRY = "retry"
    GO_ON = "go on"
    REPETITIONS = "repetitions"
    CUTS = "cuts"
    LONGER = "longer"
    ALL_THE_SAME = "all the same"


@dataclass(frozen=True)
class NextStep:
    """One step that tells more.

    `repetitions` are those in all, None where none are added. `command` is to be copied, empty where no command does it;
    `seconds` is None where the study has no visit to take it from. `count` is what the step is about: the runs that failed or
    are missing, the repetitions that are added, the cuts that there would be, of which none bad would bound the share of bad
    ones by `bound`. `apart` is the cell that repetitions would tell from the one that is taken.
    """

    kind: StepKind
    count: int
    command: str = ""
    seconds: float | None = None
    repetitions: int | None = None
    bound: float | None = None
    apart: str | None = None


def next_steps(
    found: Overview, answers: Sequence[RunAnswer], cuts: CutsAnswer | None, classes: Mapping[str, str]
) -> tuple[NextStep, ...]:
    """What would help, the most useful first; empty where every question is answered and nothing failed.

    `classes` are the durability classes of the cells. To an imported study nothing is added.
    """
    if found.study.facts.is_imported:
        return ()
    steps = [
        *_missing(found),
        *(step for answer in answers[:1] for step in _verdicts(found, answer, classes)),
    ]
    if cuts is not None and not answers:
        steps += _sharper(found, cuts)
    return tuple(steps)


def _missing(found: Overview) -> Iterable[NextStep]:
    """Runs that failed, and those that were due and have not been made."""
    plain = [m for m in found.measurements if not m.canary]
    for trouble, step, option in (
        (Trouble.FAILED, StepKind.RETRY, " --retry-failed"),
        (Trouble.NOT_RUN, StepKind.GO_ON, ""),
    ):
        runs = [m for m in plain if m.trouble is trouble]
        if runs:
            there = found.study.schedule.repetitions
            command = f"{extend_command(found, there)}{option}"
            yield NextStep(step, len(runs), command, _seconds_of(found, runs))


def _verdicts(found: Overview, answer: RunAnswer, classes: Mapping[str, str]) -> Iterable[NextStep]:
    """Repetitions that would tell the best from the others, or give verdicts at all."""
    if not answer.durability:
        worst = next((each for each in (UNSAFE, UNKNOWN) if each in classes.values()), None)
        if worst is not None:
            command = f"{COMMAND} advise {study_directory(found)} --durability {worst}"
            yield NextStep(StepKind.ALL_THE_SAME, len(answer.not_taken), command)
    elif not answer.seen or answer.answered.is_without_verdict:
        cells = [cell for cell, of in classes.items() if of == answer.durability]
        # Enough that failed or are due are other steps.
        if more := more_for_verdicts(found, cells, answer.run):
            yield _repetitions(found, more)
    waiting = [
        each
        for each in (*answer.tied, *filter(None, (answer.following, answer.default)))
        if each.comparison.verdict is Verdict.CANNOT_TELL and each.comparison.basis is not None
    ]
    needed = {each.other.cell: each.comparison.more_repetitions for each in waiting}
    counted = {cell: more for cell, more in needed.items() if more is not None}
    if counted:
        nearest = min(counted, key=lambda cell: counted[cell])
        yield _repetitions(found, counted[nearest], apart=nearest)
    elif waiting:
        yield NextStep(StepKind.LONGER, len(waiting))


def _repetitions(found: Overview, more: int, *, apart: str | None = None) -> NextStep:
    wanted = found.study.schedule.repetitions + more
    seconds = seconds_of_a_repetition(found)
    return NextStep(
        StepKind.REPETITIONS,
        more,
        extend_command(found, wanted),
        None if seconds is None else more * seconds,
        repetitions=wanted,
        apart=apart,
    )


def _sharper(found: Overview, cuts: CutsAnswer) -> Iterable[NextStep]:
    """More repetitions of every cell: as many as bring the bound of the least cut safe cell below the next share.

    Those that are scheduled are taken for made; a repetition may have several recordings.
    """
    counts = {each.cell: each.tally.cuts for each in cuts.safe if each.tally.cuts}
    if not counts:
        return
    cell = min(counts, key=lambda each: counts[each])
    of_each = counts[cell] / len({run.key.repetition for run in found.cells[cell].cuts})
    there = found.study.schedule.repetitions
    bound = proportion(0, round(of_each * there)).high
    wanted = next((share for share in _SHARES if share < bound), bound / 2)
    repetitions = max(math.ceil(trials_for(wanted) / of_each), there + 1)
    seconds = seconds_of_a_repetition(found)
    yield NextStep(
        StepKind.CUTS,
        round(of_each * repetitions),
        extend_command(found, repetitions),
        None if seconds is None else (repetitions - there) * seconds,
        repetitions=repetitions,
        bound=proportion(0, round(of_each * repetitions)).high,
    )


def _seconds_of(found: Overview, runs: Iterable[Measurement]) -> float | None:
    """The visits of these runs once more."""
    visits = {(m.cell, m.dataset, m.repetition) for m in runs}
    return seconds_of_visits(found, [(cell, dataset, False) for cell, dataset, _ in visits])
