"""Heat maps as numbers: a scale that all maps share, and the average of the maps that are complete."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

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


if TYPE_CHECKING:
    BoolArray: TypeAlias = npt.NDArray[np.bool_]


class Standing(StrEnum):
    """What is told of an alternative beside all others."""

    LEADING = "leading"
    # Another is shown better in something and worse in nothing, but not everything is known.
    OPEN = "open"
    RULED_OUT = "ruled out"


@dataclass(frozen=True)
class Front:
    """`standings` by alternative; `ahead` are the others that it stands behind, those that rule it out if any do.

    The Pareto set is what nothing rules out: `LEADING` and `OPEN`.
    """

    standings: tuple[Standing, ...]
    ahead: tuple[tuple[int, ...], ...]


def front(better: BoolArray, same: BoolArray) -> Front:
    """Order alternatives by verdicts, each of shape objectives x alternatives x alternatives.

    `better[o, i, j]`: i is shown better than j in objective o. `same[o, i, j]`: they are shown to be the same
    within the margin. Neither: it cannot be told. ValueError for other shapes, and for verdicts that contradict each
    other.
    """
    if better.ndim != 3 or better.shape != same.shape or better.shape[1] != better.shape[2]:
        raise ValueError(
            f"verdicts are objectives x alternatives x alternatives, found {better.shape} and {same.shape}"
        )
    worse = better.transpose(0, 2, 1)
    if np.any(better & worse) or np.any(same & (better | worse)):
        raise ValueError("a pair is both better and worse, or different and the same")
    behind = np.asarray(worse.any(axis=0) & ~better.any(axis=0))
    proved = np.asarray(behind & (worse | same).all(axis=0))
    standings, ahead = [], []
    for number in range(better.shape[1]):
        others = proved[number] if proved[number].any() else behind[number]
        ahead.append(tuple(int(other) for other in np.flatnonzero(others)))
        standings.append(
            Standing.RULED_OUT
            if proved[number].any()
            else Standing.OPEN
            if behind[number].any()
            else Standing.LEADING
        )
    return Front(tuple(standings), tuple(ahead))


def told_apart(better: BoolArray) -> BoolArray:
    """Which pairs some objective tells apart, alternatives x alternatives."""
    return np.asarray((better | better.transpose(0, 2, 1)).any(axis=0))
