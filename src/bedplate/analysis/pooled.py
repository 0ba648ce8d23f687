"""Matched pairs pooled: one ratio for what is compared, over all pairs of one durability class, and where they disagree.

Pairs go together that compare the same levels (xfs beside ext4), differ in nothing else, and keep the same of a power
cut. A factor that one side alone has (ext4's `data`) must be at its usual level, as in `effects`; pairs at an unusual one
are pooled by themselves, and their line names it. Pairs whose two sides are of two durability classes are in no line,
unless the question is asked across them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bedplate.analysis.cell_filter import STUDY
from bedplate.analysis.comparison import Compared, ComparedMetric, ComparisonAnswer
from bedplate.analysis.effects import ratio_family
from bedplate.analysis.labels import TYPE, level_rank, level_text, short_name, typed
from bedplate.analysis.overview import CellFacts
from bedplate.analysis.wording import (
    confidence_words,
    ends_words,
    number_words,
    safety,
    verdict_word,
    words_on_device,
)
from bedplate.model.course import filled
from bedplate.model.levels import Scalar
from bedplate.model.metrics import METRICS
from bedplate.statistics.comparison import (
    CONFIDENCE,
    DISAGREEMENT,
    Comparison,
    Confidence,
    EstimateKind,
    at_confidence,
    family_confidence,
    judged_apart,
    judged_together,
    of_estimate,
    taken_back,
)
from bedplate.statistics.contrast import Differences, LevelTable, is_named
from bedplate.statistics.design import factors_of
from bedplate.statistics.estimation import VALUES_MIN
from bedplate.statistics.false_discovery import RATE, discoveries, joint_confidence
from bedplate.units import format_count, percent

if TYPE_CHECKING:
    NamedLevels: TypeAlias = tuple[tuple[str, Scalar], ...]


@dataclass(frozen=True)
class LevelPair:
    """The ratio at one level of a factor beside that at another one, over pairs that are alike in all else.

    `at` and `against` are the two ratios, `comparison` is of the first / the second. Of a figure that is compared as a
    difference all are differences.
    """

    level: Scalar
    baseline: Scalar
    at: float | None
    against: float | None
    comparison: Comparison


@dataclass(frozen=True)
class Dependence:
    """What a factor does to the ratio. `levels` are level, mean over its pairs, number of pairs.

    `strongest` are the two levels that are surest to differ; None where no pairs of two levels are alike in all else.
    """

    factor: str
    levels: tuple[tuple[Scalar, float | None, int], ...]
    strongest: LevelPair | None

    @property
    def real(self) -> bool:
        """Whether the ratio depends on the factor, beyond chance."""
        return self.strongest is not None and self.strongest.comparison.differs


@dataclass(frozen=True)
class LineKind:
    """What pairs of one line are alike in: the levels in which the two sides differ, and unusual levels `beside`, of factors that one side alone has."""

    asked: ComparedMetric
    baseline: NamedLevels
    contender: NamedLevels
    beside: NamedLevels


@dataclass(frozen=True)
class PooledPairs(LineKind):
    """One line over matched pairs: `comparison` is the mean over these pairs, with its interval and verdict.

    `classes` are the durability classes, the baseline's and the contender's where a pair crosses, with
    the number of pairs: one, unless the question was asked across them. `pairs` are those behind the line, `left_out` those
    of the same kind without two repetitions to pool (identical, not comparable, stopped at a limit, missing).
    `p_disagreement` is the chance of pairs as far apart were they all alike; None where it cannot be told. `dependences`
    has each factor that varies over the pairs, those on which the ratio depends beyond chance first.
    """

    classes: tuple[tuple[tuple[str, ...], int], ...]
    comparison: Comparison
    pairs: tuple[Compared, ...]
    left_out: tuple[Compared, ...]
    p_disagreement: float | None
    dependences: tuple[Dependence, ...]

    @property
    def disagree(self) -> bool:
        """Whether pairs are further apart than chance puts them: the line is a mean, and not the ratio of each."""
        told = self.p_disagreement is not None and self.p_disagreement <= DISAGREEMENT
        return told or any(each.real for each in self.dependences)

    @property
    def crosses(self) -> bool:
        """Whether cells of several durability classes are in one line."""
        return len({name for names, _ in self.classes for name in names}) > 1


def pooled_pairs(*answers: ComparisonAnswer) -> tuple[PooledPairs, ...]:
    """The pooled lines of a comparison: of each figure the safest durability class first, then the most pairs.

    Two pairs at least make a line. Two levels of one factor over all matched cells of a class are what `effects` judges, and
    are of its family, whoever asks; the other lines of a question, or of several that are given together, are judged together
    (`statistics/comparison.py`). The levels that a line's ratio may depend on are a family. Where
    `question.across_durability` is set cells of all classes are in one line, and pairs that cross classes with them. k of n is
    in no line.
    """
    lines = [(found, line) for found in answers for line in _lines(found)]
    families = {at: family for at, (found, line) in enumerate(lines) if (family := _family_of(found, line))}
    others = [line for at, (_, line) in enumerate(lines) if at not in families]
    together = iter(judged_together([line.comparison for line in others], [line.asked for line in others]))
    judged = [
        judged_apart(line.comparison, difference=families[at].difference, sameness=families[at].sameness)
        if at in families
        else next(together)
        for at, (_, line) in enumerate(lines)
    ]
    order = list(dict.fromkeys(line.asked for _, line in lines))
    ranked = sorted(
        zip(lines, judged, strict=True),
        key=lambda each: (
            order.index(each[0][1].asked),
            min(safety(facts) for facts in sides_of(each[0][0], each[0][1].pairs[0])),
            bool(each[0][1].beside),
            -len(each[0][1].pairs),
        ),
    )
    return tuple(replace(line, comparison=comparison) for (_, line), comparison in ranked)


def _family_of(comparisons: ComparisonAnswer, line: PooledPairs) -> Confidence | None:
    """The confidence at which `effects` judges the same contrast; None where it has none."""
    studies = {side.study for each in line.pairs for side in (each.pair.baseline, each.pair.contender)}
    margin = line.comparison.margin
    if (
        len(studies) > 1
        or margin is None
        or line.comparison.basis is None
        or line.comparison.kind is not EstimateKind.RATIO
    ):
        return None
    sides = frozenset(
        frozenset(side.cell for side in own)
        for own in zip(*((each.pair.baseline, each.pair.contender) for each in line.pairs), strict=True)
    )
    family = ratio_family(comparisons.overviews[studies.pop()], line.asked, sides)
    return family_confidence(family, margin) if family else None


def _lines(found: ComparisonAnswer) -> Iterator[PooledPairs]:
    """Those of one question, not yet judged together."""
    groups: defaultdict[tuple[LineKind, tuple[str, ...], bool], list[Compared]] = defaultdict(list)
    for each in found.compared:
        classes = () if found.question.across_durability else _classes(found, each)
        if each.comparison.pooled is None and len(classes) < 2:
            groups[_kind(found, each), classes, each.pair.is_within_a_study].append(each)
    for (kind, *_), pairs in groups.items():
        if line := _line(found, kind, pairs):
            yield line


def crossing_pairs(found: ComparisonAnswer) -> tuple[Compared, ...]:
    """Those whose two sides are of two durability classes."""
    return tuple(each for each in found.compared if len(_classes(found, each)) > 1)


def sides_of(found: ComparisonAnswer, each: Compared) -> tuple[CellFacts, CellFacts]:
    """What is known of the baseline's cell and of the contender's."""
    baseline, contender = (
        found.overviews[side.study].cells[side.cell] for side in (each.pair.baseline, each.pair.contender)
    )
    return baseline, contender


def _kind(found: ComparisonAnswer, each: Compared) -> LineKind:
    sides = (each.pair.baseline, each.pair.contender)
    first, second = (each.pair.levels(side) for side in sides)
    named = found.selections[0].names | found.selections[1].names
    differing = {name for name in {*first, *second} if not _same(first, second, name)}
    compared = {name for name in differing if name == STUDY or is_named(name, named)}
    beside = {
        name: levels[name]
        for side, levels in zip(sides, (first, second), strict=True)
        for name in differing - compared
        if name in levels and name not in side.usual
    }
    before, after = (
        tuple((name, level) for name, level in levels.items() if name in compared)
        for levels in (first, second)
    )
    return LineKind(each.asked, before, after, tuple(beside.items()))


def _same(first: Mapping[str, Scalar], second: Mapping[str, Scalar], name: str) -> bool:
    return name in first and name in second and typed(first[name]) == typed(second[name])


def _classes(found: ComparisonAnswer, each: Compared) -> tuple[str, ...]:
    """The durability classes of a pair: one, or the baseline's and the contender's."""
    return tuple(dict.fromkeys(map(words_on_device, sides_of(found, each))))


def _line(found: ComparisonAnswer, kind: LineKind, every: Sequence[Compared]) -> PooledPairs | None:
    usable = [each for each in every if _is_usable(each)]
    if len(usable) < 2:
        return None
    differences = Differences.of(
        [each.comparison.differences for each in usable], list(map(_studies, usable))
    )
    p_value = differences.p_disagreement()
    disagree = p_value is not None and p_value <= DISAGREEMENT
    classes = Counter(_classes(found, each) for each in usable)
    return PooledPairs(
        **vars(kind),
        classes=tuple(classes.most_common()),
        comparison=of_estimate(
            METRICS[kind.asked.metric],
            differences.mean(),
            margin=found.question.margin,
            is_paired=usable[0].pair.is_within_a_study,
        ),
        pairs=tuple(usable),
        left_out=tuple(each for each in every if not _is_usable(each)),
        p_disagreement=p_value,
        dependences=tuple(_dependences(usable, differences, disagree=disagree)),
    )


def _is_usable(each: Compared) -> bool:
    differences = each.comparison.differences
    return (
        bool(differences)
        and not each.identical
        and not each.incomparable
        and all(len(own) >= VALUES_MIN for own in differences)
    )


def _studies(each: Compared) -> tuple[int, ...]:
    """Whose repetitions the differences of a pair are of."""
    return tuple(dict.fromkeys((each.pair.baseline.study, each.pair.contender.study)))


def _dependences(pairs: Sequence[Compared], differences: Differences, *, disagree: bool) -> list[Dependence]:
    """Every factor that varies over the pairs; their contrasts are judged together. `disagree` is what all pairs together say."""
    metric, kind = pairs[0].comparison.metric, pairs[0].comparison.kind
    keys = [_in_common(each) for each in pairs]
    factors = _factors([common for common, _ in keys])

    def mean_of(weights: Mapping[int, float]) -> float | None:
        return taken_back(kind, float(differences.mean(weights).mean))

    contrasts = {
        name: [
            LevelPair(
                level,
                baseline,
                mean_of(at),
                mean_of(against),
                of_estimate(
                    metric,
                    differences.mean({**at, **{pair: -weight for pair, weight in against.items()}}),
                    margin=None,
                ),
            )
            for level, baseline, at, against in level_contrasts(name, levels, keys, factors)
        ]
        for name, levels in factors.items()
    }
    judged = [
        p_value
        for own in contrasts.values()
        for each in own
        if (p_value := each.comparison.p_difference) is not None
    ]
    # What they depend on is looked for, as any verdict is, once it is shown that they disagree at all.
    alike = not disagree and not (judged and discoveries(judged, rate=DISAGREEMENT))
    confidence = (
        float(joint_confidence(judged, rate=DISAGREEMENT if alike else RATE)) if judged else CONFIDENCE
    )
    found = []
    for name, levels in factors.items():
        places = [
            [at for at, (common, _) in enumerate(keys) if _has(common, name, level)] for level in levels
        ]
        means = [mean_of(dict.fromkeys(own, 1 / len(own))) for own in places]
        strongest = min(contrasts[name], key=_doubt, default=None)
        if strongest is not None:
            strongest = replace(strongest, comparison=at_confidence(strongest.comparison, confidence))
        found.append(Dependence(name, tuple(zip(levels, means, map(len, places), strict=True)), strongest))
    return sorted(found, key=lambda each: 2.0 if each.strongest is None else _doubt(each.strongest))


def _in_common(each: Compared) -> tuple[Mapping[str, Scalar], frozenset[str]]:
    """The levels that both sides of a pair have, and which of them are what holds where nobody asks."""
    sides = (each.pair.baseline, each.pair.contender)
    first, second = (each.pair.levels(side) for side in sides)
    common = {name: level for name, level in first.items() if _same(first, second, name)}
    return common, sides[0].usual & sides[1].usual & common.keys()


def _factors(own: Sequence[Mapping[str, Scalar]]) -> dict[str, tuple[Scalar, ...]]:
    """The factors of several levels, in order; of those that divide the pairs alike the first."""
    found, _ = factors_of(own)
    return {name: tuple(sorted(levels, key=partial(level_rank, name))) for name, levels in found.items()}


def level_contrasts(
    name: str,
    levels: Sequence[Scalar],
    keys: Sequence[tuple[Mapping[str, Scalar], frozenset[str]]],
    factors: Collection[str],
) -> Iterator[tuple[Scalar, Scalar, dict[int, float], dict[int, float]]]:
    """Every two levels of a factor: level, baseline, and the weights of pairs at each, over pairs alike in all other factors.

    `keys` has of each pair the levels that both sides have, and which of them are usual: a factor at its usual level is the
    same as one that a pair has not, as in `effects`.
    """
    table = LevelTable.of([{name: each[name] for name in factors if name in each} for each, _ in keys])
    codes = np.array(table.codes)
    places = {factor: at for at, factor in enumerate(table.names)}
    for at, (_, usual) in enumerate(keys):
        codes[at, [places[one] for one in usual if one in places and one != name]] = -1
    of_levels = [
        np.array([at for at, (common, _) in enumerate(keys) if _has(common, name, level)]) for level in levels
    ]
    columns = [at for one, at in places.items() if one != name]
    for baseline, level in combinations(range(len(levels)), 2):
        sides = [of_levels[level], of_levels[baseline]]
        matched = replace(table, codes=codes).strata(sides, columns)
        if matched:
            weights = [
                {place: 1 / len(matched) / len(group[side]) for group in matched for place in group[side]}
                for side in (0, 1)
            ]
            yield levels[level], levels[baseline], weights[0], weights[1]


def _doubt(each: LevelPair) -> float:
    return 2.0 if each.comparison.p_difference is None else each.comparison.p_difference


def _has(levels: Mapping[str, Scalar], name: str, level: Scalar) -> bool:
    return name in levels and typed(levels[name]) == typed(level)


_DECIMALS = (2, 4)

# What the page's script says too.
IN_EVERY_REPETITION = "in every repetition"

POOLED = "{sides} over {n} matched pairs, {classes}: {figure}"

MIXED_CLASSES = (
    "of several durability classes ({classes}), which weighs speed against what a power cut leaves"
)

WITH_INTERVAL = "{estimate} ({bounds}): {verdict}"

WITHOUT_INTERVAL = "{estimate}, no interval: {reasons}"

PAIRS_DISAGREE = (
    "the pairs disagree beyond chance, so this is a mean over these pairs and not the ratio of each"
)

DEPENDS = "It depends on {factor}: {levels}; {level} beside {baseline} {figure}."

NO_FACTOR_TOLD = "On which factor it depends is not known. The pairs range from {least} to {greatest}."

PAIRS_RANGE = "The pairs range from {least} to {greatest}; that they disagree is not shown."

PAIRS_WITHOUT = "{n} more pair{s} of this kind {verb} no ratio to pool ({reasons})."

SAME_PAIR = "effectively the same"

INCOMPARABLE_PAIR = "not comparable"

STOPPED_PAIR = "a run was stopped at a limit"

PAIRS_CROSS = "{n} pair{s} cross{es} durability classes ({classes}) and {verb} in no pooled line. {way}"

ACROSS_OPTION = "`--across-durability` pools all."

ABOUT_POOLED = (
    f"A pooled line is a mean over its pairs, with repetitions as blocks. Of the pooled verdicts on one figure {percent(RATE)} are "
    "wrong on average; for that an interval that shows a difference has a confidence of {confidence}."
)


def pooled_lines(found: ComparisonAnswer) -> tuple[tuple[PooledPairs, tuple[str, ...]], ...]:
    """Each pooled line with its sentences: the line itself, then what its pairs disagree in."""
    return tuple((each, (pooled_line(each), *disagreement_sentences(each))) for each in pooled_pairs(found))


def pooled_line(each: PooledPairs) -> str:
    """`xfs / ext4 over 18 matched pairs, durable: ×1.08 (1.05 to 1.11): faster`, with what must be known of it."""
    line = filled(
        POOLED,
        sides=sides_words(each.contender, each.baseline, each.beside),
        n=len(each.pairs),
        classes=_classes_words(each),
        figure=figure_words(each.comparison),
    )
    return f"{line}; {PAIRS_DISAGREE}" if each.disagree else line


def pooled_in_short(each: PooledPairs) -> str:
    """`xfs / ext4, durable: ×1.08 (1.05 to 1.11): faster; 18 pairs`; of pairs that disagree how far they range, as no mean is true of all."""
    sides = sides_words(each.contender, each.baseline, each.beside)
    pairs, told = format_count(len(each.pairs), "pair"), figure_words(each.comparison)
    words = f"{told}; {pairs}"
    ends = [(one.comparison.estimate, one) for one in each.pairs if one.comparison.estimate is not None]
    if each.disagree and ends:
        (low, least), (high, most) = (end(ends, key=itemgetter(0)) for end in (min, max))
        span = f"from {_end_words(each, low, least)} to {_end_words(each, high, most)}"
        words = f"{pairs} disagree, {span}, so that no mean is said"
        if each.comparison.kind is EstimateKind.RATIO and (low > 1 or high < 1):
            words = f"{verdict_word(each.comparison)} in all {pairs}, {span}"
    return f"{sides}, {_classes_words(each)}: {words}"


def _end_words(each: PooledPairs, estimate: float, pair: Compared) -> str:
    """`×0.98 (db block 2 KiB)`: a pair by the levels in which the pairs of its line differ."""
    levels, _ = _in_common(pair)
    named = [
        f"{short_name(one.factor)} {level_text(one.factor, levels[one.factor])}"
        for one in each.dependences
        if one.factor in levels
    ]
    words = estimate_words(each.comparison.kind, estimate, 2)
    return f"{words} ({', '.join(named)})" if named else words


def disagreement_sentences(each: PooledPairs) -> tuple[str, ...]:
    """Which factors the ratio depends on, with the ratios; else how far the pairs range."""
    kind = each.comparison.kind
    told = [
        _depends(one, one.strongest, kind)
        for one in each.dependences
        if one.strongest is not None and one.real
    ]
    estimates = [one.comparison.estimate for one in each.pairs if one.comparison.estimate is not None]
    if not told and estimates and each.comparison.basis is not None:
        ends = (estimate_words(kind, end, 2) for end in (min(estimates), max(estimates)))
        template = NO_FACTOR_TOLD if each.disagree else PAIRS_RANGE
        told = [filled(template, least=next(ends), greatest=next(ends))]
    if each.left_out:
        verb = "has" if len(each.left_out) == 1 else "have"
        reasons = Counter(map(_why_left_out, each.left_out)).most_common()
        words = "; ".join(f"{n}: {why}" if len(reasons) > 1 else why for why, n in reasons)
        told.append(filled(PAIRS_WITHOUT, n=len(each.left_out), verb=verb, reasons=words))
    return tuple(told)


def _why_left_out(each: Compared) -> str:
    if each.identical or each.incomparable:
        return SAME_PAIR if each.identical else INCOMPARABLE_PAIR
    return "; ".join(each.comparison.reasons) or STOPPED_PAIR


def closing_pooled_sentences(found: ComparisonAnswer, lines: Sequence[PooledPairs]) -> tuple[str, ...]:
    """What holds of all pooled lines, and which pairs are in none because they cross durability classes."""
    known = [each.comparison.difference_confidence for each in lines]
    confidences = [each for each in known if each is not None]
    about = [filled(ABOUT_POOLED, confidence=confidence_words(confidences))] if confidences else []
    crossing = () if found.question.across_durability else crossing_pairs(found)
    return (*about, *_crossing_words(found, crossing))


def sides_words(contender: NamedLevels, baseline: NamedLevels, beside: NamedLevels = ()) -> str:
    """`xfs / ext4`, `barrier no / yes`; `xfs / ext4 with data journal` where one side alone has a factor."""
    names = [name for name, _ in contender]
    if len(names) == 1 and names == [name for name, _ in baseline] and names[0] != TYPE:
        sides = (
            f"{short_name(names[0])} {' / '.join(level_text(*levels[0]) for levels in (contender, baseline))}"
        )
    else:
        sides = " / ".join(" ".join(map(_level_words, levels)) or "–" for levels in (contender, baseline))
    return f"{sides} with {', '.join(map(_level_words, beside))}" if beside else sides


def figure_words(comparison: Comparison) -> str:
    """`×1.08 (1.05 to 1.11): faster`: no more digits than the interval bears."""
    kind, estimate, low, high = comparison.kind, comparison.estimate, comparison.low, comparison.high
    if low is None or high is None or estimate is None:
        words = estimate_words(kind, estimate, _DECIMALS[0])
        return filled(WITHOUT_INTERVAL, estimate=words, reasons="; ".join(comparison.reasons))
    return filled(
        WITH_INTERVAL, **_interval_words(kind, estimate, low, high), verdict=verdict_word(comparison)
    )


def ratio_words(comparison: Comparison, *, with_confidence: bool = True) -> str:
    """The same without the verdict: `×1.08 (1.05 to 1.11)`; without an interval the estimate alone.

    A confidence that is not 95 % is named, but where the place that shows it has one for all.
    """
    kind, estimate, low, high = comparison.kind, comparison.estimate, comparison.low, comparison.high
    if low is None or high is None or estimate is None:
        return estimate_words(kind, estimate, _DECIMALS[0])
    words = _interval_words(kind, estimate, low, high)
    confidence = (
        f", {confidence_words([comparison.confidence])}"
        if with_confidence and comparison.confidence != CONFIDENCE
        else ""
    )
    return f"{words['estimate']} ({words['bounds']}{confidence})"


def as_high_words(comparison: Comparison) -> str:
    """`2.1 times (1.9 to 2.3) that of`; `+0.03 (+0.01 to +0.05) beside`."""
    figures = ratio_words(comparison).removeprefix("×")
    if comparison.kind is not EstimateKind.RATIO:
        return f"{figures} beside"
    estimate, blank, bounds = figures.partition(" ")
    return f"{estimate} times{blank}{bounds} that of"


def estimate_words(kind: EstimateKind, value: float | None, decimals: int) -> str:
    """`×1.08`; a difference with its sign."""
    if value is None:
        return "–"
    if kind is EstimateKind.DIFFERENCE:
        return f"{value:+.{decimals}f}"
    return f"×{value:.{decimals}f}" if 0.01 <= value < 100 else f"×{number_words(value)}"


def _interval_words(kind: EstimateKind, estimate: float, low: float, high: float) -> dict[str, str]:
    half = (high - low) / 2
    least, most = _DECIMALS
    decimals = most if half <= 0 else min(most, max(least, math.ceil(-math.log10(half))))
    # A bound that leaves out equality is not written as equality, where a digit or two more tell the two apart.
    equal = 1.0 if kind is EstimateKind.RATIO else 0.0
    bound = low if low > equal else high
    while decimals < most and not low <= equal <= high and float(f"{bound:.{decimals}f}") == equal:
        decimals += 1
    if low == high == equal == 0:
        return {"estimate": "0", "bounds": IN_EVERY_REPETITION}
    bounds = ends_words(kind, low, high, lambda end: estimate_words(kind, end, decimals).removeprefix("×"))
    return {"estimate": estimate_words(kind, estimate, decimals), "bounds": bounds}


def _level_words(named: tuple[str, Scalar]) -> str:
    name, level = named
    words = level_text(name, level)
    return words if name == TYPE else f"{short_name(name)} {words}"


def _classes_words(each: PooledPairs) -> str:
    if not each.crosses:
        return each.classes[0][0][0]
    return filled(MIXED_CLASSES, classes=_counted_classes(each.classes))


def _counted_classes(classes: Iterable[tuple[tuple[str, ...], int]]) -> str:
    return ", ".join(f"{' beside '.join(reversed(names))}: {n}" for names, n in classes)


def _depends(each: Dependence, strongest: LevelPair, kind: EstimateKind) -> str:
    levels = [
        f"{estimate_words(kind, ratio, 2)} at {level_text(each.factor, level)}"
        for level, ratio, _ in each.levels
    ]
    estimate, low, high = (
        value if value is not None else math.inf
        for value in (strongest.comparison.estimate, strongest.comparison.low, strongest.comparison.high)
    )
    words = _interval_words(kind, estimate, low, high)
    return filled(
        DEPENDS,
        factor=short_name(each.factor),
        levels=", ".join(levels),
        level=level_text(each.factor, strongest.level),
        baseline=level_text(each.factor, strongest.baseline),
        figure=f"{words['estimate']} ({words['bounds']})",
    )


def _crossing_words(found: ComparisonAnswer, crossing: Sequence[Compared]) -> Iterator[str]:
    places = {
        (pair.baseline.study, pair.baseline.cell, pair.contender.study, pair.contender.cell): each
        for each in crossing
        for pair in [each.pair]
    }
    if not places:
        return
    classes = Counter(tuple(map(words_on_device, sides_of(found, each))) for each in places.values())
    n = len(places)
    yield filled(
        PAIRS_CROSS,
        n=n,
        es="es" if n == 1 else "",
        verb="is" if n == 1 else "are",
        classes=_counted_classes(classes.most_common()),
        way=ACROSS_OPTION,
    )
