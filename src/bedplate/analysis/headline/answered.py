"""The record of what a study answers. Everything that shows an answer takes it from here: terminal, page, and what is mailed.

It chooses among what the commands say (`advise`, `compare`, the verdicts of power cuts) and judges nothing by itself. Cells
are told by their ids; `lines.py` has the same in words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from bedplate.analysis.advice.advised import VOLATILE, advised, objectives_of
from bedplate.analysis.advice.words import standing_cells
from bedplate.analysis.headline.beyond_pairs import AllPairs
from bedplate.analysis.headline.costs import next_steps
from bedplate.analysis.headline.cuts import cuts_answer
from bedplate.analysis.headline.defaults import defaults_of
from bedplate.analysis.headline.set_up import set_up
from bedplate.analysis.overview import Trouble
from bedplate.analysis.run_heads import has_speed, writes
from bedplate.analysis.workload_view import view_of
from bedplate.model.durability import BOUNDED_LOSS, UNKNOWN, UNSAFE
from bedplate.model.figure import Better, Scale
from bedplate.model.reason import sentences
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.pareto import Standing
from bedplate.statistics.summary import TRUSTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.analysis.advice.advised import Advised, Contest, Objective, Run
    from bedplate.analysis.comparison.pooled import PooledPairs
    from bedplate.analysis.headline.costs import NextStep
    from bedplate.analysis.headline.cuts import CutsAnswer
    from bedplate.analysis.headline.defaults import Defaults
    from bedplate.analysis.headline.set_up import SetUp
    from bedplate.analysis.overview import Overview
    from bedplate.model.figure import Metric
    from bedplate.statistics.comparison import Comparison
    from bedplate.statistics.summary import Summary


class Answered(StrEnum):
    """How far a question is answered."""

    # One cell is ahead of all others that nothing rules out, in the run's first figure.
    LEADS = "leads"
    # One is at no worse level than any that it is not distinguished from cell by cell (`beyond_pairs.py`).
    BY_LEVELS = "by levels"
    # Several may be the best: nothing tells them apart, or they are shown to be the same.
    TIED = "tied"
    # One cell alone is of the class.
    ALONE = "alone"
    # Too few repetitions for any verdict.
    NO_VERDICT = "no verdict"
    # No cell of a class that may be taken has a trusted figure.
    NOTHING = "nothing"

    @property
    def is_without_verdict(self) -> bool:
        """Whether it is the number of repetitions that keeps it from a verdict."""
        return self is Answered.NO_VERDICT


class NotTakenFor(StrEnum):
    """Why a cell is not to be taken, the gravest first."""

    UNSAFE = "unsafe"
    UNKNOWN = "unknown"
    BOUNDED_LOSS = "bounded loss"
    FAILED = "failed"
    SUSPECT = "suspect"
    NOT_RUN = "not run"
    # Nothing is against it but that it has too few trusted runs for a verdict, and so is in none.
    TOO_FEW = "too few"


# A cell nearer to the default takes the place of the best one where its mean is no more than so many times worse: a
# convention of bedplate. Beyond it the better mean is the better guess, whatever the intervals leave open.
_AS_GOOD_MAX = 1.25
_FIGURES = re.compile(r"\d[\d.,]*")
_OF_TROUBLE = {
    Trouble.FAILED: NotTakenFor.FAILED,
    Trouble.SUSPECT: NotTakenFor.SUSPECT,
    Trouble.UNKNOWN: NotTakenFor.SUSPECT,
    Trouble.NOT_RUN: NotTakenFor.NOT_RUN,
}
_OF_CLASS = {
    UNSAFE: NotTakenFor.UNSAFE,
    UNKNOWN: NotTakenFor.UNKNOWN,
    BOUNDED_LOSS: NotTakenFor.BOUNDED_LOSS,
}


@dataclass(frozen=True)
class SeenCell:
    """A cell with the repetitions of the question's figure; `summary.centre` is the mean that every reader shows."""

    cell: str
    summary: Summary


@dataclass(frozen=True)
class BesideCell:
    """The taken cell beside another: `comparison.estimate` is taken / other, or taken - other, as its `kind` says.

    Without an interval the two may not be compared, and `comparison.reasons` say why. `ahead_in` are the other figures in which
    the taken one is shown better.
    """

    other: SeenCell
    comparison: Comparison
    ahead_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotTaken:
    """Cells that are not to be taken, all for one reason.

    `reason` is the sentence of the records that most of them have, empty without any, and `having` are these. `seen` are the figures of
    those that have one, the best first: of other durability than what is taken, so never part of its ratio or its rank.
    """

    why: NotTakenFor
    cells: tuple[str, ...]
    reason: str
    having: tuple[str, ...]
    seen: tuple[SeenCell, ...] = ()


