"""The answer of a search in lines: the cells with what makes them, the proof, what mattered, what was left out, what more time would buy."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from bedplate.analysis.comparison.sentences import figure_words
from bedplate.analysis.factors import level_text, short_name
from bedplate.analysis.headline.set_up import set_up, settings_words
from bedplate.analysis.search.front import front_lines
from bedplate.analysis.search.matters import factors_that_matter
from bedplate.analysis.search.searched import stages
from bedplate.analysis.search.sentences import (
    bounded_words,
    chance_words,
    end_words,
    name,
    progress_document,
    progress_words,
    time_words,
)
from bedplate.analysis.search.words import accepted_words, doubted_words
from bedplate.analysis.wording import durability_told
from bedplate.model.search import MEASURED
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.search.course import CHANCE, Ending, SearchEnd
from bedplate.units import asked_percent, format_count, format_duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.analysis.search.matters import FactorMatter
    from bedplate.analysis.search.searched import Searched

# A factor is said to matter from here on; the rest is counted.
_MATTERS = 1.02
_SHOWN_MATTERS = 5
_SHOWN_REASONS = 4
_HOUR_S = 3600.0


def answer_lines(found: Searched) -> tuple[str, ...]:
    """All of it; where the search goes on still, where it is."""
    end = found.end
    if end is None or not (found.is_at_the_last_run or not end.cells):
        return (progress_words(found),)
    every = stages(found.overview)
    return (
        *(line for each in every for line in _stage_lines(each)),
        *front_lines(every),
        *_left_out_lines(found),
        *(f"  accepted     {words}" for words in filter(None, (accepted_words(found),))),
        *(f"  doubted      {words}" for each in every for words in doubted_words(each)),
        f"  time         {time_words(found)}, {format_count(len(found.tried), 'visit')} of {len({each.cell for each in found.tried})} of {len(found.cells)} cells",
        *(f"  more time    {line}" for line in more_time(found, end)),
    )


def answer_document(found: Searched) -> dict[str, Any]:
    """The same for a program: where it is, the cells that it names, and the lines."""
    return {
        "title": found.overview.study.facts.title,
        "search": progress_document(found),
        "answer": list(answer_lines(found)),
    }


def _stage_lines(found: Searched) -> Iterator[str]:
    """What was found of one run."""
    end = found.end
    if end is None:
        return
    if len(found.record.runs) > 1:
        yield f"{found.run[1]}:"
    yield end_words(found, end)
    for number in end.cells:
        yield from _cell_lines(found, end, number)
    yield from _as_good_lines(found, end)
    yield from _proof_lines(found, end)
    yield from _matter_lines(found)


def _cell_lines(found: Searched, end: SearchEnd, number: int) -> Iterator[str]:
    cell = found.id_of(number)
    yield f"  {name(found, number)}"
    if end.proof is not None and number in end.proof.doubtful:
        yield f"    its proof leaves open whether it is worse in {bounded_words(found)} than was allowed"
    facts = found.overview.cells.get(cell)
    if facts is not None:
        yield f"    after a power cut: {durability_told(facts)}{_cut_words(found, cell)}"
        made = set_up(found.overview, cell)
        for line in made.commands:
            yield f"    {line}"
        if made.settings:
            yield f"    {settings_words(made.settings)}"
        if made.further:
            yield f"    {', '.join(made.further)}"


def _as_good_lines(found: Searched, end: SearchEnd) -> Iterator[str]:
    """How many more cells would do as well: a named one has no rival that is better, but may have many that are as good."""
    named = {found.id_of(number) for number in end.cells}
    others = [
        each for each in found.cells if each.near >= CHANCE and each.id not in named and each.closed is None
    ]
    if others:
        first = max(others, key=lambda each: each.near).label.full
        count = f"{len(others)} more cells are" if len(others) > 1 else "1 more cell is"
        yield (
            f"  as good      {count} within {percent(found.question.margin)} of the best, each with a chance of {percent(CHANCE)} at least by "
            f"the model; the likeliest: {first}"
        )


def _cut_words(found: Searched, cell: str) -> str:
    if found.record.durable != MEASURED:
        return ""
    facts = found.overview.cells.get(cell)
    if facts is not None and facts.durability is not None and facts.durability.basis == "measured":
        return ""
    return "; its power was not cut to an end that measures"


def _proof_lines(found: Searched, end: SearchEnd) -> Iterator[str]:
    proof = end.proof
    for refuted in end.refuted:
        yield f"  refuted      a proof refuted {name(found, refuted)}, which the search had named"
    if proof is None:
        return
    of_another = proof.leader not in end.cells[:1]
    if of_another:
        yield f"  proof        of {name(found, proof.leader)}, which led when the last proof began"
    for number, comparison in proof.rivals.items():
        if proof.gain is not None and number == found.question.baseline:
            continue
        yield f"  proof        {name(found, number)} beside it: {figure_words(comparison)}"
    for asked, comparison in zip(found.record.not_worse, proof.kept, strict=False):
        yield (
            f"  not worse    {'its ' * of_another}{asked.metric} beside the plan's first cell: {figure_words(comparison)}; "
            f"{asked_percent(asked.share)} worse was allowed"
        )
    if proof.gain is not None and found.question.baseline is not None:
        yield (
            f"  gain         {'of that cell ' * of_another}over the plan's first cell, {name(found, found.question.baseline)}: {figure_words(proof.gain)}, "
            f"{format_count(proof.gain.n, 'repetition')} that took no part in the choice"
        )
    elif found.question.baseline is None:
        yield "  gain         not known: the plan's first cell is left out, so nothing is beside it"
    elif found.question.baseline == proof.leader:
        yield "  gain         none: it is the plan's first cell"
    if end.left_out is not None:
        yield (
            f"  outside      a cell outside of the proof is better by more than {percent(found.question.margin)} with a chance of "
            f"{chance_words(end.left_out)}, by the model"
        )


def _matter_lines(found: Searched) -> Iterator[str]:
    matters = factors_that_matter(found)
    strong = [each for each in matters if each.low > 1 and each.ratio >= _MATTERS]
    for each in strong[:_SHOWN_MATTERS]:
        yield f"  mattered     {matter_words(each)}"
    rest = [short_name(each.factor) for each in matters if each not in strong[:_SHOWN_MATTERS]]
    if rest:
        yield f"  less so      {', '.join(dict.fromkeys(rest))}"


def matter_words(each: FactorMatter) -> str:
    """`barrier: no is 1.9 times as good as yes (1.7 to 2.1), by the model`."""
    better, worse = (level_text(each.factor, level) for level in (each.better, each.worse))
    return (
        f"{short_name(each.factor)}: {better} is {each.ratio:.2f} times as good as {worse} "
        f"({each.low:.2f} to {each.high:.2f}), by the model"
    )


def _left_out_lines(found: Searched) -> Iterator[str]:
    reasons = Counter(each.closed.sentence for each in found.cells if each.closed is not None)
    for sentence, count in reasons.most_common(_SHOWN_REASONS):
        yield f"  left out     {count} cell{'s' * (count > 1)}: {sentence}"
    others = reasons.most_common()[_SHOWN_REASONS:]
    if others:
        yield f"  left out     {sum(count for _, count in others)} more, for {format_count(len(others), 'other reason')}"


def more_time(found: Searched, end: SearchEnd) -> tuple[str, ...]:
    """What another hour would buy, and the command that buys it."""
    if found.failed_alike:
        return ("nothing, until that is mended; then start a new search with another --study",)
    seconds = [
        found.entrants.space.seconds[number]
        for number in range(len(found.entrants.cells))
        if found.open[number]
    ]
    study = found.overview.study.directory
    if not seconds:
        return ("nothing: no cell is left to be visited",)
    if not end.cells:
        return (
            "nothing, until what speaks against the runs is mended; then start a new search with another --study",
        )
    visits = max(int(_HOUR_S * found.record.at_once // (sum(seconds) / len(seconds))), 0)
    hour = f"another hour is about {format_count(visits, 'visit')}"
    repetitions = found.overview.study.schedule.repetitions
    whole = repetitions * sum(found.entrants.space.seconds) / found.record.at_once
    factorial = (
        f"all cells in {format_count(repetitions, 'repetition')}, about {format_duration(whole)} less what was visited: "
        f"`bedplate extend {study} --repetitions {repetitions}`"
    )
    if found.record.extended is not None:
        return (hour,)
    if end.ending is Ending.NOT_KNOWN:
        least = _proof_seconds(found, end)
        minutes = math.ceil((found.spent_s + 2 * least) / found.record.at_once / 60)
        minutes = max(minutes, math.ceil(found.record.budget_s / 60) + 1)
        command = f"`bedplate search PLAN --study {study} --budget {minutes}min`"
        return (f"{hour}; a proof of the best guess takes {format_duration(least)}: {command}",)
    if end.ending is Ending.ONE_OF:
        each = sum(found.entrants.space.seconds[number] for number in end.cells)
        more = int(_HOUR_S * found.record.at_once // each)
        times = format_count(more, "more repetition")
        return (
            f"{hour}, {times} of these {len(end.cells)}; choose among them by another figure, or",
            factorial,
        )
    return (f"{hour}, and would change little: no rival is left", factorial)


def _proof_seconds(found: Searched, end: SearchEnd) -> float:
    """The least that a proof takes: the best guess, its nearest rival and the baseline, three times."""
    rivals = [] if found.lead is None else list(found.lead.rivals[:1])
    beside = [] if found.question.baseline is None else [found.question.baseline]
    cells = dict.fromkeys((end.cells[0], *rivals, *beside))
    return REPETITIONS_MIN * sum(found.entrants.space.seconds[number] for number in cells)
