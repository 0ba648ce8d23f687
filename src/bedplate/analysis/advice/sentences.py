"""Advice in sentences: what leads, what stands behind it, what cannot be told apart, what to measure next.

Each sentence names its cells and has the figures and intervals that bear it; nothing is said from point
estimates alone. Where there are too few repetitions for a verdict, there is no recommendation.
"""

from __future__ import annotations

from itertools import combinations, islice
from typing import TYPE_CHECKING

from bedplate.analysis.advice.advised import RECOMMENDED
from bedplate.analysis.advice.extending import extend_command, more_for_verdicts
from bedplate.analysis.advice.next_sentences import closing_next_sentences, next_sentences
from bedplate.analysis.advice.words import (
    SHOWN,
    ComparisonEvidence,
    Sentence,
    by_speed,
    cell_words,
    comparison_words,
    ranked_cells,
    rest_words,
    standing_cells,
)
from bedplate.analysis.power_cut_view import disagreement, speaking
from bedplate.analysis.run_heads import has_speeds
from bedplate.analysis.wording import WRONG_ON_AVERAGE, capital, confidence_words, figure
from bedplate.model.durability import CLASSES, UNKNOWN, UNSAFE
from bedplate.model.figure import Better
from bedplate.model.power_cut_verdict import TOO_FEW_FOR_MORE, counted_words, cut_words, too_few_words
from bedplate.model.template import filled
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.pareto import Standing, told_apart
from bedplate.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.analysis.advice.advised import Advised, Contest, Objective

_NEAREST = 2


def contest_sentences(found: Advised, contest: Contest) -> tuple[Sentence, ...]:
    """What holds among the cells of one class of durability in one run."""
    if not contest.can_judge:
        return (_too_few(found, contest), *next_sentences(found, contest))
    return (
        _leading(found, contest),
        *(_by_objective(found, contest, objective) for objective in contest.objectives),
        *_behind(found, contest, Standing.RULED_OUT),
        *_behind(found, contest, Standing.OPEN),
        *_not_told_apart(found, contest),
        *next_sentences(found, contest),
        *_incomparable(contest),
    )


def closing_sentences(found: Advised) -> tuple[Sentence, ...]:
    """What holds of the whole study: which runs are missing, what is unsafe and unknown, what bounds the advice."""
    sentences = [*closing_next_sentences(found), *_not_recommended(found), *_by_power_cuts(found)]
    if found.sectors:
        sentences.append(Sentence("limits", f"{capital(found.sectors)}."))
    if not found.contests:
        sentences.insert(0, _no_contest(found))
    if found.judged:
        own = [each.difference for contest in found.contests for each in contest.confidences]
        sentences.append(
            Sentence(
                "limits",
                f"{found.verdicts:,} of {format_count(found.judged, 'comparison')} can tell. "
                + filled(WRONG_ON_AVERAGE, confidence=confidence_words(own)),
            )
        )
    if found.without:
        names = ", ".join(run[1] for run in found.without)
        sentences.append(
            Sentence("limits", f"No advice on {names}: no figure of the whole run; see `bedplate compare`.")
        )
    sentences += [Sentence("limits", words) for words in found.overview.health.sentences()]
    return tuple(sentences)


def _leading(found: Advised, contest: Contest) -> Sentence:
    cells = tuple(by_speed(found, contest, standing_cells(contest, Standing.LEADING)))
    heads = ", ".join(objective.head for objective in contest.objectives)
    if not cells:
        return Sentence(
            "leading",
            f"No cell leads in {heads}: of each another is shown better in something and worse in nothing.",
        )
    first = contest.objectives[0]
    shown = "; ".join(
        f"{_named(found, contest, cell)} ({_figure_words(found, contest, first, cell)})"
        for cell in cells[:SHOWN]
    )
    verb = "leads" if len(cells) == 1 else "lead"
    return Sentence(
        "leading",
        f"{len(cells)} of {len(contest.cells)} cells that are {contest.durability} {verb}: {shown}{rest_words(cells)}. A cell leads "
        f"unless another is shown better in one of {heads} and worse in none.",
        cells,
    )


