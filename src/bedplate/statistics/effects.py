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
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bedplate.statistics.comparison import (
    MARGIN,
    Confidence,
    Family,
    Verdict,
    confidences,
    direction,
)
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
from bedplate.statistics.estimation import (
    REPETITIONS_MIN,
    VALUES_MIN,
    Estimate,
    of_differences,
    weighted_mean,
)
from bedplate.statistics.false_discovery import RATE

if TYPE_CHECKING:
    from bedplate.model.figure import Metric
    from bedplate.model.levels import Scalar

FILESYSTEM = "filesystem.type"


@dataclass(frozen=True)
class Judged:
    """A ratio with its interval at the family's confidence; None bounds with fewer than three repetitions.

    `p_value` is that of a difference, `confidence` that of the interval. `same` says that the interval lies within the margin, as in `comparison`; then it is the
    interval that bears this.
    """

    ratio: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    same: bool = False
    confidence: float | None = None

    @property
    def real(self) -> bool:
        """True where the interval leaves out 1, by more than the margin of what is the same."""
        leaves_out = (self.low is not None and self.low > 1) or (self.high is not None and self.high < 1)
        return leaves_out and not self.same


@dataclass(frozen=True)
class Effect:
    """Level / baseline of one factor over `strata` groups of cells that are matched in all that both sides have.

    `held` are the usual levels of factors that one side alone has, at which it was held. `differs` are factors in
    which the two sides are not alike, with their levels there: then not all else is equal. `left_out` counts the groups in
    which the cells have fewer than two repetitions in common. `verdict` says of the level what `compare` says of a contender;
    None where nothing is judged.
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
    verdict: Verdict | None = None


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

    `ratio_at` and `ratio_against` are the two ratios, `judged` is the first / the second. `left_out` counts the groups in
    which the cells have fewer than two repetitions in common.
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
    left_out: int = 0


@dataclass(frozen=True)
class Effects:
    """What the factors do to one metric in one part of the design, `within` a level or everywhere (None).

    `repetitions` are those that any cell has, `incomplete` counts the cells that lack one; each group of matched cells has
    those that its own cells have in common. `aliases` are factors that repeat another one, `unmatched` the ratios that
    cannot be made. `interactions_confidence` is that of the intervals of all interactions. `durability` is the class of
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
    interactions_confidence: float
    durability: str | None = None


def within_classes(
    classes: Mapping[str, Sequence[DesignCell]],
    *,
    metric: Metric | None = None,
    nest: str = FILESYSTEM,
    rate: float = RATE,
) -> tuple[tuple[Effects, ...], tuple[Crossing, ...]]:
    """The effects in each durability class by itself, in the order of the classes, and what crosses classes."""
    parts = [
        replace(part, durability=name)
        for name, cells in classes.items()
        for part in effects(cells, metric=metric, nest=nest, rate=rate)
    ]
    return tuple(parts), tuple(_crossings(classes, parts, nest)) if len(classes) > 1 else ()


