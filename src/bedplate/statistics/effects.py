"""Effects of factors: ratios between their levels, and what one factor changes about another.

Every effect is a contrast of matched cells (`design`) that is made once per repetition; Student's t over
the repetitions judges it, and where groups of cells have other repetitions the same estimator as for pooled pairs
(`estimation.weighted_mean`), so that no group that has two is left out. So neither drift between repetitions nor unequal variances of cells matter,
and whatever a repetition did to all cells of one level (a boot of one kernel) counts as
scatter of the effect, which a residual variance over all cells would miss. Contrasts are means over many
cells, which makes up for the few degrees of freedom.

Factors that a single file system has are judged within it; all others over every cell that has them, with the
factors of single file systems at their usual level. The ratios of one factor are one family of comparisons, as each factor
is a question of its own; the interactions of a part of the design are another (`false_discovery`).

Cells of two durability classes are no alternatives, so effects are judged within each class (`within_classes`).
A ratio whose two levels no class has both of *crosses* classes: it is named with them, and not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

from bedplate.model.figure import Better, Metric, Scale
from bedplate.statistics.comparison import CONFIDENCE, MARGIN, Comparison, judged_together, of_estimate
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

if TYPE_CHECKING:
    from bedplate.model.levels import Scalar

FILESYSTEM = "filesystem.type"

# Of which no more is known than that it is above 0: verdicts are `higher` and `lower`.
ANY_RATIO = Metric("any", "", Scale.RATIO, Better.NEITHER, "")


@dataclass(frozen=True)
class Effect:
    """Level / baseline of one factor over `strata` groups of cells that are matched in all that both sides have.

    `judged` says of the level what `compare` says of a contender; below three repetitions it has no interval. `cells` are the
    names of those on the two sides. `held` are the usual levels of factors that one side alone has, at which it was held.
    `differs` are factors in which the two sides are not alike, with their levels there: then not all else is equal.
    `left_out` counts the groups that are in no ratio, by why.
    """

    factor: str
    level: Scalar
    baseline: Scalar
    ratio: float
    judged: Comparison
    cells: frozenset[frozenset[str]]
    strata: int
    repetitions: tuple[int, ...]
    held: tuple[tuple[str, Scalar], ...] = ()
    differs: tuple[tuple[str, tuple[Scalar, ...]], ...] = ()
    left_out: Mapping[Lack, int] = field(default_factory=dict)


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

    `ratio_at` and `ratio_against` are the two ratios, `ratio` is the first / the second, which `judged` judges. `left_out`
    counts the groups that are in none, by why.
    """

    factor: str
    level: Scalar
    baseline: Scalar
    by: str
    at: Scalar
    against: Scalar
    ratio_at: float
    ratio_against: float
    ratio: float
    judged: Comparison
    strata: int
    repetitions: tuple[int, ...]
    left_out: Mapping[Lack, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Effects:
    """What the factors do to one metric in one part of the design, `within` a level or everywhere (None).

    `aliases` are factors that repeat another one, `unmatched` the ratios that cannot be made. `durability` is the class of
    the cells; None where the design was not divided by classes. What factors change about each other takes longest, and is
    made where it is read.
    """

    within: tuple[str, Scalar] | None
    unmatched: tuple[Unmatched, ...]
    effects: tuple[Effect, ...]
    design: Design = field(repr=False, compare=False)
    factors: tuple[str, ...]
    metric: Metric
    nest: str
    durability: str | None = None

    @property
    def cells(self) -> int:
        """How many the part has."""
        return len(self.design.cells)

    @property
    def repetitions(self) -> tuple[int, ...]:
        """Those that any cell has; each group of matched cells has those that its own cells have in common."""
        return self.design.repetitions

    @property
    def incomplete(self) -> int:
        """How many cells lack a repetition."""
        return self.design.incomplete

    @property
    def aliases(self) -> tuple[tuple[str, str], ...]:
        """Factors that repeat another one, with that one."""
        return tuple(self.design.aliases.items())

    def family(self, factor: str) -> tuple[Comparison, ...]:
        """The ratios of one factor, which are judged together."""
        return tuple(each.judged for each in self.effects if each.factor == factor)

    @cached_property
    def interactions(self) -> tuple[Interaction, ...]:
        """Every two levels of a factor at every two levels of another one; they are a family."""
        return _interactions(self.design, self.factors, self.metric)

    @property
    def interactions_confidence(self) -> float:
        """That of the intervals of all interactions."""
        known = (each.judged.difference_confidence for each in self.interactions)
        return next((confidence for confidence in known if confidence is not None), CONFIDENCE)

    @cached_property
    def variation(self) -> Variation | None:
        """The share of each factor."""
        return variation(self.design, self.factors, nest=None if self.within else self.nest)


def within_classes(
    classes: Mapping[str, Sequence[DesignCell]],
    *,
    metric: Metric = ANY_RATIO,
    nest: str = FILESYSTEM,
) -> tuple[tuple[Effects, ...], tuple[Crossing, ...]]:
    """The effects in each durability class by itself, in the order of the classes, and what crosses classes."""
    parts = [
        replace(part, durability=name)
        for name, cells in classes.items()
        for part in effects(cells, metric=metric, nest=nest)
    ]
    return tuple(parts), tuple(_crossings(classes, parts, nest)) if len(classes) > 1 else ()


def effects(
    cells: Iterable[DesignCell], *, metric: Metric = ANY_RATIO, nest: str = FILESYSTEM
) -> tuple[Effects, ...]:
    """Judge every factor of one metric: first everywhere, then within each level of `nest` with factors of its own.

    Nothing where no factor varies. Values are those of comparable runs that may be believed; which ones, the caller decides.
    """
    # One over the same cells is the same ratio, and is judged once.
    judged_before: dict[frozenset[frozenset[str]], Comparison] = {}
    return tuple(
        _part(part, factors, within, metric=metric, nest=nest, judged_before=judged_before)
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


def _part(
    part: Design,
    factors: Sequence[str],
    within: tuple[str, Scalar] | None,
    *,
    metric: Metric,
    nest: str,
    judged_before: dict[frozenset[frozenset[str]], Comparison],
) -> Effects:
    ratios = _ratios(part, factors)
    judged: list[Effect] = []
    for factor in factors:
        own = [
            (level, baseline, contrast)
            for name, level, baseline, contrast in ratios
            if name == factor and isinstance(contrast, Contrast)
        ]
        family = _judged([contrast for *_, contrast in own], metric, MARGIN)
        judged += [
            Effect(
                factor,
                level,
                baseline,
                math.exp(float(contrast.estimate.mean)),
                judged_before.setdefault(frozenset(contrast.cells), comparison)
                if all(map(all, contrast.cells))
                else comparison,
                frozenset(contrast.cells),
                contrast.strata,
                contrast.repetitions,
                contrast.held,
                contrast.differs,
                contrast.left_out,
            )
            for (level, baseline, contrast), comparison in zip(own, family, strict=True)
        ]
    unmatched = tuple(
        Unmatched(factor, level, baseline, contrast.lack, contrast.factors)
        for factor, level, baseline, contrast in ratios
        if isinstance(contrast, NoContrast)
    )
    return Effects(within, unmatched, tuple(judged), part, tuple(factors), metric, nest)


def _judged(contrasts: Sequence[Contrast], metric: Metric, margin: float | None) -> tuple[Comparison, ...]:
    """One family."""
    described = [of_estimate(metric, contrast.estimate, margin=margin) for contrast in contrasts]
    return judged_together(described, [metric.name] * len(described))


def _ratios(part: Design, factors: Sequence[str]) -> list[tuple[str, Scalar, Scalar, Contrast | NoContrast]]:
    return [
        (factor, level, baseline, part.contrast([(1, {factor: level}), (-1, {factor: baseline})]))
        for factor in factors
        for baseline, level in combinations(part.factors[factor], 2)
    ]


def _interactions(part: Design, factors: Sequence[str], metric: Metric) -> tuple[Interaction, ...]:
    made = []
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
                    made.append(((factor, level, baseline, by, at, against), contrast))
    judged = _judged([contrast for _, contrast in made], metric, None)
    return tuple(
        Interaction(
            *levels,
            ratio_at=math.exp(float(contrast.sides[0] - contrast.sides[1])),
            ratio_against=math.exp(float(contrast.sides[2] - contrast.sides[3])),
            ratio=math.exp(float(contrast.estimate.mean)),
            judged=comparison,
            strata=contrast.strata,
            repetitions=contrast.repetitions,
            left_out=contrast.left_out,
        )
        for (levels, contrast), comparison in zip(made, judged, strict=True)
    )