def _by_objective(found: Advised, contest: Contest, objective: Objective) -> Sentence:
    """The best mean, which is a point estimate, and which others can be told from it."""
    place = contest.objectives.index(objective)
    ranked = ranked_cells(found, contest, objective)
    if not ranked:
        return Sentence("figure", f"{objective.head}: no trusted value.")
    best = ranked[0]
    row = contest.cells.index(best)
    better, same = (verdicts[place, row] for verdicts in (contest.better, contest.same))
    others = {cell: contest.cells.index(cell) for cell in ranked[1:]}
    told = {
        "shown better than": [cell for cell, column in others.items() if better[column]],
        "the same as": [cell for cell, column in others.items() if same[column]],
        "not distinguished from": [
            cell
            for cell, column in others.items()
            if not better[column] and not same[column] and frozenset((best, cell)) not in contest.elsewhere
        ],
        "not compared with": [cell for cell in others if frozenset((best, cell)) in contest.elsewhere],
    }
    direction = "highest" if objective.metric.better is Better.HIGHER else "lowest"
    name, figure = _named(found, contest, best), _figure_words(found, contest, objective, best)
    words = [f"{objective.head}: the {direction} mean has {name} ({figure})"]
    evidence: list[ComparisonEvidence] = []
    for what, cells in told.items():
        if not cells:
            continue
        # The nearest are those that a reader would take instead.
        cited = [
            ComparisonEvidence(best, cell, found.comparison(contest, objective, best, cell))
            for cell in cells[:_NEAREST]
        ]
        evidence += cited
        listed = "; ".join(
            f"{cell_words(found.overview, each.contender)}, {comparison_words(objective, each.comparison)}"
            for each in cited
        )
        nearest = "nearest: " if len(cells) > _NEAREST else ""
        words.append(f"{what} {len(cells)} ({nearest}{listed})")
    return Sentence("figure", f"{'; '.join(words)}.", tuple(ranked), tuple(evidence))


def _behind(found: Advised, contest: Contest, standing: Standing) -> Iterable[Sentence]:
    cells = standing_cells(contest, standing)
    for cell in cells[:SHOWN]:
        row = contest.cells.index(cell)
        other = _first_by_speed(found, contest, [contest.cells[i] for i in contest.front.ahead[row]])
        told = [
            (objective, ComparisonEvidence(other, cell, found.comparison(contest, objective, other, cell)))
            for place, objective in enumerate(contest.objectives)
            if contest.better[place, contest.cells.index(other), row]
        ]
        untold = [
            objective.head
            for place, objective in enumerate(contest.objectives)
            if not (contest.better[place, :, row] | contest.same[place, :, row])[contest.cells.index(other)]
        ]
        listed = ", ".join(comparison_words(objective, each.comparison) for objective, each in told)
        name = cell_words(found.overview, cell)
        behind = cell_words(found.overview, other)
        if standing is Standing.RULED_OUT:
            rest = "; in the rest it is the same" if len(told) < len(contest.objectives) else ""
            text = f"{name} is ruled out by {behind}: {listed}{rest}."
        else:
            text = f"{name} is behind {behind}: {listed}; not known in {', '.join(untold)}."
        yield Sentence("behind", text, (cell, other), tuple(each for _, each in told))
    if len(cells) > SHOWN:
        words = "Ruled out" if standing is Standing.RULED_OUT else "Behind, not in everything known"
        yield Sentence("behind", f"{words} as well: {len(cells) - SHOWN} more.", cells[SHOWN:])


