"""The answer of a page: the headline that commands end with, what matters beside it, and all that the advice rests on.

Every sentence is one that a command says (`run`, `advise`, `effects`, `claims`); here is only chosen where it stands. So the
page never says more than the commands can bear out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from bedplate.analysis.advice import Advised, Contest, Objective, RankedCell, Standing, advised
from bedplate.analysis.answer import (
    Headline,
    HeadlineLine,
    RunAnswer,
    beside_words,
    contest_notes,
    headline,
    headline_lines,
    instead_lines,
    relative_words,
    run_lines,
    short_names,
    standing_words,
    table_rows,
)
from bedplate.analysis.claims import ClaimsAnswer, Finding, findings_sentence
from bedplate.analysis.effects import FactorEffects, StudyEffects, interaction_sentences, strongest_sentence
from bedplate.analysis.mail import mail_text, measured_line
from bedplate.analysis.overview import CHOSEN, STOPPED_WHEN_TOLD, Overview, is_chosen
from bedplate.analysis.paired import answer_lines as answer_of_pairs
from bedplate.analysis.paired import looked
from bedplate.analysis.run_heads import writes
from bedplate.analysis.search import search_of
from bedplate.analysis.wording import confidence_words, figure, unit_words
from bedplate.model.device_cache import PROTECTED
from bedplate.model.metrics import METRICS
from bedplate.statistics.search import Ending

# More is in `bedplate show STUDY --advice`; nobody chooses among twenty.
CHOICES = 8

# By head, how the page colours it.
KINDS = {
    "Take": "good",
    "Safe": "good",
    "Unsafe": "bad",
    "Failed": "bad",
    "Less safe": "warn",
    "Doubtful": "warn",
    "Not yet": "warn",
    "Open": "warn",
    "But": "warn",
    "Next": "more",
}

_SEARCH_KINDS = {Ending.THIS: "good", Ending.ONE_OF: "good", Ending.NOT_KNOWN: "warn"}


_BADGES: Mapping[Standing | None, str] = {Standing.LEADING: "valid", Standing.OPEN: "suspect"}


@dataclass(frozen=True)
class HeadlinePoint:
    """What the headline says of one thing (`Take`, `Not`, …), with the lines to copy; `kind` is how it is coloured.

    `lines` stand in their order, each command behind the words that it is of: what a reader looks for (empty of a command, and where
    there is nothing of that kind), the rest, and whether it is to be copied.
    """

    head: str
    kind: str
    lines: tuple[tuple[str, str, bool], ...] = ()

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The words alone, each in its two parts."""
        return tuple((lead, rest) for lead, rest, copied in self.lines if not copied)

    @property
    def commands(self) -> tuple[str, ...]:
        """What is to be copied."""
        return tuple(text for _, text, copied in self.lines if copied)


@dataclass(frozen=True)
class Said:
    """A sentence, the words that it stands under, and the section of the page that bears it out."""

    about: str
    text: str
    section: str


@dataclass(frozen=True)
class ChosenFigure:
    """One figure of a cell: `24,310`, and `24,110–24,450` below it, an interval or else a range; empty where there is none."""

    value: str
    bounds: str
    has_interval: bool


@dataclass(frozen=True)
class CandidateCell:
    """A cell of a table.

    `same_as` are others that are the same in force; `standing` says what is shown of it, and `badge` is how that is coloured. `is_taken` is that of the one that
    the answer takes, and `beside` is its ratio to that one, or why it is not judged.
    """

    cell: str
    same_as: tuple[str, ...]
    standing: str
    is_taken: bool
    badge: str
    beside: str
    figures: tuple[ChosenFigure, ...]
    n: int