def effects(
    cells: Iterable[DesignCell],
    *,
    metric: Metric | None = None,
    nest: str = FILESYSTEM,
    rate: float = RATE,
) -> tuple[Effects, ...]:
    """Judge every factor of one metric: first everywhere, then within each level of `nest` with factors of its own.

    Without a metric verdicts are `higher` and `lower`. Nothing where no factor varies. Values are those of comparable runs that may be believed; which ones, the
    caller decides.
    """
    known_ratios: dict[frozenset[frozenset[str]], Judged] = {}
    return tuple(
        _judge(part, factors, within, metric=metric, nest=nest, rate=rate, known_ratios=known_ratios)
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


@dataclass(frozen=True)
class RatioFamily:
    """At which confidences a ratio of `effects` is judged: for a difference, and for each margin for sameness.

    `cells` are the names of those on its two sides; `ratio` and `strata` are as in `Effect`, `durability` as in `Effects`.
    """

    durability: str
    factor: str
    level: Scalar
    baseline: Scalar
    cells: frozenset[frozenset[str]]
    ratio: float
    strata: int
    confidences: tuple[Confidence, ...]


def ratio_families(
    classes: Mapping[str, Sequence[DesignCell]],
    *,
    margins: Sequence[float],
    only: Collection[str] = (),
    nest: str = FILESYSTEM,
    rate: float = RATE,
) -> tuple[RatioFamily, ...]:
    """Of every ratio that `effects` judges in some durability classes, those over more cells first; `only` of these factors, if any.

    For whoever asks for one of the ratios in another way (`compare`): what is the same contrast is of the same family.
    """
    families = []
    for durability, cells in classes.items():
        for part, factors, _ in _parts(design(cells), nest):
            for factor in (each for each in factors if not only or each in only):
                made = [
                    (level, baseline, contrast)
                    for _, level, baseline, contrast in _ratios(part, [factor])
                    if isinstance(contrast, Contrast)
                ]
                contrasts = [contrast for *_, contrast in made]
                own = tuple(_judged(contrasts, rate, margin)[1] for margin in margins)
                families += [
                    RatioFamily(
                        durability,
                        factor,
                        level,
                        baseline,
                        frozenset(contrast.cells),
                        math.exp(contrast.mean),
                        contrast.strata,
                        own,
                    )
                    for level, baseline, contrast in made
                ]
    return tuple(families)


def _judge(
    part: Design,
    factors: Sequence[str],
    within: tuple[str, Scalar] | None,
    *,
    metric: Metric | None,
    nest: str,
    rate: float,
    known_ratios: dict[frozenset[frozenset[str]], Judged],
) -> Effects:
    """`known_ratios` are those of the parts before: one over the same cells is the same ratio, and is judged once."""
    ratios = _ratios(part, factors)
    made = [
        (factor, level, baseline, contrast)
        for factor, level, baseline, contrast in ratios
        if isinstance(contrast, Contrast)
    ]
    pairs = _pairs(part, factors)
    judged = [
        known_ratios.setdefault(frozenset(contrast.cells), each) if all(map(all, contrast.cells)) else each
        for factor in factors
        for own in [[contrast for name, *_, contrast in made if name == factor]]
        for contrast, each in zip(own, _judged(own, rate, MARGIN)[0], strict=True)
    ]
    judged_pairs, of_interactions = _judged([contrast for *_, contrast in pairs], rate)
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
                _verdict(verdict, metric),
            )
            for (factor, level, baseline, contrast), verdict in zip(made, judged, strict=True)
        ),
        interactions=tuple(
            _interaction(names, levels, contrast, verdict)
            for (names, levels, contrast), verdict in zip(pairs, judged_pairs, strict=True)
        ),
        variation=variation(part, factors, nest=None if within else nest, confidence=1 - rate),
        interactions_confidence=of_interactions.difference,
    )


def _verdict(ratio: Judged, metric: Metric | None) -> Verdict | None:
    if ratio.p_value is None:
        return None
    if ratio.same:
        return Verdict.SAME
    if not ratio.real:
        return Verdict.CANNOT_TELL
    larger = ratio.low is not None and ratio.low > 1
    if metric is None:
        return Verdict.HIGHER if larger else Verdict.LOWER
    return direction(metric, larger=larger)


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


def _judged(
    contrasts: Sequence[Contrast], rate: float, margin: float | None = None
) -> tuple[list[Judged], Confidence]:
    """Each contrast with its interval at the confidence that holds for all of them together.

    Those of fewer repetitions than an interval needs are described, and in no family. Without a margin none is the same.
    """
    found = [Judged(math.exp(contrast.mean)) for contrast in contrasts]
    # Contrasts of as many repetitions without gaps are estimated at once: there are thousands of them.
    by_count: defaultdict[int, list[int]] = defaultdict(list)
    estimates: list[tuple[list[int], Estimate]] = []
    for place, contrast in enumerate(contrasts):
        # Strata of a single repetition each may have three of them together, and no scatter of their own.
        if len(contrast.repetitions) < REPETITIONS_MIN or contrast.fewest < VALUES_MIN:
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
        return found, Confidence(1 - rate, 1 - rate)
    limit = None if margin is None else math.log1p(margin)
    family = Family(
        np.concatenate([each.p_difference()[each.scatters] for _, each in estimates]),
        np.concatenate([each.p_same(limit)[each.scatters] for _, each in estimates])
        if limit
        else np.empty(0),
    )
    (confidence,) = confidences([family], rate=rate)
    for places, estimate in estimates:
        low, high = estimate.interval(confidence.difference)
        is_shown = same = np.zeros(len(places), dtype=np.bool_)
        if limit is not None:
            # As `comparison.judged_apart` has it for one.
            lower, upper = estimate.interval(confidence.sameness)
            is_shown = (lower >= -limit) & (upper <= limit)
            same = is_shown | ((low >= -limit) & (high <= limit) & ((low > 0) | (high < 0)))
            low, high = np.where(is_shown, lower, low), np.where(is_shown, upper, high)
        level = np.where(is_shown, confidence.sameness, confidence.difference)
        for at, (place, a, b) in enumerate(zip(places, _taken_back(low), _taken_back(high), strict=True)):
            found[place] = replace(
                found[place],
                low=a,
                high=b,
                p_value=float(estimate.p_difference()[at]),
                same=bool(same[at]),
                confidence=float(level[at]),
            )
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
        left_out=contrast.left_out,
    )