@dataclass(frozen=True)
class RunAnswer:
    """What one run answers: which cell to take, among those of one durability class.

    `objective` is the run's first figure. `durability` is the class of all cells here, empty where no cell is of one that may
    be taken. `taken` is None without a verdict. `tied` are the others that may be taken as well, the best first, each beside it.
    `following` is the next of the rest by the mean. `default` is the set-up that this system makes by itself, None where the
    study has none or it is taken; `is_default` says whether it is. `default_kind` is the type that this system is installed on,
    None where that is not known, and `default_cells` are those of the study that are like it, judged or not. `same_as` are cells that are the same in
    force as the taken one. `seen` are all cells of the class that have a trusted
    figure, the best first; `cells` counts those that are judged. `confidence` is that of the comparisons. `types` are the type of the taken cell beside each other one,
    over all matched pairs of the class, as `compare` pools them, the most pairs first; of the first answer alone.
    """

    run: Run
    objective: Objective
    durability: str
    answered: Answered
    cells: int
    seen: tuple[SeenCell, ...] = ()
    taken: SeenCell | None = None
    tied: tuple[BesideCell, ...] = ()
    following: BesideCell | None = None
    default: BesideCell | None = None
    is_default: bool = False
    default_kind: str | None = None
    default_cells: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()
    confidence: float | None = None
    set_up: SetUp | None = None
    types: tuple[PooledPairs, ...] = ()
    not_taken: tuple[NotTaken, ...] = ()

    @property
    def metric(self) -> Metric:
        """The figure that the answer is about."""
        return self.objective.metric


@dataclass(frozen=True)
class Headline:
    """The answer of one study.

    `answers` has one for each run that has a speed, those that write first: the first is the answer of the study. `cuts` is
    that of its power cuts; it stands first where no run has a speed (`cuts_first`). `following` are the steps that would
    tell more, the most useful first, with the command and what it takes. `doubts` are sentences that stand beside every figure
    (emulation first, an image file) and what the study says against itself. `advice` is what it was made from; it counts how many
    comparisons can tell.
    """

    advice: Advised
    answers: tuple[RunAnswer, ...]
    cuts: CutsAnswer | None
    following: tuple[NextStep, ...]
    doubts: tuple[str, ...]

    @property
    def found(self) -> Overview:
        """The study."""
        return self.advice.overview

    @property
    def cuts_first(self) -> bool:
        """Whether the study is one of power cuts."""
        return self.cuts is not None and not self.answers


def headline(found: Overview, advice: Advised | None = None) -> Headline:
    """The answer of a study; `advice` is its advice with a volatile cache, where a caller has it already."""
    told = advised(found, cache=VOLATILE) if advice is None else advice
    defaults, pairs = defaults_of(found), AllPairs(found, told.classes)
    asked = [
        (run, objectives[0])
        for run in found.runs
        if has_speed(found, run) and (objectives := objectives_of(found, run))
    ]
    answers = tuple(
        _answer(told, defaults, pairs, run, objective)
        for run, objective in sorted(asked, key=lambda each: _order(found, *each))
    )
    answers = (*(_with_types(pairs, each) for each in answers[:1]), *answers[1:])
    cuts = cuts_answer(found, told.cache)
    return Headline(
        advice=told,
        answers=answers,
        cuts=cuts,
        following=next_steps(found, answers, cuts, told.classes),
        doubts=(*found.marks, *found.health.sentences()),
    )


def _with_types(pairs: AllPairs, own: RunAnswer) -> RunAnswer:
    if own.taken is None:
        return own
    return replace(own, types=pairs.beside_other_types(own, own.taken.cell))


def _order(found: Overview, run: Run, objective: Objective) -> tuple[bool, int]:
    """Runs that write first; of one type those that its folder puts first, as TPC-H's queries before its load."""
    spec = found.spec(run)
    headlines = () if spec is None else view_of(spec.workload).headlines
    name = objective.metric.name
    return not writes(found, run), headlines.index(name) if name in headlines else len(headlines)


