"""Effects of factors: ratios between their levels, and what one factor changes about another.

Every effect is a contrast of matched cells (`design`) that is made once per repetition; Student's t over
the repetitions judges it, and where groups of cells have other repetitions the same estimator as for pooled pairs
(`estimation.weighted_mean`), so that no group that has two is left out. So neither drift between repetitions nor unequal variances of cells matter,
and whatever a repetition did to all cells of one level (a boot of one kernel) counts as
scatter of the effect, which a residual variance over all cells would miss. Contrasts are means over many
cells, which makes up for the few degrees of freedom.

Factors that a single file system has are judged within it; all others over every cell that has them, with the
factors of single file systems at their usual level. The marginal ratios of one part of the design are one family of
comparisons, its interactions another (`false_discovery`).

Cells of two durability classes are no alternatives, so effects are judged within each class (`within_classes`).
A ratio whose two levels no class has both of *crosses* classes: it is named with them, and not judged.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bedplate.statistics.design import (
    Contrast,
    Design,
    DesignCell,
    Lack,
    NoContrast,
    Variation,
    design,
    variation,
)
from bedplate.statistics.estimation import REPETITIONS_MIN, Estimate, of_differences, weighted_mean
from bedplate.statistics.false_discovery import RATE, joint_confidence

if TYPE_CHECKING:
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
    """Level / baseline of one factor over `strata` groups of cells that are matched in all that both sides have.

    `held` are the usual levels of factors that one side alone has, at which it was held. `differs` are factors in
    which the two sides are not alike, with their levels there: then not all else is equal. `left_out` counts the groups in
    which the cells have fewer than two repetitions in common.
    """

    factor: str
    level: Scalar
    baseline: Scalar
    judged: Judged
    strata: int
    repetitions: tuple[int, ...]
    held: tuple[tuple[str, Scalar], ...] = ()
    differs: tuple[tuple[str, tuple[Scalar, ...]], ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class Unmatched:
    """Two levels of which there is no ratio: `lack` says why, `factors` which others stand in the way."""

    factor: str
    level: Scalar
    baseline: Scalar
    lack: Lack
    factors: tuple[str, ...]


@dataclass(frozen=True)
class Crossing:
    """Two levels that no durability class has both of; `classes` are those of the level, then of the baseline.

    `within` is the level in whose part of the design the factor is.
    """

    within: tuple[str, Scalar] | None
    factor: str
    level: Scalar
    baseline: Scalar
    classes: tuple[tuple[str, ...], tuple[str, ...]]


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
    repetitions: tuple[int, ...]


@dataclass(frozen=True)
class Effects:
    """What the factors do to one metric in one part of the design, `within` a level or everywhere (None).

    `repetitions` are those that any cell has, `incomplete` counts the cells that lack one; each group of matched cells has
    those that its own cells have in common. `aliases` are factors that repeat another one, `unmatched` the ratios that
    cannot be made. The two confidences are those of the intervals of each family. `durability` is the class of
    the cells; None where the design was not divided by classes.
    """

    within: tuple[str, Scalar] | None
    cells: int
    repetitions: tuple[int, ...]
    incomplete: int
    aliases: tuple[tuple[str, str], ...]
    unmatched: tuple[Unmatched, ...]
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    variation: Variation | None
    effects_confidence: float
    interactions_confidence: float
    durability: str | None = None


def within_classes(
    classes: Mapping[str, Sequence[DesignCell]], *, nest: str = FILESYSTEM, rate: float = RATE
) -> tuple[tuple[Effects, ...], tuple[Crossing, ...]]:
    """The effects in each durability class by itself, in the order of the classes, and what crosses classes."""
    parts = [
        replace(part, durability=name)
        for name, cells in classes.items()
        for part in effects(cells, nest=nest, rate=rate)
    ]
    return tuple(parts), tuple(_crossings(classes, parts, nest)) if len(classes) > 1 else ()


def effects(
    cells: Iterable[DesignCell], *, nest: str = FILESYSTEM, rate: float = RATE
) -> tuple[Effects, ...]:
    """Judge every factor of one metric: first everywhere, then within each level of `nest` with factors of its own.

    Nothing where no factor varies. Values are those of comparable runs that may be believed; which ones, the
    caller decides.
    """
    return tuple(
        _judge(part, factors, within, nest=nest, rate=rate)
        for part, factors, within in _parts(design(cells), nest)
    )


_Part = tuple[Design, list[str], "tuple[str, Scalar] | None"]


def _parts(whole: Design, nest: str) -> list[_Part]:
    """The parts of a design in which factors are judged, with those factors."""
    own = {name: whole.levels_with(nest, name) for name in whole.factors if name != nest}
    nested = {name for name, levels in own.items() if nest in whole.factors and len(levels) == 1}
    common = [name for name in whole.factors if name not in nested]
    parts: list[_Part] = [(whole, common, None)] if common else []
    for level in whole.factors.get(nest, ()):
        if any(levels != frozenset(whole.factors[nest]) and level in levels for levels in own.values()):
            part = whole.within(nest, level)
            if part.factors:
                parts.append((part, list(part.factors), (nest, level)))
    return parts


def _crossings(
    classes: Mapping[str, Sequence[DesignCell]], parts: Sequence[Effects], nest: str
) -> list[Crossing]:
    """The ratios of the undivided design that no class has."""
    whole = design(cell for cells in classes.values() for cell in cells)
    alone = {
        name: levels.pop()
        for name, cells in classes.items()
        for levels in [{cell.levels.get(nest) for cell in cells}]
        if len(levels) == 1
    }
    found = {
        (within, each.factor, frozenset({each.level, each.baseline}))
        for part in parts
        for within in {None, part.within[1] if part.within else alone.get(part.durability or "")}
        for each in part.effects
    }
    crossing = []
    for part, factors, within in _parts(whole, nest):
        for factor, level, baseline, contrast in _ratios(part, factors):
            key = (within[1] if within else None, factor, frozenset({level, baseline}))
            if isinstance(contrast, Contrast) and key not in found:
                having = (_having(classes, within, factor, each) for each in (level, baseline))
                crossing.append(Crossing(within, factor, level, baseline, (next(having), next(having))))
    return crossing


def _having(
    classes: Mapping[str, Sequence[DesignCell]],
    within: tuple[str, Scalar] | None,
    factor: str,
    level: Scalar,
) -> tuple[str, ...]:
    """The classes that have a cell of this level."""
    wanted = dict(filter(None, (within, (factor, level))))
    return tuple(
        name
        for name, cells in classes.items()
        if any(all(cell.levels.get(key) == value for key, value in wanted.items()) for cell in cells)
    )


def _judge(
    part: Design, factors: Sequence[str], within: tuple[str, Scalar] | None, *, nest: str, rate: float
) -> Effects:
    ratios = _ratios(part, factors)
    made = [
        (factor, level, baseline, contrast)
        for factor, level, baseline, contrast in ratios
        if isinstance(contrast, Contrast)
    ]
    pairs = _pairs(part, factors)
    judged, effects_confidence = _judged([contrast for *_, contrast in made], rate)
    judged_pairs, interactions_confidence = _judged([contrast for *_, contrast in pairs], rate)
    return Effects(
        within=within,
        cells=len(part.cells),
        repetitions=part.repetitions,
        incomplete=part.incomplete,
        aliases=tuple(part.aliases.items()),
        unmatched=tuple(
            Unmatched(factor, level, baseline, contrast.lack, contrast.factors)
            for factor, level, baseline, contrast in ratios
            if isinstance(contrast, NoContrast)
        ),
        effects=tuple(
            Effect(
                factor,
                level,
                baseline,
                verdict,
                contrast.strata,
                contrast.repetitions,
                contrast.held,
                contrast.differs,
                contrast.left_out,
            )
            for (factor, level, baseline, contrast), verdict in zip(made, judged, strict=True)
        ),
        interactions=tuple(
            _interaction(names, levels, contrast, verdict)
            for (names, levels, contrast), verdict in zip(pairs, judged_pairs, strict=True)
        ),
        variation=variation(part, factors, nest=None if within else nest, confidence=1 - rate),
        effects_confidence=effects_confidence,
        interactions_confidence=interactions_confidence,
    )


def _ratios(part: Design, factors: Sequence[str]) -> list[tuple[str, Scalar, Scalar, Contrast | NoContrast]]:
    return [
        (factor, level, baseline, part.contrast([(1, {factor: level}), (-1, {factor: baseline})]))
        for factor in factors
        for baseline, level in combinations(part.factors[factor], 2)
    ]


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
                if isinstance(contrast, Contrast):
                    found.append(((factor, by), (level, baseline, at, against), contrast))
    return found


def _judged(contrasts: Sequence[Contrast], rate: float) -> tuple[list[Judged], float]:
    """Each contrast with its interval at the confidence that holds for all of them together.

    Those of fewer repetitions than an interval needs are described, and in no family.
    """
    found = [Judged(math.exp(contrast.mean)) for contrast in contrasts]
    # Contrasts of as many repetitions without gaps are estimated at once: there are thousands of them.
    by_count: defaultdict[int, list[int]] = defaultdict(list)
    estimates: list[tuple[list[int], Estimate]] = []
    for place, contrast in enumerate(contrasts):
        if len(contrast.repetitions) < REPETITIONS_MIN:
            continue
        if contrast.has_gaps:
            weights = np.full(contrast.strata, 1 / contrast.strata)
            estimates.append(([place], weighted_mean(contrast.differences[None], weights)))
        else:
            by_count[len(contrast.repetitions)].append(place)
    estimates += [
        (places, of_differences(np.array([contrasts[place].by_repetition for place in places])))
        for places in by_count.values()
    ]
    if not estimates:
        return found, 1 - rate
    p_values = np.concatenate([estimate.p_difference() for _, estimate in estimates])
    confidence = float(joint_confidence(p_values, rate=rate))
    for places, estimate in estimates:
        low, high = (_taken_back(bound) for bound in estimate.interval(confidence))
        for place, a, b, p in zip(places, low, high, estimate.p_difference(), strict=True):
            found[place] = replace(found[place], low=a, high=b, p_value=float(p))
    return found, confidence


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
    sides = contrast.sides
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
        repetitions=contrast.repetitions,
    )
