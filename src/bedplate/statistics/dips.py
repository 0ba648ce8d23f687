"""Runs that lose much of their speed now and then: found where they came up, on one side, in a few runs of a cell.

An interval of a mean stands on the scatter that its repetitions show. Where a tenth of the runs loses half of its
speed, three repetitions show none of it in 73 of 100 studies: the interval is narrow then, and the mean too high. No
test finds what did not happen; this one finds what did, so that the reader knows that the cell is of this kind.

A cell's values are split at the largest gap below its upper part. The few below are dips where the gap is wide beside the
rest of the cell, and beyond chance by the scatter of all cells together (three values alone have too little scatter of
their own to be judged by). That scatter leaves out what is below a gap, so that dips do not hide each other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.statistics.estimation import FloatArray

# Of the chance that a study without dips tells one, over all its cells.
LEVEL = 0.05
# The gap beside the spread of the runs above it; less is a cell that scatters on both sides.
GAP_RATIO = 3.0
# A dip that is told loses a fifth of the speed at least: less of it moves a mean by little.
LOSS_MIN = 0.2
_VALUES_MIN = 3


@dataclass(frozen=True)
class Dips:
    """`dipped` of the `n` values of a group lie far below the others, at `ratio` to their geometric mean."""

    group: str
    dipped: int
    n: int
    ratio: float
    p_value: float


@dataclass(frozen=True)
class _Split:
    """The logarithms of a group, ascending; the first `below` of them lie under the gap, none where there is none."""

    group: str
    logs: FloatArray
    below: int

    @property
    def above(self) -> FloatArray:
        return self.logs[self.below :]


def dips(values: Iterable[tuple[str, float]], *, level: float = LEVEL) -> tuple[Dips, ...]:
    """Groups with dips, among positive values by group, of which more is better; give 1 / value where less is."""
    grouped: defaultdict[str, list[float]] = defaultdict(list)
    for group, value in values:
        grouped[group].append(math.log(value))
    splits = [_split(group, np.sort(np.array(logs))) for group, logs in _large(grouped).items()]
    squares = sum(float(((one.above - one.above.mean()) ** 2).sum()) for one in splits)
    degrees = sum(len(one.above) - 1 for one in splits)
    found = (_judged(one, math.sqrt(squares / degrees), degrees) for one in splits if one.below)
    return tuple(one for one in found if one.p_value <= level / len(splits))


def _large(grouped: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {group: logs for group, logs in grouped.items() if len(logs) >= _VALUES_MIN}


def _split(group: str, logs: FloatArray) -> _Split:
    """At the largest gap that leaves fewer than half of the values below."""
    gaps = np.diff(logs)[: (len(logs) - 1) // 2]
    below = int(np.argmax(gaps)) + 1
    spread = float(logs[-1] - logs[below])
    gap = float(gaps[below - 1])
    is_dip = gap >= GAP_RATIO * spread and gap >= -math.log1p(-LOSS_MIN)
    return _Split(group, logs, below if is_dip else 0)


def _judged(one: _Split, deviation: float, degrees: int) -> Dips:
    """The upper value below the gap beside those above it, as one more value of theirs; any could have been it."""
    apart = float(one.above.mean() - one.logs[one.below - 1])
    error = deviation * math.sqrt(1 + 1 / len(one.above))
    t = apart / error if error > 0 else math.inf
    return Dips(
        group=one.group,
        dipped=one.below,
        n=len(one.logs),
        ratio=math.exp(float(one.logs[: one.below].mean() - one.above.mean())),
        p_value=min(1.0, len(one.logs) * float(stdtr(degrees, -t))),
    )
