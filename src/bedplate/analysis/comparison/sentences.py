"""Sentences about pooled pairs, as the terminal and the page write them."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.pooled import crossing_pairs, pooled_pairs, sides_of
from bedplate.analysis.factors import TYPE, level_text, short_name
from bedplate.analysis.wording import confidence_words, number, verdict_word, words_on_device
from bedplate.model.template import filled
from bedplate.statistics.comparison import EstimateKind
from bedplate.statistics.false_discovery import RATE
from bedplate.units import format_count, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bedplate.analysis.comparison.compared import Compared, ComparisonAnswer
    from bedplate.analysis.comparison.pooled import Dependence, LevelPair, NamedLevels, PooledPairs
    from bedplate.model.levels import Scalar
    from bedplate.statistics.comparison import Comparison

_DECIMALS = (2, 4)
# What the page's script says too.
POOLED = "{sides} over {n} matched pairs, {classes}: {figure}"
MIXED_CLASSES = (
    "of several durability classes ({classes}), which weighs speed against what a power cut leaves"
)
WITH_INTERVAL = "{estimate} ({low} to {high}): {verdict}"
WITHOUT_INTERVAL = "{estimate}, no interval: {reasons}"
PAIRS_DISAGREE = (
    "the pairs disagree beyond chance, so this is a mean over these pairs and not the ratio of each"
)
DEPENDS = "It depends on {factor}: {levels}; {level} beside {baseline} {figure}."
NO_FACTOR_TOLD = "On which factor it depends is not known. The pairs range from {least} to {greatest}."
PAIRS_RANGE = "The pairs range from {least} to {greatest}; that they disagree is not shown."
PAIRS_WITHOUT = "{n} more pair{s} of this kind {verb} no ratio to pool."
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
    """`xfs / ext4, durable: ×1.08 (1.05 to 1.11): faster; 18 pairs`; that these disagree comes before the figure."""
    sides = sides_words(each.contender, each.baseline, each.beside)
    pairs, told = format_count(len(each.pairs), "pair"), figure_words(each.comparison)
    words = f"{pairs} disagree: {told}" if each.disagree else f"{told}; {pairs}"
    return f"{sides}, {_classes_words(each)}: {words}"


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
        told.append(filled(PAIRS_WITHOUT, n=len(each.left_out), verb=verb))
    return tuple(told)


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


def ratio_words(comparison: Comparison) -> str:
    """The same without the verdict: `×1.08 (1.05 to 1.11)`; without an interval the estimate alone."""
    kind, estimate, low, high = comparison.kind, comparison.estimate, comparison.low, comparison.high
    if low is None or high is None or estimate is None:
        return estimate_words(kind, estimate, _DECIMALS[0])
    words = _interval_words(kind, estimate, low, high)
    return f"{words['estimate']} ({words['low']} to {words['high']})"


def estimate_words(kind: EstimateKind, value: float | None, decimals: int) -> str:
    """`×1.08`; a difference with its sign."""
    if value is None:
        return "–"
    if kind is EstimateKind.DIFFERENCE:
        return f"{value:+.{decimals}f}"
    return f"×{value:.{decimals}f}" if 0.01 <= value < 100 else f"×{number(value)}"


def _interval_words(kind: EstimateKind, estimate: float, low: float, high: float) -> dict[str, str]:
    half = (high - low) / 2
    least, most = _DECIMALS
    decimals = most if half <= 0 else min(most, max(least, math.ceil(-math.log10(half))))
    # A bound that leaves out equality is not written as equality, where a digit or two more tell the two apart.
    equal = 1.0 if kind is EstimateKind.RATIO else 0.0
    bound = low if low > equal else high
    while decimals < most and not low <= equal <= high and float(f"{bound:.{decimals}f}") == equal:
        decimals += 1
    words = [estimate_words(kind, each, decimals) for each in (estimate, low, high)]
    return {"estimate": words[0], "low": words[1].removeprefix("×"), "high": words[2].removeprefix("×")}


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
        for value in (strongest.estimate, strongest.low, strongest.high)
    )
    words = _interval_words(kind, estimate, low, high)
    return filled(
        DEPENDS,
        factor=short_name(each.factor),
        levels=", ".join(levels),
        level=level_text(each.factor, strongest.level),
        baseline=level_text(each.factor, strongest.baseline),
        figure=f"{words['estimate']} ({words['low']} to {words['high']})",
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
