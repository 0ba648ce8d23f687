"""What to measure next, in sentences: which visits would tell most per hour, the command that makes them, or why none would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.advice.advised import RECOMMENDED
from bedplate.analysis.advice.extending import (
    about_words,
    extend_command,
    more_for_verdicts,
    seconds_of_a_repetition,
    study_directory,
)
from bedplate.analysis.advice.next_visits import next_visits, open_cells
from bedplate.analysis.advice.words import (
    SHOWN,
    ComparisonEvidence,
    Sentence,
    by_speed,
    cell_words,
    comparison_words,
    rest_words,
)
from bedplate.analysis.overview import Trouble
from bedplate.analysis.run_heads import has_speeds
from bedplate.analysis.search.sentences import chance_words
from bedplate.installation import COMMAND
from bedplate.statistics.comparison import CHANCE, MARGIN, REPETITIONS_MAX, Verdict
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.units import format_count, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.analysis.advice.advised import Advised, Contest
    from bedplate.analysis.overview import Overview

_IMPORTED = "Nothing: these are published runs, to which none can be added."


def next_sentences(found: Advised, contest: Contest) -> Iterable[Sentence]:
    """Of the cells of one class of durability in one run; to runs that others published nothing is added."""
    is_imported = found.overview.study.facts.is_imported
    if not is_imported:
        yield from _visits(found, contest)
    if contest.left_out and found.overview.repetitions >= REPETITIONS_MIN:
        left_out = tuple(contest.left_out)
        names = "; ".join(
            f"{cell_words(found.overview, cell)} ({contest.left_out[cell]})" for cell in left_out[:SHOWN]
        )
        kind, again = ("limits", "") if is_imported else ("next", ", to be measured again")
        yield Sentence(kind, f"Not judged here{again}: {names}{rest_words(left_out)}.", left_out)


def closing_next_sentences(found: Advised) -> Iterable[Sentence]:
    """Of the whole study: runs that are missing, and where no cells compete what would tell more."""
    overview = found.overview
    if overview.study.facts.is_imported:
        yield Sentence("next", _IMPORTED)
        return
    missing = tuple(_missing(overview))
    yield from missing
    if found.contests or missing:
        return
    if not has_speeds([overview]):
        command = extend_command(overview, overview.study.schedule.repetitions + 1)
        words = f"More repetitions bound closer what was counted.{_makes(overview, 1, command)}"
        yield Sentence("next", words, command=command)
    elif any(name in RECOMMENDED for name in found.classes.values()):
        yield Sentence(
            "next",
            "No visit is known to help: the runs have no figure of the whole run; `bedplate show` says why.",
        )
    else:
        asked = f"{COMMAND} advise {study_directory(overview)} --durability"
        ways = " or ".join(f"`{asked} {name!r}`" for name in dict.fromkeys(found.classes.values()))
        yield Sentence(
            "next",
            f"No visit gives a cell another class. {ways} says which visits would tell most of the speed.",
        )


def _visits(found: Advised, contest: Contest) -> Iterable[Sentence]:
    cells = open_cells(found.overview, contest)
    untold = _not_told(found, contest, cells)
    if len(cells) < 2:
        yield Sentence("next", f"{_no_visit(contest)}: {_why_alone(contest)}.", cells)
    elif contest.can_judge and not (untold or contest.left_out or contest.incomparable):
        yield _settled(found, contest, cells)
    else:
        pairs = [each for each in untold if each.comparison.basis is not None]
        yield _most_per_hour(found, contest, has_pairs=bool(pairs))
        yield from _more_repetitions(found, contest, pairs)


def _not_told(found: Advised, contest: Contest, cells: Sequence[str]) -> tuple[ComparisonEvidence, ...]:
    """The fastest of those that nothing rules out, beside each other one from which it is not told in speed."""
    first, ranked = contest.objectives[0], by_speed(found, contest, cells)
    beside = (
        ComparisonEvidence(ranked[0], other, found.comparison(contest, first, ranked[0], other))
        for other in ranked[1:]
    )
    return tuple(each for each in beside if each.comparison.verdict is Verdict.CANNOT_TELL)


def _settled(found: Advised, contest: Contest, cells: Sequence[str]) -> Sentence:
    fastest, *others = by_speed(found, contest, cells)
    shown = f"is shown better than {'the other' if len(others) == 1 else f'each of {len(others)} others'} that nothing rules out"
    return Sentence(
        "next",
        f"{_no_visit(contest)}: {cell_words(found.overview, fastest)} {shown}, or the same within {percent(MARGIN)}.",
        (fastest, *others),
    )


def _most_per_hour(found: Advised, contest: Contest, *, has_pairs: bool) -> Sentence:
    """By the model of a search, which recommends no cell."""
    overview, told = found.overview, next_visits(found, contest)
    there = overview.study.schedule.repetitions
    cells = (*contest.cells, *contest.left_out)
    more = 1 if contest.can_judge else more_for_verdicts(overview, cells, contest.run)
    # Pairs say themselves how many more would tell them apart; what was doubted often would be doubted once more.
    is_enough = has_pairs or (isinstance(told, str) and there >= REPETITIONS_MIN)
    command = "" if is_enough or not more else extend_command(overview, there + more)
    makes = _makes(overview, more, command)
    if isinstance(told, str):
        return Sentence(
            "next",
            f"Which visits would tell most per hour in {_what(contest)} is not known: {told}.{makes}",
            command=command,
        )
    near = (
        f"By a model of the factors, {cell_words(overview, told.leader)} is within {percent(MARGIN)} of the best of {told.among} cells "
        f"in {_what(contest)} with a chance of {chance_words(told.chance)}."
    )
    if told.rivals:
        names = "; ".join(
            f"{cell_words(overview, cell)} ({chance_words(chance)})"
            for cell, chance, _ in told.rivals[:SHOWN]
        )
        words = (
            f"{near} These may be better by more than {percent(MARGIN)}, with that chance: {names}{rest_words(told.rivals)}. Visits of "
            f"these and of it would tell most per hour, in this order; one of each takes about {about_words(told.seconds)}.{makes}"
        )
    else:
        words = f"{near} More visits are unlikely to name another by more than that.{makes}"
    return Sentence("next", words, told.cells, visits=told, command=command)


def _more_repetitions(
    found: Advised, contest: Contest, pairs: Sequence[ComparisonEvidence]
) -> Iterable[Sentence]:
    """What would tell the fastest from each cell that it is not told from."""
    overview, first = found.overview, contest.objectives[0]
    counted = sorted(
        ((more, each) for each in pairs if (more := each.comparison.more_repetitions) is not None),
        key=lambda pair: pair[0],
    )
    if counted:
        least = counted[0][0]
        command = extend_command(overview, overview.study.schedule.repetitions + least)
        names = "; ".join(
            f"{cell_words(overview, each.contender)} by {more}, {comparison_words(first, each.comparison)}"
            for more, each in counted[:SHOWN]
        )
        shown = tuple(each for _, each in counted[:SHOWN])
        yield Sentence(
            "next",
            f"More repetitions would tell these from {cell_words(overview, pairs[0].baseline)} in {_what(contest)} with a chance of "
            f"{percent(CHANCE)}, were what was found the truth: {names}{rest_words(counted)}.{_makes(overview, least, command)}",
            (pairs[0].baseline, *(each.contender for _, each in counted)),
            shown,
            command=command,
        )
    hopeless = [each for each in pairs if each.comparison.more_repetitions is None]
    if hopeless:
        names = "; ".join(
            f"{cell_words(overview, each.contender)} {comparison_words(first, each.comparison)}"
            for each in hopeless[:SHOWN]
        )
        yield Sentence(
            "next",
            f"No number of repetitions up to {REPETITIONS_MAX} promises to tell these from "
            f"{cell_words(overview, pairs[0].baseline)} in {_what(contest)}: {names}{rest_words(hopeless)}. Longer runs, or a quieter "
            "machine, might.",
            (pairs[0].baseline, *(each.contender for each in hopeless)),
            tuple(hopeless),
        )


def _what(contest: Contest) -> str:
    return f"{contest.objectives[0].head} of {contest.run[1]}"


def _no_visit(contest: Contest) -> str:
    return f"No visit would decide more in {_what(contest)}"


def _why_alone(contest: Contest) -> str:
    if contest.can_judge:
        return "every other cell is ruled out"
    if contest.stopped:
        return "runs of the others were stopped at a limit, which `bedplate compare` judges"
    if len(contest.cells) + len(contest.left_out) > 1 or any(contest.same_as.values()):
        return "all cells are effectively the same"
    return f"no other cell is {contest.durability}"


def _makes(found: Overview, more: int, command: str) -> str:
    """What a command adds, and how long it takes; empty without one. It visits every cell: complete blocks alone are compared."""
    if not command:
        return ""
    seconds = seconds_of_a_repetition(found)
    takes = "" if seconds is None else f", about {about_words(more * seconds)}"
    return f" `{command}` adds {format_count(more, 'repetition')} of every cell{takes}."


def _missing(found: Overview) -> Iterable[Sentence]:
    """Runs that were due and have no trusted figure, with the way to get them."""
    go_on = extend_command(found, found.study.schedule.repetitions)
    ways = {
        Trouble.FAILED: ("", "failed", f"`{go_on} --retry-failed` tries again"),
        Trouble.NOT_RUN: ("have ", "not been run", f"`{go_on}` goes on"),
        Trouble.SUSPECT: ("are ", "suspect and no part of this", "`bedplate show` says why"),
        Trouble.UNKNOWN: ("are ", "of unknown validity and no part of this", "`bedplate show` says why"),
    }
    of_one = {"are ": "is ", "have ": "has "}
    plain = [m for m in found.measurements if not m.canary and m.cell in found.cells]
    for trouble, (verb, what, way) in ways.items():
        runs = [m for m in plain if m.trouble is trouble]
        if runs:
            cells = tuple(dict.fromkeys(m.cell for m in runs))
            names = "; ".join(cell_words(found, cell) for cell in cells[:SHOWN])
            words = f"{of_one.get(verb, verb) if len(runs) == 1 else verb}{what}"
            yield Sentence(
                "next",
                f"{len(runs)} of {len(plain)} runs {words}, of {names}{rest_words(cells)}: {way}.",
                cells,
            )
