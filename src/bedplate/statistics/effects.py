"""Effects of factors: ratios between their levels, and what one factor changes about another.

Every effect is a contrast of matched cells (`design`) that is made once per repetition; Student's t over
the repetitions judges it. So neither drift between repetitions nor unequal variances of cells matter,
and whatever a repetition did to all cells of one level (a boot of one kernel, DESIGN.md section 5) counts as
scatter of the effect, which a residual variance over all cells would miss. Contrasts are means over many
cells, which makes up for the few degrees of freedom.

Factors that a single file system has are judged within it; all others over every cell that has them. The
marginal ratios of one part of the design are one family of comparisons, its interactions another
(`false_discovery`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bedplate.statistics.design import Contrast, Design, DesignCell, design
from bedplate.statistics.estimation import REPETITIONS_MIN, Estimate, of_differences
from bedplate.statistics.false_discovery import RATE, joint_confidence
from bedplate.statistics.variation import Variation, variation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.model.levels import Scalar

FILESYSTEM = "filesystem.type"


@dataclass(frozen=True)
class Judged:
    """A ratio with its interval at the family's confidence; None bounds with fewer than three repetitions."""

    ratio: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None

    @property
    def real(self) -> bool:
        """True where the interval leaves out 1."""
        return (self.low is not None and self.low > 1) or (self.high is not None and self.high < 1)


@dataclass(frozen=True)
class Effect:
    """Level / baseline of one factor, all else equal, over `strata` groups of matched cells."""

    factor: str
    level: Scalar
    baseline: Scalar
    judged: Judged
    strata: int
    averaged_over: tuple[str, ...]


@dataclass(frozen=True)
class Interaction:
    """How much larger level / baseline of `factor` is where `by` is `at` than where it is `against`.

    `ratio_at` and `ratio_against` are the two ratios, `judged` is the first / the second.
    """

    factor: str
    level: Scalar
    baseline: Scalar
    by: str
    at: Scalar
    against: Scalar
    ratio_at: float
    ratio_against: float
    judged: Judged
    strata: int
    averaged_over: tuple[str, ...]


@dataclass(frozen=True)
class Effects:
    """What the factors do to one metric in one part of the design, `within` a level or everywhere (None).

    `cells` and `repetitions` are those that count, `left_out` the cells that lack one of the repetitions,
    `aliases` factors that repeat another one, `unmatched` factors of which no two levels have matched cells.
    The two confidences are those of the intervals of each family.
    """

    within: tuple[str, Scalar] | None
    cells: int
    repetitions: tuple[int, ...]
    left_out: int
    aliases: tuple[tuple[str, str], ...]
    unmatched: tuple[str, ...]
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    variation: Variation | None
    effects_confidence: float
    interactions_confidence: float


def effects(
    cells: Iterable[DesignCell], *, nest: str = FILESYSTEM, rate: float = RATE
) -> tuple[Effects, ...]:
    """Judge every factor of one metric: first everywhere, then within each level of `nest` with factors of its own.

    Nothing where no factor varies. Values are those of comparable runs that may be believed; which ones, the
    caller decides.
    """
    whole = design(cells)
    if not whole.factors:
        return ()
    own = {name: whole.levels_with(nest, name) for name in whole.factors if name != nest}
    nested = {name for name, levels in own.items() if nest in whole.factors and len(levels) == 1}
    common = [name for name in whole.factors if name not in nested]
    parts = [_judge(whole, common, None, rate)] if common else []
    for level in whole.factors.get(nest, ()):
        if any(levels != frozenset(whole.factors[nest]) and level in levels for levels in own.values()):
            part = whole.within(nest, level)
            if part.factors:
                parts.append(_judge(part, list(part.factors), (nest, level), rate))
    return tuple(parts)


