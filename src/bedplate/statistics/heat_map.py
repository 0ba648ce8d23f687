"""Heat maps as numbers: a scale that all maps share, and the average of the maps that are complete."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from bedplate.model.figure import Scale

# Row (file system block) and column (database block), as labels or sizes in bytes.
Square: TypeAlias = tuple[str, str]

# Above this ratio of the largest to the smallest figure a linear scale shows only the largest.
LOGARITHMIC_ABOVE = 20.0


@dataclass(frozen=True)
class CommonScale:
    """The ends of the colours of every map beside one another."""

    low: float
    high: float
    logarithmic: bool


@dataclass(frozen=True)
class AverageMap:
    """The average over the `n` variants that have every shown square; the others are named."""

    values: Mapping[Square, float]
    n: int
    used: tuple[str, ...]
    left_out: tuple[str, ...]


def common_scale(values: Iterable[float], scale: Scale) -> CommonScale | None:
    """One scale for all squares; None without any. Logarithmic only for positive, far-spread ratios."""
    found = list(values)
    if not found:
        return None
    low, high = min(found), max(found)
    logarithmic = scale is Scale.RATIO and low > 0 and high / low > LOGARITHMIC_ABOVE
    return CommonScale(low, high, logarithmic)


def average_map(
    maps: Mapping[str, Mapping[Square, float]], shown: Sequence[Square], scale: Scale
) -> AverageMap:
    """Average each shown square over the variants that have them all.

    Averaging squares that other variants lack would compare different sets of file systems, so a
    variant counts wholly or not at all. Positive ratios by geometric mean, so that a variant that is
    fast everywhere does not outvote the others.
    """
    used = tuple(name for name, squares in maps.items() if all(square in squares for square in shown))
    left_out = tuple(name for name in maps if name not in used)
    if not used or not shown:
        return AverageMap({}, 0, (), tuple(maps))
    values = {square: _average([maps[name][square] for name in used], scale) for square in shown}
    return AverageMap(values, len(used), used, left_out)


def _average(values: list[float], scale: Scale) -> float:
    if scale is Scale.RATIO and min(values) > 0:
        return math.exp(fmean(math.log(value) for value in values))
    return fmean(values)


@dataclass(frozen=True)
class EffectiveCells:
    """`identical` holds groups of two cells or more; `changing` cells that differ between their visits."""

    identical: tuple[tuple[str, ...], ...]
    changing: tuple[str, ...]

    def others(self, cell: str) -> tuple[str, ...]:
        """The other names of the same effective configuration."""
        for group in self.identical:
            if cell in group:
                return tuple(name for name in group if name != cell)
        return ()


def effective_cells(visits: Iterable[tuple[str, str | None]]) -> EffectiveCells:
    """Group cells by the digest of what was in force, from pairs of cell and digest, one per visit.

    A visit without a digest (it failed before the read-back) says nothing. A cell whose visits do not
    agree is identical to none: it is not even identical to itself.
    """
    digests: defaultdict[str, set[str]] = defaultdict(set)
    for cell, digest in visits:
        if digest is not None:
            digests[cell].add(digest)
    grouped: defaultdict[str, list[str]] = defaultdict(list)
    for cell, found in digests.items():
        if len(found) == 1:
            grouped[next(iter(found))].append(cell)
    return EffectiveCells(
        identical=tuple(tuple(group) for group in grouped.values() if len(group) > 1),
        changing=tuple(cell for cell, found in digests.items() if len(found) > 1),
    )