def _answer(
    advice: Advised, defaults: Defaults, pairs: AllPairs, run: Run, objective: Objective
) -> RunAnswer:
    """Of the strictest class in which a cell has a trusted figure."""
    contests = [contest for contest in advice.contests if contest.run == run]
    having = [contest for contest in contests if _seen(advice, contest, objective)]
    contest = next(iter(having or contests), None)
    if contest is None:
        nothing = RunAnswer(run, objective, "", Answered.NOTHING, 0)
        return replace(nothing, not_taken=_not_taken(advice, nothing))
    due = [cell for cell in (*contest.cells, *contest.left_out) if advice.overview.of(cell, run)]
    plain = RunAnswer(
        run,
        objective,
        contest.durability,
        Answered.NOTHING,
        cells=len(contest.cells),
        seen=_seen(advice, contest, objective),
    )
    plain = replace(plain, not_taken=_not_taken(advice, plain))
    if contest.can_judge or not plain.seen:
        plain = replace(plain, not_taken=(*plain.not_taken, *_not_judged(advice, contest, plain)))
    if not plain.seen:
        return plain
    if contest.can_judge:
        return _judged(advice, defaults, pairs, contest, plain)
    if len(due) > 1 or plain.seen[0].summary.n < REPETITIONS_MIN:
        return replace(plain, answered=Answered.NO_VERDICT)
    alone = plain.seen[0]
    same_as = contest.same_as.get(alone.cell, ())
    return _taking(advice, defaults, replace(plain, answered=Answered.ALONE), alone, same_as=same_as)


def _seen(advice: Advised, contest: Contest, objective: Objective) -> tuple[SeenCell, ...]:
    """The cells of a class that have a trusted value, the best mean first."""
    return _ranked(advice, contest.run, objective, (*contest.cells, *contest.left_out), basis=TRUSTED)


def _ranked(
    advice: Advised, run: Run, objective: Objective, cells: Iterable[str], *, basis: str | None = None
) -> tuple[SeenCell, ...]:
    sign = -1 if objective.metric.better is Better.HIGHER else 1
    every = [SeenCell(cell, advice.summary_of(run, objective, cell)) for cell in cells]
    known = [
        (sign * each.summary.centre, each)
        for each in every
        # Where some runs were stopped at a limit, the mean of the others is that of the quick ones.
        if each.summary.centre is not None
        and not each.summary.censored
        and basis in (None, each.summary.basis)
    ]
    return tuple(each for _, each in sorted(known, key=lambda pair: pair[0]))


def _judged(
    advice: Advised, defaults: Defaults, pairs: AllPairs, contest: Contest, plain: RunAnswer
) -> RunAnswer:
    """Among the cells that nothing rules out the one with the best mean, or one that may be as good and is nearer to the default.

    It is near by its mean as well: an interval so wide that it leaves everything open makes no cell as good as the best.
    What pairs of cells do not tell, all pairs of two levels together may: at a level that is shown worse none is taken.
    """
    ranked = [each for each in plain.seen if each.cell in contest.cells]
    place = contest.cells.index
    # One that is behind in another figure only may still be the fastest.
    ruled_out = standing_cells(contest, Standing.RULED_OUT)
    best = [each for each in ranked if not contest.better[0, :, place(each.cell)].any()]
    unbeaten = [each for each in best if each.cell not in ruled_out] or best
    kept = pairs.not_beaten(plain, [each.cell for each in unbeaten])
    among = [each for each in unbeaten if each.cell in kept] or unbeaten[:1]
    taken = min(
        (each for each in among if _is_near(plain.metric, each, among[0])),
        key=lambda each: (
            each.cell not in defaults.cells,
            len(defaults.departures[each.cell]),
            ranked.index(each),
        ),
    )
    rest = [each for each in ranked if each not in among]
    answered = replace(
        plain,
        answered=Answered.TIED
        if len(among) > 1
        else Answered.LEADS
        if len(unbeaten) == 1
        else Answered.BY_LEVELS,
        tied=tuple(_beside(advice, contest, taken, each) for each in among if each is not taken),
        following=_beside(advice, contest, taken, rest[0]) if rest else None,
        default=next(
            (
                _beside(advice, contest, taken, each)
                for each in ranked
                if each is not taken and {each.cell, *contest.same_as[each.cell]} & set(defaults.cells)
            ),
            None,
        ),
        confidence=contest.confidences[0].difference,
    )
    return _taking(advice, defaults, answered, taken, same_as=contest.same_as[taken.cell])


def _is_near(metric: Metric, own: SeenCell, best: SeenCell) -> bool:
    if metric.scale is not Scale.RATIO or own is best:
        return True
    ratio = (own.summary.centre or 0.0) / (best.summary.centre or math.inf)
    return ratio <= _AS_GOOD_MAX if metric.better is Better.LOWER else ratio >= 1 / _AS_GOOD_MAX


