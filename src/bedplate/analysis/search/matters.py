"""Which factors mattered in a search: by the model, between cells that are alike in every factor that both have but one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bedplate.statistics.design import DesignCell, design

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.analysis.search.searched import Searched
    from bedplate.model.levels import Scalar
    from bedplate.statistics.estimation import FloatArray

_TAILS = (2.5, 97.5)


@dataclass(frozen=True)
class FactorMatter:
    """The two levels of a factor that are furthest apart: how many times better the first is than the second.

    `low` and `high` bound 95 % of the model's draws. It says what the model expects, of cells that were chosen to be visited.
    """

    factor: str
    better: Scalar
    worse: Scalar
    ratio: float
    low: float
    high: float


def factors_that_matter(found: Searched) -> tuple[FactorMatter, ...]:
    """Every factor of the candidates, the strongest first; none before the first believed figure."""
    if found.lead is None:
        return ()
    levels = found.entrants.space.levels
    made = design(DesignCell(each, {}) for each in levels)
    matters = [
        matter for name in made.factors if (matter := _matter(name, levels, found.known.draws)) is not None
    ]
    return tuple(sorted(matters, key=lambda each: -each.ratio))


def _matter(name: str, levels: tuple[Mapping[str, Scalar], ...], draws: FloatArray) -> FactorMatter | None:
    having = [number for number, own in enumerate(levels) if name in own]
    values = list(dict.fromkeys(levels[number][name] for number in having))
    best: FactorMatter | None = None
    for first, second in combinations(values, 2):
        contrast = _contrast(name, (first, second), levels, draws)
        if contrast is None:
            continue
        if contrast.mean() < 0:
            first, second, contrast = second, first, -contrast  # noqa: PLW2901 -- the better one first
        ratio = float(np.exp(np.median(contrast)))
        low, high = (float(each) for each in np.exp(np.percentile(contrast, _TAILS)))
        if best is None or ratio > best.ratio:
            best = FactorMatter(name, first, second, ratio, low, high)
    return best


def _contrast(
    name: str, sides: tuple[Scalar, Scalar], levels: tuple[Mapping[str, Scalar], ...], draws: FloatArray
) -> FloatArray | None:
    """Of each draw the mean difference of matched cells; None where none match."""
    members = [
        [at for at, own in enumerate(levels) if own.get(name) == side and name in own] for side in sides
    ]
    shared = set.intersection(*(set(levels[at]) for side in members for at in side)) - {name}
    # What one side alone has, or has one level of, is no difference between the two within it.
    groups: list[defaultdict[tuple[str, ...], list[int]]] = [defaultdict(list), defaultdict(list)]
    for group, side in zip(groups, members, strict=True):
        for at in side:
            group[tuple(repr(levels[at][each]) for each in sorted(shared))].append(at)
    both = [key for key in groups[0] if key in groups[1]]
    if not both:
        return None
    means = [draws[:, groups[0][key]].mean(axis=1) - draws[:, groups[1][key]].mean(axis=1) for key in both]
    return np.asarray(np.mean(means, axis=0))
