"""The best by several figures at once, as far as it can be told: Pareto's comparison made of verdicts.

By point estimates some alternative always wins. Here one stands behind another only where a comparison tells
so: the other is shown better in some objective, and worse in none. That is proved where every objective is
told (better, or the same within the margin), and likely where one is not. What nothing is shown to be better
than leads; of two that lead, each may be ahead in something, or nothing may tell them apart.

Verdicts are no order: where a is told from c and neither is told from b, b leads beside a.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

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