def _taking(
    advice: Advised, defaults: Defaults, answered: RunAnswer, taken: SeenCell, *, same_as: Sequence[str] = ()
) -> RunAnswer:
    """With the cell that is to be taken, and how it was made."""
    is_default = bool({taken.cell, *same_as} & set(defaults.cells))
    return replace(
        answered,
        taken=taken,
        is_default=is_default,
        same_as=tuple(same_as),
        default=None if is_default else answered.default,
        default_kind=defaults.kind,
        default_cells=tuple(cell for cell in defaults.cells if advice.overview.of(cell, answered.run)),
        set_up=set_up(advice.overview, taken.cell),
    )


def _beside(advice: Advised, contest: Contest, taken: SeenCell, other: SeenCell) -> BesideCell:
    """The taken cell as the contender; where the contest did not judge the pair, without an interval."""
    comparison = advice.comparison(contest, contest.objectives[0], other.cell, taken.cell)
    better = contest.better[:, contest.cells.index(taken.cell), contest.cells.index(other.cell)]
    ahead_in = tuple(
        each.head for each, ahead in zip(contest.objectives[1:], better[1:], strict=True) if bool(ahead)
    )
    return BesideCell(other, comparison, ahead_in)


def _not_taken(advice: Advised, answered: RunAnswer) -> tuple[NotTaken, ...]:
    """Cells of lesser classes, and those of which every run failed, is doubted or is missing; each cell once."""
    found, run = advice.overview, answered.run
    due = [cell for cell in found.cells if found.of(cell, run)]
    why: dict[NotTakenFor, list[str]] = {each: [] for each in NotTakenFor}
    for cell in due:
        if cell not in {each.cell for each in answered.seen}:
            reason = _why_not(advice, run, cell, answered.durability)
            if reason is not None:
                why[reason].append(cell)
    return tuple(
        NotTaken(
            each,
            tuple(cells),
            *_reason(advice, run, each, cells),
            _ranked(advice, run, answered.objective, cells),
        )
        for each, cells in why.items()
        if cells
    )


def _not_judged(advice: Advised, contest: Contest, answered: RunAnswer) -> Iterable[NotTaken]:
    """The cells of the class that no verdict is about: a better one may be among them."""
    named = {cell for each in answered.not_taken for cell in each.cells}
    cells = tuple(cell for cell in contest.left_out if cell not in named)
    if cells:
        stopped = [cell for cell in cells if cell in contest.stopped]
        reason = contest.left_out[(*stopped, *cells)[0]]
        having = tuple(cell for cell in cells if contest.left_out[cell] == reason)
        if not stopped and len(having) < len(cells):
            reason, having = f"fewer than {REPETITIONS_MIN} trusted runs", cells
        seen = _ranked(advice, contest.run, answered.objective, cells)
        yield NotTaken(NotTakenFor.TOO_FEW, cells, reason, having, seen)


def _why_not(advice: Advised, run: Run, cell: str, durability: str) -> NotTakenFor | None:
    """None where nothing is against a cell but that it has too few runs."""
    own = advice.classes[cell]
    if own == UNSAFE != durability:
        return NotTakenFor.UNSAFE
    troubles = [m.trouble for m in advice.overview.of(cell, run)]
    if all(troubles):
        worst_first = (Trouble.FAILED, Trouble.SUSPECT, Trouble.UNKNOWN, Trouble.NOT_RUN)
        first = next(each for each in worst_first if each in troubles)
        return _OF_TROUBLE[first]
    return _OF_CLASS.get(own) if own != durability else None


def _reason(advice: Advised, run: Run, why: NotTakenFor, cells: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The sentence that most of some cells have, and which of them; of two cells a sentence differs in its figures at most."""
    told = {cell: dict(_said_of(advice, run, why, cell)) for cell in cells}
    counts = Counter(alike for own in told.values() for alike in own)
    if not counts:
        return "", ()
    alike, _ = counts.most_common(1)[0]
    having = tuple(cell for cell, own in told.items() if alike in own)
    return told[having[0]][alike], having


def _said_of(advice: Advised, run: Run, why: NotTakenFor, cell: str) -> Iterable[tuple[str, str]]:
    """Each sentence about a cell, by the same without its figures; what is measured is counted by cell, and told with the power cuts."""
    promise = advice.overview.cells[cell].durability
    if why in _OF_CLASS.values():
        reasons = promise.reasons if promise is not None and promise.basis == "declared" else ()
    else:
        reasons = tuple(reason for m in advice.overview.of(cell, run) for reason in m.reasons)
    return ((_FIGURES.sub("0", words), words) for words in reversed(sentences(reasons)))