def _judge(part: Design, factors: Sequence[str], within: tuple[str, Scalar] | None, rate: float) -> Effects:
    ratios = _ratios(part, factors)
    pairs = _pairs(part, factors)
    judged, effects_confidence = _judged([contrast for *_, contrast in ratios], rate)
    judged_pairs, interactions_confidence = _judged([contrast for *_, contrast in pairs], rate)
    found = tuple(
        Effect(factor, level, baseline, verdict, contrast.strata, contrast.averaged_over)
        for (factor, level, baseline, contrast), verdict in zip(ratios, judged, strict=True)
    )
    interactions = tuple(
        _interaction(names, levels, contrast, verdict)
        for (names, levels, contrast), verdict in zip(pairs, judged_pairs, strict=True)
    )
    matched = {effect.factor for effect in found}
    return Effects(
        within=within,
        cells=len(part.levels),
        repetitions=part.repetitions,
        left_out=part.left_out,
        aliases=tuple(part.aliases.items()),
        unmatched=tuple(name for name in factors if name not in matched),
        effects=found,
        interactions=interactions,
        variation=variation(part, factors, confidence=1 - rate),
        effects_confidence=effects_confidence,
        interactions_confidence=interactions_confidence,
    )


def _ratios(part: Design, factors: Sequence[str]) -> list[tuple[str, Scalar, Scalar, Contrast]]:
    found = []
    for factor in factors:
        for baseline, level in combinations(part.factors[factor], 2):
            contrast = part.contrast([(1, {factor: level}), (-1, {factor: baseline})])
            if contrast is not None:
                found.append((factor, level, baseline, contrast))
    return found


def _pairs(
    part: Design, factors: Sequence[str]
) -> list[tuple[tuple[str, str], tuple[Scalar, Scalar, Scalar, Scalar], Contrast]]:
    """Every two levels of a factor at every two levels of another one."""
    found = []
    for factor, by in combinations(factors, 2):
        for baseline, level in combinations(part.factors[factor], 2):
            for against, at in combinations(part.factors[by], 2):
                contrast = part.contrast(
                    [
                        (1, {factor: level, by: at}),
                        (-1, {factor: baseline, by: at}),
                        (-1, {factor: level, by: against}),
                        (1, {factor: baseline, by: against}),
                    ]
                )
                if contrast is not None:
                    found.append(((factor, by), (level, baseline, at, against), contrast))
    return found


def _judged(contrasts: Sequence[Contrast], rate: float) -> tuple[list[Judged], float]:
    """Each contrast with its interval at the confidence that holds for all of them together."""
    if not contrasts:
        return [], 1 - rate
    by_repetition = np.array([contrast.by_repetition for contrast in contrasts])
    ratios = np.exp(by_repetition.mean(axis=-1))
    if by_repetition.shape[-1] < REPETITIONS_MIN:
        return [Judged(float(ratio)) for ratio in ratios], 1 - rate
    estimate: Estimate = of_differences(by_repetition)
    p_values = estimate.p_difference()
    confidence = float(joint_confidence(p_values, rate=rate))
    low, high = (_taken_back(bound) for bound in estimate.interval(confidence))
    found = zip(ratios, low, high, p_values, strict=True)
    return [Judged(float(ratio), a, b, float(p)) for ratio, a, b, p in found], confidence


def _taken_back(bounds: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[float | None]:
    with np.errstate(over="ignore"):
        return [float(bound) if math.isfinite(bound) else None for bound in np.exp(bounds)]


def _interaction(
    names: tuple[str, str],
    levels: tuple[Scalar, Scalar, Scalar, Scalar],
    contrast: Contrast,
    judged: Judged,
) -> Interaction:
    factor, by = names
    level, baseline, at, against = levels
    # The sides in the order of `_pairs`: two at `at`, two at `against`.
    sides = contrast.sides.mean(axis=-1)
    return Interaction(
        factor=factor,
        level=level,
        baseline=baseline,
        by=by,
        at=at,
        against=against,
        ratio_at=math.exp(float(sides[0] - sides[1])),
        ratio_against=math.exp(float(sides[2] - sides[3])),
        judged=judged,
        strata=contrast.strata,
        averaged_over=contrast.averaged_over,
    )
