"""The checks of a claim on one study: from matched cells to how sure it is that each holds (`statistics/claims.py`)."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from bedplate.analysis.cell_filter import Selection, select
from bedplate.analysis.claims.evidence import NothingMeasuredError, by_contender, mean_rows
from bedplate.analysis.claims.file import (
    PAIR,
    AlikeCheck,
    BestCheck,
    Bounded,
    InteractionCheck,
    OppositeCheck,
    RatioCheck,
    SpreadCheck,
    ValueCheck,
)
from bedplate.analysis.comparison.matching import matched
from bedplate.analysis.factors import level_text, typed
from bedplate.errors import PlanError
from bedplate.model.figure import Better
from bedplate.model.metrics import METRICS
from bedplate.model.template import filled
from bedplate.statistics.claims import (
    Mean,
    Witness,
    all_of,
    best_is_among,
    opposite,
    spread_within,
    within,
)
from bedplate.statistics.comparison import TOO_FEW_IN_COMMON
from bedplate.statistics.design import complete_part
from bedplate.statistics.estimation import REPETITIONS_MIN, of_differences
from bedplate.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.analysis.cell_filter import Candidate
    from bedplate.analysis.claims.evidence import CheckEvidence, Row
    from bedplate.analysis.comparison.matching import Pair
    from bedplate.model.levels import Scalar
    from bedplate.statistics.claims import Doubt
    from bedplate.statistics.estimation import Estimate, FloatArray


class TooFewError(NothingMeasuredError):
    """There are figures, and not enough of them to judge: `words` is the contrast, `mean` its estimate."""

    def __init__(self, reason: str, words: str = "", mean: float | None = None, n: int = 0) -> None:
        super().__init__(reason)
        self.words = words
        self.mean = mean
        self.n = n


def check_doubt(evidence: CheckEvidence) -> Doubt:
    """How sure the check is on these cells; NothingMeasuredError, or TooFewError, says why that cannot be said."""
    groups = _groups(evidence)
    doubts, reasons, silent = [], [], []
    for name, group in groups:
        try:
            doubts.append(_doubt(group, name))
        except NothingMeasuredError as error:
            reasons.append(error)
            silent.append(name)
    if doubts:
        evidence.tally.silent.update(dict.fromkeys(silent))
    else:
        few = [error for error in reasons if isinstance(error, TooFewError)]
        raise few[0] if few else reasons[0]
    return all_of(doubts)


def _doubt(evidence: CheckEvidence, group: str) -> Doubt:
    judges: tuple[tuple[type[Any], Callable[..., Doubt]], ...] = (
        (RatioCheck, _ratio),
        (ValueCheck, _value),
        (InteractionCheck, _interaction),
        (SpreadCheck, _spread),
        (OppositeCheck, _opposite),
        (BestCheck, _best),
        (AlikeCheck, _alike),
    )
    judge = next(judge for kind, judge in judges if isinstance(evidence.check, kind))
    return judge(evidence, evidence.check, group)


def bounds_of(check: Bounded) -> tuple[float | None, float | None]:
    """The bounds on the scale of the arithmetic."""
    found = [check.at_least, check.at_most]
    if check.is_ratio:
        return (
            None if found[0] is None else math.log(found[0]),
            None if found[1] is None else math.log(found[1]),
        )
    return found[0], found[1]


def _groups(evidence: CheckEvidence) -> list[tuple[str, CheckEvidence]]:
    """The cells at each level of the factor by which the check is made; all of them where there is none."""
    each = evidence.check.each
    if each is None or each == PAIR:
        return [("", evidence)]
    factor = evidence.factor(each)
    groups = [
        (level_text(factor, level), evidence.among(evidence.at(factor, level).cells))
        for level in evidence.levels(factor)
    ]
    if not groups:
        raise NothingMeasuredError(f"no cell with a figure has the factor {factor}")
    return groups


def _ratio(evidence: CheckEvidence, check: RatioCheck, group: str) -> Doubt:
    contender = evidence.select(check.contender)
    pairs = _pairs(evidence, _baseline(evidence, check.baseline, contender), contender)
    low, high = bounds_of(check)
    if check.each != PAIR:
        words = _named(group, f"{contender.text} beside {check.baseline or 'the others'}, {_counted(pairs)}")
        return within(words, _judgeable(words, [evidence.difference(pair) for pair in pairs]), low, high)
    return _each_pair(evidence, pairs, low, high)


def _each_pair(
    evidence: CheckEvidence, pairs: Sequence[Pair], low: float | None, high: float | None
) -> Doubt:
    doubts, few = [], []
    for pair in pairs:
        words = f"{pair.contender.labels[1]} beside {pair.baseline.labels[1]}"
        try:
            doubts.append(within(words, _judgeable(words, [evidence.difference(pair)]), low, high))
        except TooFewError as error:
            few.append(error)
    if not doubts:
        raise few[0]
    return all_of(doubts)


def _baseline(evidence: CheckEvidence, text: str | None, contender: Selection) -> Selection:
    if text is not None:
        return evidence.select(text)
    own = {cell.cell for cell in contender.cells}
    others = tuple(cell for cell in evidence.cells if cell.cell not in own)
    return Selection("the others", contender.names, others)


def _value(evidence: CheckEvidence, check: ValueCheck, group: str) -> Doubt:
    low, high = bounds_of(check)
    rows = [(cell, row) for cell in evidence.cells if (row := evidence.row(cell))]
    if not rows:
        raise NothingMeasuredError(f"no cell of {check.where or 'the study'} has a {check.metric}")
    if check.each == PAIR:
        return all_of(
            [within(cell.labels[1], _judgeable(cell.labels[1], [row]), low, high) for cell, row in rows]
        )
    words = _named(group, f"{check.where or 'all'}, {len(rows)} cell{'s' if len(rows) > 1 else ''}")
    return within(words, _judgeable(words, [row for _, row in rows]), low, high)


def _interaction(evidence: CheckEvidence, check: InteractionCheck, group: str) -> Doubt:
    sides = [evidence.select(text) for text in (check.against, check.at)]
    found = [_within_side(evidence, side, check.baseline, check.contender) for side in sides]
    contenders = [
        Selection(side.text, side.names, tuple(cell for cell in evidence.cells if cell.cell in rows))
        for side, rows in zip(sides, found, strict=True)
    ]
    rows = [
        _minus(found[1][pair.contender.cell], found[0][pair.baseline.cell])
        for pair in matched(*contenders).pairs
    ]
    words = _named(group, f"{check.contender} beside {check.baseline}, at {check.at} beside {check.against}")
    if not rows:
        raise NothingMeasuredError(f"no cells of {check.at!r} and {check.against!r} match")
    low, high = bounds_of(check)
    return within(words, _judgeable(words, rows), low, high)


def _opposite(evidence: CheckEvidence, check: OppositeCheck, group: str) -> Doubt:
    found = []
    for text in (check.at, check.against):
        words = _named(group, f"{check.contender} beside {check.baseline}, at {text}")
        rows = _within_side(evidence, evidence.select(text), check.baseline, check.contender)
        found.append((words, _judgeable(words, list(rows.values()))))
    return opposite(found[0], found[1])


def _within_side(
    evidence: CheckEvidence, side: Selection, baseline: str, contender: str
) -> Mapping[str, Row]:
    part = evidence.among(side.cells)
    return by_contender(part, _pairs(part, part.select(baseline), part.select(contender)))


def _spread(evidence: CheckEvidence, check: SpreadCheck, group: str) -> Doubt:
    factor = evidence.factor(check.factor)
    sides = _comparable(evidence, evidence.select(check.baseline), evidence.select(check.contender))
    free = frozenset({factor}).union(*(side.names for side in sides))
    strata = [_strata(evidence, side, factor, free) for side in sides]
    shared = [key for key in strata[0] if key in strata[1]]
    if not shared:
        raise NothingMeasuredError(
            f"no cells of {check.baseline!r} and {check.contender!r} match at two levels of {factor}"
        )
    levels = [
        level
        for level in evidence.levels(factor)
        if all(level in found[key] for found in strata for key in shared)
    ]
    words = _named(group, f"spread over {_listed(factor, levels)}, {check.contender} beside {check.baseline}")
    if len(levels) < 2:
        raise NothingMeasuredError(f"fewer than two levels of {factor} are there on both sides")
    rows = [found[key][level] for found in strata for key in shared for level in levels]
    repetitions, kept = complete_part(rows)
    if len(kept) < len(rows):
        repetitions = tuple(sorted(set.intersection(*map(set, rows))))
    if len(repetitions) < REPETITIONS_MIN:
        raise TooFewError(_too_few(len(repetitions)), words, n=len(repetitions))
    logs = np.array([[row[r] for r in repetitions] for row in rows])
    # Sides, strata, levels, repetitions: what each level is beside its stratum, over all strata.
    cube = logs.reshape(2, len(shared), len(levels), len(repetitions))
    effects = (cube - cube.mean(axis=2, keepdims=True)).mean(axis=1)
    # A spread is a ratio whatever the figure is.
    low, high = check.at_least, check.at_most
    return spread_within(words, effects[0].T, effects[1].T, low, high)


def _strata(
    evidence: CheckEvidence, side: Selection, factor: str, free: frozenset[str]
) -> dict[tuple[tuple[str, str], ...], dict[Scalar, Row]]:
    found: dict[tuple[tuple[str, str], ...], dict[Scalar, Row]] = {}
    for cell in side.cells:
        row = evidence.row(cell)
        if factor in cell.levels and row:
            key = tuple(
                sorted((name, repr(level)) for name, level in cell.levels.items() if name not in free)
            )
            found.setdefault(key, {})[cell.levels[factor]] = row
    return {key: rows for key, rows in found.items() if len(rows) > 1}


def _comparable(evidence: CheckEvidence, baseline: Selection, contender: Selection) -> list[Selection]:
    """The cells of both sides that have a partner which they may be held against."""
    pairs = _pairs(evidence, baseline, contender)
    kept = [{pair.baseline.cell for pair in pairs}, {pair.contender.cell for pair in pairs}]
    return [
        replace(side, cells=tuple(cell for cell in side.cells if cell.cell in own))
        for side, own in zip((baseline, contender), kept, strict=True)
    ]


def _best(evidence: CheckEvidence, check: BestCheck, group: str) -> Doubt:
    factor = evidence.factor(check.factor)
    levels = evidence.levels(factor)
    inside = [level for level in levels if _is_answer(evidence, check, factor, level)]
    outside = [level for level in levels if level not in inside]
    if not inside or not outside:
        there = _listed(factor, levels) or "none"
        wanted = check.best or f"that of {check.like}"
        raise NothingMeasuredError(
            f"the best {factor} is sought between {wanted} and others; measured: {there}"
        )
    names = {level: level_text(factor, level) for level in levels}
    sign = 1.0 if METRICS[check.metric].better is Better.HIGHER else -1.0
    better = {}
    for first in inside:
        for second in outside:
            witness, estimate = _levels_apart(evidence, factor, first, second, group)
            better[names[first], names[second]] = (witness, _turned(estimate, sign))
    return best_is_among([names[level] for level in inside], [names[level] for level in outside], better)


def _is_answer(evidence: CheckEvidence, check: BestCheck, factor: str, level: Scalar) -> bool:
    if check.like is not None:
        other = evidence.factor(check.like)
        return any(_is_about(level, cell.levels.get(other), check.about) for cell in evidence.cells)
    words = [word.strip() for word in (check.best or "").split(",")]
    answers = [cell.levels[factor] for word in words for cell in _cells_at(evidence, factor, word)]
    answers += [size for word in words if (size := _size(factor, word)) is not None]
    return any(_is_about(level, answer, check.about) for answer in answers)


def _cells_at(evidence: CheckEvidence, factor: str, text: str) -> tuple[Candidate, ...]:
    try:
        return select(shlex.quote(f"{factor}={text}"), evidence.cells).cells
    except PlanError:
        return ()


def _size(factor: str, text: str) -> int | None:
    """A size that no cell has may be about one that some have."""
    try:
        return parse_size(text) if factor.endswith("_bytes") else None
    except ValueError:
        return None


def _is_about(level: Scalar, answer: Scalar | None, about: float) -> bool:
    if answer is not None and typed(level) == typed(answer):
        return True
    numbers = [
        each for each in (level, answer) if isinstance(each, int | float) and not isinstance(each, bool)
    ]
    return len(numbers) == 2 and min(numbers) > 0 and max(numbers) / min(numbers) <= about


def _alike(evidence: CheckEvidence, check: AlikeCheck, group: str) -> Doubt:
    factor = evidence.factor(check.factor)
    levels = evidence.levels(factor)
    if len(levels) < 2:
        raise NothingMeasuredError(f"measured is one level of {factor} or none; alike are two or more")
    margin = math.log1p(check.margin) if check.is_ratio else check.margin
    doubts = []
    for first, second in combinations(levels, 2):
        words, values = _apart(evidence, factor, second, first, group)
        doubts.append(within(words, values, -margin, margin))
    return all_of(doubts)


def _levels_apart(
    evidence: CheckEvidence, factor: str, first: Scalar, second: Scalar, group: str
) -> tuple[Witness, Estimate]:
    words, values = _apart(evidence, factor, first, second, group)
    estimate = of_differences(values)
    return Witness(words, float(estimate.mean), Mean(estimate)), estimate


def _apart(
    evidence: CheckEvidence, factor: str, first: Scalar, second: Scalar, group: str
) -> tuple[str, FloatArray]:
    """The first level beside the second, over all cells that match."""
    pairs = _pairs(evidence, evidence.at(factor, second), evidence.at(factor, first))
    texts = (level_text(factor, first), level_text(factor, second))
    words = _named(group, f"{texts[0]} beside {texts[1]}, {_counted(pairs)}")
    return words, _judgeable(words, [evidence.difference(pair) for pair in pairs])


def _pairs(evidence: CheckEvidence, baseline: Selection, contender: Selection) -> tuple[Pair, ...]:
    found = evidence.pairs(baseline, contender)
    if found:
        return found
    left_out = "; ".join(f"{words}: {count}" for words, count in evidence.tally.left_out.items())
    if evidence.tally.pairs:
        raise TooFewError(f"none of the pairs may be judged ({left_out})")
    reason = f"no cells of {baseline.text!r} and {contender.text!r} with a {evidence.check.metric} match"
    raise NothingMeasuredError(f"{reason} ({left_out} left out)" if left_out else reason)


def _judgeable(words: str, rows: Sequence[Row]) -> FloatArray:
    values = mean_rows([row for row in rows if row])
    if len(values) < REPETITIONS_MIN:
        mean = float(values.mean()) if len(values) else None
        raise TooFewError(_too_few(len(values)), words, mean, len(values))
    return values


def _too_few(n: int) -> str:
    return filled(TOO_FEW_IN_COMMON, n=n)


def _minus(first: Row, second: Row) -> Row:
    return {r: first[r] - second[r] for r in first if r in second}


def _turned(estimate: Estimate, sign: float) -> Estimate:
    return replace(estimate, mean=sign * estimate.mean)


def _named(group: str, words: str) -> str:
    return f"{group}: {words}" if group else words


def _counted(pairs: Sequence[Pair]) -> str:
    return f"{len(pairs)} pair{'s' if len(pairs) != 1 else ''}"


def _listed(factor: str, levels: Sequence[Scalar]) -> str:
    return ", ".join(level_text(factor, level) for level in levels)