def _not_told_apart(found: Advised, contest: Contest) -> Iterable[Sentence]:
    """Pairs of the leading that no figure tells apart. It is said of pairs, since verdicts are no groups."""
    leading = standing_cells(contest, Standing.LEADING)
    apart = told_apart(contest.better)
    first = contest.objectives[0]
    pairs = [
        pair
        for pair in combinations(by_speed(found, contest, leading), 2)
        if not apart[contest.cells.index(pair[0]), contest.cells.index(pair[1])]
        and frozenset(pair) not in contest.elsewhere
    ]
    if not pairs:
        return
    evidence = [ComparisonEvidence(a, b, found.comparison(contest, first, a, b)) for a, b in pairs[:SHOWN]]
    listed = "; ".join(
        f"{cell_words(found.overview, each.contender)} beside {cell_words(found.overview, each.baseline)}: "
        f"{comparison_words(first, each.comparison)}"
        for each in evidence
    )
    yield Sentence(
        "apart",
        f"No figure tells these of the leading apart: {listed}{rest_words(pairs)}.",
        tuple(dict.fromkeys(cell for pair in pairs for cell in pair)),
        tuple(evidence),
    )


def _too_few(found: Advised, contest: Contest) -> Sentence:
    overview, alike = found.overview, sum(map(len, contest.same_as.values()))
    there = len(contest.cells) + alike + len(contest.left_out)
    if overview.repetitions < REPETITIONS_MIN and there > 1:
        more = more_for_verdicts(overview, (*contest.cells, *contest.left_out), contest.run)
        command = extend_command(overview, overview.study.schedule.repetitions + more)
        adds = "" if overview.study.facts.is_imported or not more else f" `{command}` adds them."
        return Sentence(
            "limits",
            f"{there} cells are {contest.durability}: descriptions and no recommendation, as a verdict needs "
            f"{REPETITIONS_MIN} repetitions and there are {overview.repetitions}.{adds}",
            (*contest.cells, *contest.left_out),
        )
    if there == 1:
        every = (*contest.cells, *contest.left_out)
        return Sentence("limits", f"One cell alone is {contest.durability}: no recommendation.", every)
    named = ", ".join(_named(found, contest, cell) for cell in contest.cells) or "none"
    return Sentence(
        "limits",
        f"Of {there} cells that are {contest.durability}, {len(contest.cells)} can be compared ({named}): no "
        "recommendation.",
        contest.cells,
    )


def _incomparable(contest: Contest) -> Iterable[Sentence]:
    if contest.incomparable:
        were, they = ("was", "it is") if contest.incomparable == 1 else ("were", "they are")
        yield Sentence(
            "limits",
            f"{format_count(contest.incomparable, 'pair')} of cells {were} measured in other surroundings, which no factor "
            f"explains; {they} not compared.",
        )


def _not_recommended(found: Advised) -> Iterable[Sentence]:
    for name in (UNSAFE, UNKNOWN):
        cells = tuple(cell for cell, own in found.classes.items() if own == name)
        if not cells:
            continue
        own = {
            cell: tuple(dict.fromkeys(reason.sentence for reason in promise.reasons))
            for cell in cells
            if (promise := found.overview.cells[cell].durability) is not None and promise.basis != "measured"
        }
        # What makes one of them so is not said of all.
        is_shared = len(set(own.values())) == 1
        reasons = next(iter(own.values())) if is_shared else ()
        names = "; ".join(
            f"{_with_its_cuts(found, cell)}{f' ({own[cell][0]})' if not is_shared and own.get(cell) else ''}"
            for cell in cells[:SHOWN]
        )
        what = (
            f"Unsafe with a {found.cache_words}"
            if name == UNSAFE
            else f"What a power cut leaves with a {found.cache_words} is unknown"
        )
        why = f" ({'; '.join(reasons[:2])})" if reasons else ""
        yield Sentence(name, f"{what}: {names}{rest_words(cells)}{why}.", cells)


