"""Advice in sentences: what leads, what stands behind it, what cannot be told apart, what to measure next.

Each sentence names its cells and has the figures and intervals that bear it; nothing is said from point
estimates alone. Where there are too few repetitions for a verdict, there is no recommendation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING

from bedplate.analysis.advice.advised import RECOMMENDED
from bedplate.analysis.advice.next_visits import next_visits
from bedplate.analysis.overview import Trouble
from bedplate.analysis.power_cut_view import disagreement, pooled
from bedplate.analysis.run_heads import has_speeds
from bedplate.analysis.wording import WRONG_ON_AVERAGE, block_words, capital, confidence_words, figure
from bedplate.model.durability import CLASSES, UNKNOWN, UNSAFE
from bedplate.model.figure import Better
from bedplate.model.power_cut_verdict import TOO_FEW_FOR_MORE, counted_words, cut_words, too_few_words
from bedplate.model.template import and_more, filled
from bedplate.statistics.comparison import CHANCE, MARGIN, REPETITIONS_MAX, Comparison, EstimateKind, Verdict
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.pareto import Standing, told_apart
from bedplate.units import format_duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.analysis.advice.advised import Advised, Contest, Objective
    from bedplate.analysis.overview import Overview

# More is in the document; a person stops reading lists.
_SHOWN = 4
_NEAREST = 2


@dataclass(frozen=True)
class ComparisonEvidence:
    """A comparison that a sentence rests on, of two cells by id."""

    baseline: str
    contender: str
    comparison: Comparison


@dataclass(frozen=True)
class Sentence:
    """`kind` says what it is about: leading, figure, behind, apart, next, unsafe, unknown, limits."""

    kind: str
    text: str
    cells: tuple[str, ...] = ()
    evidence: tuple[ComparisonEvidence, ...] = ()


def contest_sentences(found: Advised, contest: Contest) -> tuple[Sentence, ...]:
    """What holds among the cells of one class of durability in one run."""
    if not contest.can_judge:
        return (
            _too_few(found, contest),
            *_next_visits(found, contest),
            *_left_out(found, contest),
        )
    return (
        _leading(found, contest),
        *(_by_objective(found, contest, objective) for objective in contest.objectives),
        *_behind(found, contest, Standing.RULED_OUT),
        *_behind(found, contest, Standing.OPEN),
        *_not_told_apart(found, contest),
        *_more_repetitions(found, contest),
        *_left_out(found, contest),
    )


def closing_sentences(found: Advised) -> tuple[Sentence, ...]:
    """What holds of the whole study: which runs are missing, what is unsafe and unknown, what bounds the advice."""
    sentences = [*_missing(found.overview), *_not_recommended(found), *_by_power_cuts(found)]
    if found.sectors:
        sentences.append(Sentence("limits", f"{capital(found.sectors)}."))
    if not found.contests:
        sentences.insert(0, _no_contest(found))
    if found.judged:
        own = [each.difference for contest in found.contests for each in contest.confidences]
        sentences.append(
            Sentence(
                "limits",
                f"{found.verdicts:,} of {found.judged:,} comparisons can tell. "
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


def cell_words(found: Overview, cell: str) -> str:
    """A cell in a sentence: `ext4 barrier fs 4k db 8k`."""
    facts = found.cells[cell]
    return f"{facts.label.panel} {block_words(facts.label).replace(' · ', ' ')}"


def comparison_words(objective: Objective, comparison: Comparison) -> str:
    """`tps 1.20 times (1.15–1.25)`, `cv of tps +0.03 (+0.01 to +0.05)`; without an interval so said."""
    if comparison.estimate is None:
        return f"{objective.head} unknown"
    is_ratio = comparison.kind is EstimateKind.RATIO
    values = [
        "…" if value is None else f"{value:.3g}" if is_ratio else f"{value:+.2g}"
        for value in (comparison.estimate, comparison.low, comparison.high)
    ]
    if comparison.low is None and comparison.high is None:
        bounds = "no interval"
    else:
        bounds = f"{values[1]}–{values[2]}" if is_ratio else f"{values[1]} to {values[2]}"
    return f"{objective.head} {values[0]}{' times' if is_ratio else ''} ({bounds})"


def _leading(found: Advised, contest: Contest) -> Sentence:
    cells = tuple(_by_speed(found, contest, standing_cells(contest, Standing.LEADING)))
    heads = ", ".join(objective.head for objective in contest.objectives)
    if not cells:
        return Sentence(
            "leading",
            f"No cell leads in {heads}: of each another is shown better in something and worse in nothing.",
        )
    first = contest.objectives[0]
    shown = "; ".join(
        f"{_named(found, contest, cell)} ({_figure_words(found, contest, first, cell)})"
        for cell in cells[:_SHOWN]
    )
    verb = "leads" if len(cells) == 1 else "lead"
    return Sentence(
        "leading",
        f"{len(cells)} of {len(contest.cells)} cells that are {contest.durability} {verb}: {shown}{_rest(cells)}. A cell leads "
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
            cell for cell, column in others.items() if not better[column] and not same[column]
        ],
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
    for cell in cells[:_SHOWN]:
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
    if len(cells) > _SHOWN:
        words = "Ruled out" if standing is Standing.RULED_OUT else "Behind, not in everything known"
        yield Sentence("behind", f"{words} as well: {len(cells) - _SHOWN} more.", cells[_SHOWN:])


def _not_told_apart(found: Advised, contest: Contest) -> Iterable[Sentence]:
    """Pairs of the leading that no figure tells apart. It is said of pairs, since verdicts are no groups."""
    leading = standing_cells(contest, Standing.LEADING)
    apart = told_apart(contest.better)
    first = contest.objectives[0]
    pairs = [
        pair
        for pair in combinations(_by_speed(found, contest, leading), 2)
        if not apart[contest.cells.index(pair[0]), contest.cells.index(pair[1])]
    ]
    if not pairs:
        return
    evidence = [ComparisonEvidence(a, b, found.comparison(contest, first, a, b)) for a, b in pairs[:_SHOWN]]
    listed = "; ".join(
        f"{cell_words(found.overview, each.contender)} beside {cell_words(found.overview, each.baseline)}: "
        f"{comparison_words(first, each.comparison)}"
        for each in evidence
    )
    yield Sentence(
        "apart",
        f"No figure tells these of the leading apart: {listed}{_rest(pairs)}.",
        tuple(dict.fromkeys(cell for pair in pairs for cell in pair)),
        tuple(evidence),
    )


def _more_repetitions(found: Advised, contest: Contest) -> Iterable[Sentence]:
    """For the fastest of those that nothing rules out, beside the others: what would tell them apart in speed."""
    first = contest.objectives[0]
    cells = [
        cell for standing in (Standing.LEADING, Standing.OPEN) for cell in standing_cells(contest, standing)
    ]
    ranked = _by_speed(found, contest, cells)
    waiting = [
        each
        for other in ranked[1:]
        for each in [ComparisonEvidence(ranked[0], other, found.comparison(contest, first, ranked[0], other))]
        if each.comparison.verdict is Verdict.CANNOT_TELL and each.comparison.basis is not None
    ]
    counted = [
        (each.comparison.more_repetitions, each)
        for each in waiting
        if each.comparison.more_repetitions is not None
    ]
    counted.sort(key=lambda pair: pair[0])
    for more, each in counted[:_SHOWN]:
        yield Sentence(
            "next",
            f"{more} more repetitions would tell {cell_words(found.overview, each.contender)} from "
            f"{cell_words(found.overview, each.baseline)} in {first.head} with a chance of {percent(CHANCE)}, were "
            f"{comparison_words(first, each.comparison)} the truth: `bedplate extend STUDY --repetitions "
            f"{each.comparison.n + more}`.",
            (each.contender, each.baseline),
            (each,),
        )
    hopeless = [each for each in waiting if each.comparison.more_repetitions is None]
    if hopeless:
        names = "; ".join(
            f"{cell_words(found.overview, each.contender)} {comparison_words(first, each.comparison)}"
            for each in hopeless[:_SHOWN]
        )
        yield Sentence(
            "next",
            f"No number of repetitions up to {REPETITIONS_MAX} promises to tell these from "
            f"{cell_words(found.overview, ranked[0])} in {first.head}: {names}{_rest(hopeless)}. Longer runs, or a quieter "
            "machine, might.",
            tuple(each.contender for each in hopeless),
            tuple(hopeless),
        )


def _too_few(found: Advised, contest: Contest) -> Sentence:
    there = len(contest.cells) + len(contest.left_out)
    if found.overview.repetitions < REPETITIONS_MIN and there > 1:
        return Sentence(
            "limits",
            f"{there} cells are {contest.durability}: descriptions and no recommendation, as a verdict needs "
            f"{REPETITIONS_MIN} repetitions and there are {found.overview.repetitions}. `bedplate extend STUDY "
            "--repetitions 5` adds them.",
            (*contest.cells, *contest.left_out),
        )
    named = ", ".join(_named(found, contest, cell) for cell in contest.cells) or "none"
    return Sentence(
        "limits",
        f"Of {there} cells that are {contest.durability}, {len(contest.cells)} can be compared ({named}): no "
        "recommendation.",
        contest.cells,
    )


def _next_visits(found: Advised, contest: Contest) -> Iterable[Sentence]:
    """Which visits would tell most per hour, by the model of a search: no recommendation of a cell."""
    told = next_visits(found, contest)
    if told is None:
        return
    names = (
        f"{cell_words(found.overview, cell)} ({percent(chance)})" for cell, chance, _ in told.rivals[:_SHOWN]
    )
    cells = (told.leader, *(cell for cell, _, _ in told.rivals))
    seconds = told.seconds + sum(own for _, _, own in told.rivals)
    others = (
        f" These may be better by more than {percent(MARGIN)}, with that chance: {'; '.join(names)}{_rest(told.rivals)}."
        if told.rivals
        else ""
    )
    yield Sentence(
        "next",
        f"By a model of the factors, these visits would tell most per hour. {cell_words(found.overview, told.leader)} "
        f"is within {percent(MARGIN)} of the best of {told.among} cells in {contest.objectives[0].head} with a chance of "
        f"{percent(told.chance)}.{others} One visit of each takes {format_duration(seconds)}, one of all cells "
        f"{format_duration(told.all_seconds)}.",
        cells,
    )


def _left_out(found: Advised, contest: Contest) -> Iterable[Sentence]:
    if contest.left_out and found.overview.repetitions >= REPETITIONS_MIN:
        cells = tuple(contest.left_out)
        names = "; ".join(
            f"{cell_words(found.overview, cell)} ({contest.left_out[cell]})" for cell in cells[:_SHOWN]
        )
        yield Sentence("next", f"Not judged here, to be measured again: {names}{_rest(cells)}.", cells)
    if contest.incomparable:
        yield Sentence(
            "limits",
            f"{contest.incomparable} pairs of cells were measured in other surroundings, which no factor explains; "
            "they are not compared.",
        )


def _missing(found: Overview) -> Iterable[Sentence]:
    """Runs that were due and have no trusted figure, with the way to get them."""
    ways = {
        Trouble.FAILED: ("failed", "`bedplate run PLAN --study STUDY --retry-failed` does them again"),
        Trouble.NOT_RUN: ("have not been run", "`bedplate run PLAN --study STUDY` goes on"),
        Trouble.SUSPECT: ("are suspect and no part of this", "`bedplate show` says why"),
        Trouble.UNKNOWN: ("are of unknown validity and no part of this", "`bedplate show` says why"),
    }
    plain = [m for m in found.measurements if not m.canary and m.cell in found.cells]
    for trouble, (words, way) in ways.items():
        runs = [m for m in plain if m.trouble is trouble]
        if runs:
            cells = tuple(dict.fromkeys(m.cell for m in runs))
            names = "; ".join(cell_words(found, cell) for cell in cells[:_SHOWN])
            yield Sentence(
                "next", f"{len(runs)} of {len(plain)} runs {words}, of {names}{_rest(cells)}: {way}.", cells
            )


def _not_recommended(found: Advised) -> Iterable[Sentence]:
    for name in (UNSAFE, UNKNOWN):
        cells = tuple(cell for cell, own in found.classes.items() if own == name)
        if not cells:
            continue
        reasons = dict.fromkeys(
            reason.sentence
            for cell in cells
            if (promise := found.overview.cells[cell].durability) is not None and promise.basis != "measured"
            for reason in promise.reasons
        )
        names = "; ".join(_with_its_cuts(found, cell) for cell in cells[:_SHOWN])
        what = (
            f"Unsafe with a {found.cache_words}"
            if name == UNSAFE
            else f"What a power cut leaves with a {found.cache_words} is unknown"
        )
        why = f" ({'; '.join(list(reasons)[:2])})" if reasons else ""
        yield Sentence(name, f"{what}: {names}{_rest(cells)}{why}.", cells)


def _with_its_cuts(found: Advised, cell: str) -> str:
    """A cell, and what was counted of its own cuts: a share is of one cell, while a declared reason holds for several."""
    facts, words = found.overview.cells[cell], cell_words(found.overview, cell)
    if facts.durability is None or facts.durability.basis != "measured":
        return words
    own_cuts = pooled([run for run in facts.cuts if run.measured], found.cache)
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


def standing_cells(contest: Contest, standing: Standing) -> tuple[str, ...]:
    """The cells of one standing, in the order of the schedule."""
    return tuple(
        cell for cell, own in zip(contest.cells, contest.front.standings, strict=True) if own is standing
    )


def ranked_cells(found: Advised, contest: Contest, objective: Objective) -> list[str]:
    """Cells by their geometric mean or mean, the best first; those without a trusted value are left out."""
    sign = -1 if objective.metric.better is Better.HIGHER else 1
    centres = {cell: found.summary(contest, objective, cell).centre for cell in contest.cells}
    known = {cell: centre for cell, centre in centres.items() if centre is not None}
    return sorted(known, key=lambda cell: sign * known[cell])


def _by_speed(found: Advised, contest: Contest, cells: Sequence[str]) -> list[str]:
    return [cell for cell in ranked_cells(found, contest, contest.objectives[0]) if cell in cells]


def _first_by_speed(found: Advised, contest: Contest, cells: Sequence[str]) -> str:
    return _by_speed(found, contest, cells)[0]


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


def _rest(cells: Sequence[object]) -> str:
    return and_more(len(cells), _SHOWN)
