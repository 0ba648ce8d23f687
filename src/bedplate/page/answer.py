"""The answer of a page: the headline that commands end with, what matters beside it, and all that the advice rests on.

Every sentence is one that a command says (`run`, `advise`, `effects`, `claims`); here is only chosen where it stands. So the
page never says more than the commands can bear out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from bedplate.analysis.advice import (
    VOLATILE,
    Advised,
    Contest,
    Objective,
    Run,
    Sentence,
    Standing,
    advised,
    cell_words,
    closing_sentences,
    contest_sentences,
    ranked_cells,
    standing_cells,
)
from bedplate.analysis.claims import ClaimsAnswer, Finding, findings_sentence
from bedplate.analysis.effects import FactorEffects, StudyEffects, interaction_sentences, strongest_sentence
from bedplate.analysis.headline import Headline, HeadlineLine, headline, headline_lines, instead_lines
from bedplate.analysis.mail import mail_text
from bedplate.analysis.overview import CHOSEN, STOPPED_WHEN_TOLD, Overview, is_chosen
from bedplate.analysis.paired import answer_lines as answer_of_pairs
from bedplate.analysis.paired import looked
from bedplate.analysis.run_heads import writes
from bedplate.analysis.search import search_of
from bedplate.analysis.wording import figure, unit_words
from bedplate.model.device_cache import PROTECTED
from bedplate.model.metrics import METRICS
from bedplate.statistics.search import Ending

# More is in `bedplate advise --json`; nobody chooses among twenty.
CHOICES = 6

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

_STANDINGS = {Standing.LEADING: "leads", Standing.OPEN: "open"}


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
    """A cell that may be chosen. `same_as` are others that are the same in force; `standing` is `leads` or `open`."""

    cell: str
    same_as: tuple[str, ...]
    standing: str
    figures: tuple[ChosenFigure, ...]
    n: int


@dataclass(frozen=True)
class ContestAnswer:
    """What to choose among the cells of one class of durability in one run; no `choices` where nothing can be judged.

    `heads` are the names and units over the figures, `behind` counts cells that are ruled out, `more` those that are
    not and do not stand in `choices`. `sentences` are all that `bedplate advise` says of it.
    """

    run: str
    durability: str
    heads: tuple[tuple[str, str], ...]
    definitions: tuple[tuple[str, str], ...]
    choices: tuple[CandidateCell, ...]
    cells: int
    more: int
    behind: int
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class CacheAnswer:
    """Advice for a device with that cache, as sentences name it.

    `unjudged` says why there is no recommendation, each reason once and behind the runs that it holds for.
    """

    cache: str
    contests: tuple[ContestAnswer, ...]
    unjudged: tuple[tuple[str, str], ...]
    unsafe: tuple[str, ...]
    unknown: tuple[str, ...]
    following: tuple[str, ...]
    limits: tuple[str, ...]

    @property
    def definitions(self) -> tuple[tuple[str, str], ...]:
        """What the figures are, of all contests."""
        judged = [contest for contest in self.contests if contest.choices]
        return tuple(dict.fromkeys(each for contest in judged for each in contest.definitions))


@dataclass(frozen=True)
class StudyAnswer:
    """The answer of one study. `protected` is None where a protected cache puts no cell into another class.

    `mail` is the study in ten lines and a table. `settings` are all that the cell to take was told, as lines of a configuration file.
    """

    title: str
    directory: str
    points: tuple[HeadlinePoint, ...]
    mail: str
    settings: tuple[str, ...]
    said: tuple[Said, ...]
    volatile: CacheAnswer
    protected: CacheAnswer | None


@dataclass(frozen=True)
class _Advice:
    """Advice with its sentences, which are made once: each contest with its own, and what closes them."""

    found: Advised
    contests: tuple[tuple[Contest, tuple[Sentence, ...]], ...]
    closing: tuple[Sentence, ...]


def _advice(found: Advised) -> _Advice:
    # Runs that write before the others: in them file systems differ.
    ordered = sorted(found.contests, key=lambda contest: not writes(found.overview, contest.run))
    told = tuple((contest, contest_sentences(found, contest)) for contest in ordered)
    return _Advice(found, told, closing_sentences(found))


def study_answer(found: Overview, effects: StudyEffects, claims: ClaimsAnswer, number: int) -> StudyAnswer:
    """The answer of a study, the one of this number among those that the claims were judged on."""
    if is_chosen(found.study):
        return _of_a_search(found)
    if found.study.paired is not None:
        return _of_pairs(found)
    volatile, protected = _advice(advised(found, cache=VOLATILE)), advised(found, cache=PROTECTED)
    told = headline(found, volatile.found)
    return StudyAnswer(
        title=found.study.facts.title,
        directory=found.study.directory.name,
        points=headline_points(headline_lines(told)),
        mail=mail_text(told, markdown=True),
        settings=_settings(told),
        said=tuple(_said(volatile, effects, claims, number)),
        volatile=_cache_answer(volatile, about_speed=not told.cuts_first),
        # Of power cuts the tables of durability have every kind of cache.
        protected=_cache_answer(_advice(protected), about_speed=True)
        if protected.classes != volatile.found.classes and not told.cuts_first
        else None,
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
    nothing = CacheAnswer("", (), (("Advice", f"{why}."),), (), (), (), ())
    return StudyAnswer(
        title=found.study.facts.title,
        directory=found.study.directory.name,
        points=points,
        mail=mail,
        settings=(),
        said=(),
        volatile=nothing,
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


def _said(advice: _Advice, effects: StudyEffects, claims: ClaimsAnswer, number: int) -> Iterable[Said]:
    """What matters, and what was borne out."""
    runs = [contest.run for contest, _ in _first_contests(advice)] or advice.found.overview.runs
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


def _first_contests(advice: _Advice) -> list[tuple[Contest, tuple[Sentence, ...]]]:
    """For each run the strictest class that can be judged, else the strictest; what can be judged before the rest."""
    by_run: dict[Run, tuple[Contest, tuple[Sentence, ...]]] = {}
    for contest, sentences in advice.contests:
        kept = by_run.get(contest.run)
        if kept is None or (contest.can_judge and not kept[0].can_judge):
            by_run[contest.run] = (contest, sentences)
    return sorted(by_run.values(), key=lambda each: not each[0].can_judge)


def _cache_answer(advice: _Advice, *, about_speed: bool) -> CacheAnswer:
    every = [each for _, sentences in advice.contests for each in sentences]
    has_contests = bool(advice.contests)
    return CacheAnswer(
        cache=advice.found.cache_words,
        contests=tuple(
            _contest_answer(advice.found, contest, sentences) for contest, sentences in advice.contests
        ),
        unjudged=_unjudged(advice) if about_speed else (),
        unsafe=_of_kind(advice.closing, "unsafe"),
        unknown=(
            *(_unchosen(advice) if about_speed else ()),
            *_of_kind((*advice.closing, *every), "unknown", "apart"),
        ),
        following=_of_kind((*every, *advice.closing), "next"),
        limits=_of_kind(advice.closing if has_contests else advice.closing[1:], "limits"),
    )


def _unchosen(advice: _Advice) -> Iterable[str]:
    """Where nothing is recommended, the first thing that is not known is what to choose."""
    for runs, _ in _unjudged(advice):
        where = f" in {runs}" if advice.contests else ""
        yield f"Which cell is the best{where}: nothing can be recommended; the reason is above."


def _unjudged(advice: _Advice) -> tuple[tuple[str, str], ...]:
    if not advice.contests:
        return (("Advice", advice.closing[0].text),)
    runs: dict[str, list[str]] = {}
    for contest, sentences in advice.contests:
        if not contest.can_judge:
            runs.setdefault(sentences[0].text, []).append(contest.run[1])
    return tuple((", ".join(names), text) for text, names in runs.items())


def _of_kind(sentences: Iterable[Sentence], *kinds: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.text for each in sentences if each.kind in kinds))


def _contest_answer(found: Advised, contest: Contest, sentences: Sequence[Sentence]) -> ContestAnswer:
    standing = {
        cell: words
        for kind, words in _STANDINGS.items()
        for cell in (standing_cells(contest, kind) if contest.can_judge else ())
    }
    ranked = [cell for cell in ranked_cells(found, contest, contest.objectives[0]) if cell in standing]
    # `sorted` keeps the order by speed within each standing.
    shown = sorted(ranked, key=lambda cell: standing[cell] != "leads")[:CHOICES]
    return ContestAnswer(
        run=contest.run[1],
        durability=contest.durability,
        heads=tuple((each.head, unit_words(each.metric)) for each in contest.objectives),
        definitions=tuple((each.head, each.metric.definition) for each in contest.objectives),
        choices=tuple(_choice(found, contest, cell, standing[cell]) for cell in shown),
        cells=len(contest.cells) + len(contest.left_out),
        more=len(ranked) - len(shown),
        behind=len(contest.cells) - len(standing) if contest.can_judge else 0,
        sentences=tuple(each.text for each in sentences),
    )


def _choice(found: Advised, contest: Contest, cell: str, standing: str) -> CandidateCell:
    figures = tuple(_figure(found, contest, objective, cell) for objective in contest.objectives)
    return CandidateCell(
        cell=cell_words(found.overview, cell),
        same_as=tuple(cell_words(found.overview, other) for other in contest.same_as.get(cell, ())),
        standing=standing,
        figures=figures,
        n=found.summary(contest, contest.objectives[0], cell).n,
    )


def _figure(found: Advised, contest: Contest, objective: Objective, cell: str) -> ChosenFigure:
    words = figure(found.summary(contest, objective, cell))
    return ChosenFigure(words.mean, words.between("–"), words.is_interval)