def _with_its_cuts(found: Advised, cell: str) -> str:
    """A cell, and what was counted of its own cuts: a share is of one cell, while a declared reason holds for several."""
    facts, words = found.overview.cells[cell], cell_words(found.overview, cell)
    if facts.durability is None or facts.durability.basis != "measured":
        return words
    own_cuts = speaking([run for run in facts.cuts if run.measured], found.cache)
    counted = counted_words(own_cuts) if own_cuts.all.cuts else cut_words(own_cuts.drawn)
    # Why a class stands that the cuts alone would not give.
    why = (
        too_few_words(each.values)
        for each in facts.durability.reasons
        if each.code == TOO_FEW_FOR_MORE
        and (each.values["cache"], each.values["stands"]) == (found.cache, found.classes[cell])
    )
    return f"{words} ({'; '.join((counted, *islice(why, 1)))})"


def _by_power_cuts(found: Advised) -> Iterable[Sentence]:
    """Which classes are measured, each that flushes and settings declared otherwise, and each verdict that was refused."""
    cells = found.overview.cells
    yield from _refused_verdicts(found)
    measured = tuple(
        cell for cell, facts in cells.items() if facts.durability and facts.durability.basis == "measured"
    )
    if not measured:
        return
    rest = "; of the others it is declared" if len(measured) < len(cells) else ""
    yield Sentence(
        "limits",
        f"The class of {len(measured)} of {len(cells)} cells is measured by power cuts{rest}.",
        measured,
    )
    for cell in measured:
        facts = cells[cell]
        words = disagreement(facts.declared, facts.durability)
        if words is not None:
            yield Sentence("limits", f"{cell_words(found.overview, cell)}: {words}.", (cell,))


def _refused_verdicts(found: Advised) -> Iterable[Sentence]:
    """A class that is as declared though its power was cut, which nobody would take for a class without a doubt."""
    for cell, facts in found.overview.cells.items():
        refused = dict.fromkeys(str(reason) for run in facts.cuts for reason in run.verdict.refused)
        if not refused:
            continue
        is_measured = facts.durability is not None and facts.durability.basis == "measured"
        stands = "others of its recordings give its class" if is_measured else "its class is as declared"
        words = f"a verdict of its power cuts was refused, so that {stands}: {'; '.join(refused)}"
        yield Sentence("limits", f"{cell_words(found.overview, cell)}: {words}.", (cell,))


def _no_contest(found: Advised) -> Sentence:
    there = [name for name in CLASSES if name in found.classes.values()]
    if any(name in RECOMMENDED for name in there):
        lacking = "no run has a speed, or another figure of the whole run, yet"
        verdicts = "the runs have verdicts and no speed; what they found follows"
        return Sentence(
            "limits",
            f"Nothing is recommended: {lacking if has_speeds([found.overview]) else verdicts}.",
        )
    return Sentence(
        "limits",
        f"Nothing is recommended: with a {found.cache_words} no cell is {' or '.join(RECOMMENDED)}, all are "
        f"{' or '.join(there) or 'unmeasured'}. `--durability` asks about them all the same.",
    )


def _first_by_speed(found: Advised, contest: Contest, cells: Sequence[str]) -> str:
    return by_speed(found, contest, cells)[0]


def _figure_words(found: Advised, contest: Contest, objective: Objective, cell: str) -> str:
    summary = found.summary(contest, objective, cell)
    unit = f" {objective.metric.unit}" if objective.metric.unit not in ("1", "share") else ""
    words = figure(summary)
    bounds = f", {words.between('–')}{'' if words.is_interval else ' found'}" if words.low else ""
    return f"{words.mean}{unit}{bounds}, n {summary.n}"


def _named(found: Advised, contest: Contest, cell: str) -> str:
    others = contest.same_as.get(cell, ())
    alike = (
        f" (effectively the same as {', '.join(cell_words(found.overview, o) for o in others)})"
        if others
        else ""
    )
    return f"{cell_words(found.overview, cell)}{alike}"