@dataclass(frozen=True)
class ContestAnswer:
    """The cells of one class of durability in one run, as the table of `bedplate show STUDY --advice` has them, the best first.

    `heads` are the names and units over the figures, `more` counts the cells that do not stand in `choices`, and `points` are what is said of the run
    where the answer only mentions it. `relative` is what the ratios are relative to, `confidence` that of their intervals.
    """

    run: str
    durability: str
    heads: tuple[tuple[str, str], ...]
    definitions: tuple[tuple[str, str], ...]
    relative: str
    confidence: str
    points: tuple[HeadlinePoint, ...]
    choices: tuple[CandidateCell, ...]
    more: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class CacheAnswer:
    """The tables for a device with that cache, as sentences name it."""

    cache: str
    contests: tuple[ContestAnswer, ...]

    @property
    def definitions(self) -> tuple[tuple[str, str], ...]:
        """What the figures are, of all tables."""
        return tuple(dict.fromkeys(each for contest in self.contests for each in contest.definitions))


@dataclass(frozen=True)
class StudyAnswer:
    """The answer of one study. `protected` is None where a protected cache puts no cell into another class.

    `measured` says what ran on what, and `mail` is the study in twelve lines and a table. `settings` are all that the cell to take was told, as lines of a configuration file.
    """

    title: str
    directory: str
    measured: str
    points: tuple[HeadlinePoint, ...]
    mail: str
    settings: tuple[str, ...]
    said: tuple[Said, ...]
    volatile: CacheAnswer
    protected: CacheAnswer | None


def study_answer(found: Overview, effects: StudyEffects, claims: ClaimsAnswer, number: int) -> StudyAnswer:
    """The answer of a study, the one of this number among those that the claims were judged on."""
    if is_chosen(found.study):
        return _of_a_search(found)
    if found.study.paired is not None:
        return _of_pairs(found)
    told = headline(found)
    protected = headline(found, advised(found, cache=PROTECTED))
    # Of power cuts the tables of durability have every kind of cache.
    tells_apart = protected.advice.classes != told.advice.classes and not told.cuts_first
    return StudyAnswer(
        title=found.study.facts.title,
        directory=found.study.directory.name,
        measured=measured_line(found),
        points=headline_points(headline_lines(told)),
        mail=mail_text(told, markdown=True),
        settings=_settings(told),
        said=tuple(_said(told.advice, effects, claims, number)),
        volatile=_cache_answer(told, first=1),
        protected=_cache_answer(protected, first=0) if tells_apart else None,
    )


def _of_a_search(found: Overview) -> StudyAnswer:
    """What a search says in place of advice, which would take the best of chosen means for the best."""
    search = search_of(found)
    first, *rest = headline_points(instead_lines(found))
    end = None if search is None else search.end
    kind = "warn" if end is None else _SEARCH_KINDS[end.ending]
    return _without_advice(found, (replace(first, kind=kind), *rest), CHOSEN)


def _of_pairs(found: Overview) -> StudyAnswer:
    """What a study of pairs says in place of advice: the change was asked about, and not which cell to take."""
    told = looked(found)
    first, *rest = (
        ("The answer is of all pairs; this page shows some of the cells.",)
        if told is None
        else answer_of_pairs(told)
    )
    points = [
        HeadlinePoint(
            "Change", "good" if told is not None and told.is_told else "warn", ((first, "", False),)
        )
    ]
    if rest:
        points.append(HeadlinePoint("Pairs", "", tuple(("", line.strip(), False) for line in rest)))
    return _without_advice(found, tuple(points), STOPPED_WHEN_TOLD)


def _without_advice(found: Overview, points: tuple[HeadlinePoint, ...], why: str) -> StudyAnswer:
    """The answer of a study of which there is no advice."""
    mail = "\n".join(text for point in points for lead, rest in point.texts for text in [f"{lead}{rest}"])
    points = (*points, HeadlinePoint("Advice", "", (("", f"{why}.", False),)))
    return StudyAnswer(
        title=found.study.facts.title,
        directory=found.study.directory.name,
        measured=measured_line(found),
        points=points,
        mail=mail,
        settings=(),
        said=(),
        volatile=CacheAnswer("", ()),
        protected=None,
    )


def headline_points(lines: Iterable[HeadlineLine]) -> tuple[HeadlinePoint, ...]:
    """The lines by what they are about: one without a head, or with that of the one above, goes with it."""
    points: list[HeadlinePoint] = []
    for line in lines:
        if not points or line.head not in ("", points[-1].head):
            points.append(HeadlinePoint(line.head, KINDS.get(line.head, "")))
        last = points[-1]
        parts = (line.lead, line.text.removeprefix(line.lead), line.copied)
        points[-1] = replace(last, lines=(*last.lines, parts))
    return tuple(points)


def _settings(told: Headline) -> tuple[str, ...]:
    found = told.answers[0].set_up if told.answers else None
    return () if found is None else tuple(f"{name} = {value}" for name, value in found.settings.items())


def _said(advice: Advised, effects: StudyEffects, claims: ClaimsAnswer, number: int) -> Iterable[Said]:
    """What matters, and what was borne out."""
    # Runs that write before the others: in them file systems differ.
    runs = sorted(advice.overview.runs, key=lambda run: not writes(advice.overview, run))
    told = [each for run in runs for each in effects.found if each.asked.run == run]
    strongest = [(each, words) for each in told if (words := strongest_sentence(each)) is not None]
    if strongest:
        yield Said(f"What matters, {strongest[0][0].asked.run[1]}", strongest[0][1], "effects")
    own = [one for file in claims.judged for one in file if one.study in (number, None)]
    if any(one.finding is not Finding.NOT_MEASURED for one in own):
        yield Said("Claims", findings_sentence(own), "claims")
    yield from islice(_interplay(told), 1)


def _interplay(told: Sequence[FactorEffects]) -> Iterable[Said]:
    for each in told:
        for part in each.parts[:1]:
            for words in interaction_sentences(part.interactions, METRICS[each.asked.metric])[:1]:
                yield Said(f"Together, {each.asked.run[1]}", words, "effects")


def _cache_answer(told: Headline, *, first: int) -> CacheAnswer:
    """The tables; of the answers from this one on with all that is said of their runs."""
    names = short_names(told.found)
    return CacheAnswer(
        cache=told.advice.cache_words,
        contests=tuple(
            _contest_answer(told.advice, contest, told.answer_of(contest), names, told.answers[:first])
            for contest in told.contests
        ),
    )


def _contest_answer(
    found: Advised,
    contest: Contest,
    answer: RunAnswer | None,
    names: Mapping[str, str],
    first: Sequence[RunAnswer],
) -> ContestAnswer:
    rows, left = table_rows(found, contest, answer, CHOICES)
    return ContestAnswer(
        run=contest.run[1],
        durability=contest.durability,
        heads=tuple((each.head, unit_words(each.metric)) for each in contest.objectives),
        definitions=tuple((each.head, each.metric.definition) for each in contest.objectives),
        relative=relative_words(answer),
        confidence=confidence_words([contest.confidences[0].difference]) if contest.can_judge else "",
        points=() if answer is None or answer in first else headline_points(run_lines(answer, names)),
        choices=tuple(_choice(found, contest, row, answer=answer, names=names) for row in rows),
        more=left,
        notes=contest_notes(found, contest, names, answer),
    )


def _choice(
    found: Advised,
    contest: Contest,
    ranked_cell: RankedCell,
    *,
    answer: RunAnswer | None,
    names: Mapping[str, str],
) -> CandidateCell:
    return CandidateCell(
        cell=names[ranked_cell.cell],
        same_as=tuple(names[other] for other in contest.same_as.get(ranked_cell.cell, ())),
        standing=standing_words(ranked_cell, answer, names),
        is_taken=answer is not None and answer.taken is not None and answer.taken.cell == ranked_cell.cell,
        badge=_BADGES.get(ranked_cell.standing, "unknown"),
        beside=ranked_cell.why_not or beside_words(ranked_cell, names),
        figures=tuple(
            _figure(found, contest, objective, ranked_cell.cell) for objective in contest.objectives
        ),
        n=found.summary(contest, contest.objectives[0], ranked_cell.cell).n,
    )


def _figure(found: Advised, contest: Contest, objective: Objective, cell: str) -> ChosenFigure:
    words = figure(found.summary(contest, objective, cell))
    return ChosenFigure(words.mean, words.between("–"), words.is_interval)
