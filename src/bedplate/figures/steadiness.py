"""How steady a run was: inside and outside of checkpoints, its trend, and when its warm-up settled.

All of it describes one run; seconds are never taken for independent observations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from bedplate.model.figure import Window

# How long after a checkpoint's end the seconds count as settling. A fixed time, by convention: one
# that ended when tps is back would select the slow seconds that it is meant to measure.
SETTLING_S = 10.0
# More points than this are averaged in groups before slopes of pairs are taken (n²/2 of them).
_TREND_POINTS_MAX = 600
BLOCK_S = 10
_BLOCKS_IN_A_ROW = 3
_TOLERANCE_MIN = 0.05
# The median absolute deviation of a normal distribution is 1 / 1.4826 of its standard deviation.
_MAD_TO_STDDEV = 1.4826


@dataclass(frozen=True)
class Steadiness:
    """Mean tps and coefficient of variation of some seconds of a run; None where there are too few."""

    seconds: int
    tps_mean: float | None
    tps_cv: float | None


@dataclass(frozen=True)
class Division:
    """Seconds of the measured window, each in exactly one of three kinds (arrays of truth values)."""

    in_checkpoint: npt.NDArray[np.bool_]
    settling: npt.NDArray[np.bool_]

    @property
    def outside(self) -> npt.NDArray[np.bool_]:
        """Seconds that are neither in a checkpoint nor settling after one."""
        return ~(self.in_checkpoint | self.settling)


def divide(middles_s: npt.NDArray[np.float64], windows: Iterable[Window]) -> Division:
    """Sort seconds, given by their middles on the clock of the windows, into the three kinds.

    A second is within a checkpoint if its middle is; otherwise it settles if a checkpoint ended less
    than `SETTLING_S` before it.
    """
    inside = np.zeros(len(middles_s), dtype=np.bool_)
    settling = np.zeros(len(middles_s), dtype=np.bool_)
    for window in windows:
        end_s = np.inf if window.end_s is None else window.end_s
        inside |= (middles_s >= window.start_s) & (middles_s < end_s)
        settling |= (middles_s >= end_s) & (middles_s < end_s + SETTLING_S)
    return Division(inside, settling & ~inside)


def steadiness(tps: npt.NDArray[np.float64]) -> Steadiness:
    """Mean and variation (sample standard deviation / mean) of the tps of some seconds."""
    known = tps[~np.isnan(tps)]
    mean = float(known.mean()) if len(known) else None
    varies = len(known) > 1 and mean is not None and mean > 0
    return Steadiness(len(known), mean, float(known.std(ddof=1)) / mean if varies and mean else None)


def trend_share(values: npt.NDArray[np.float64]) -> float | None:
    """Growth over the whole window as a share of the mean: the Theil–Sen slope times the length.

    The median of the slopes of all pairs (Sen 1968) is not moved by the dips of checkpoints. None
    below ten seconds and around a mean of zero.
    """
    known = ~np.isnan(values)
    if known.sum() < 10:
        return None
    at, found = np.flatnonzero(known).astype(np.float64), values[known]
    mean = float(found.mean())
    if mean <= 0:
        return None
    if len(found) > _TREND_POINTS_MAX:
        groups = np.array_split(np.arange(len(found)), _TREND_POINTS_MAX)
        at = np.array([at[group].mean() for group in groups])
        found = np.array([found[group].mean() for group in groups])
    first, second = np.triu_indices(len(found), k=1)
    slope = float(np.median((found[second] - found[first]) / (at[second] - at[first])))
    return slope * len(values) / mean


def settled_after_s(warmup: npt.NDArray[np.float64], measure: npt.NDArray[np.float64]) -> float | None:
    """Seconds from the start of the warm-up until tps was what it was when measured; None if never.

    Whole-second tps of both phases are put into blocks of ten seconds, of which the median counts. Steady
    is the middle (median) of the measured blocks, give or take 5 % or twice their own spread (from
    differences of neighbours, which a climb does not widen), whichever is more. The run has settled at the first block of three
    in a row within that. A run shorter than three measured blocks says nothing.
    """
    measured = _blocks(measure)
    if len(measured) < _BLOCKS_IN_A_ROW:
        return None
    middle = float(np.median(measured))
    if middle <= 0:
        return None
    # The difference of two independent values has √2 of the deviation of each.
    spread = _MAD_TO_STDDEV * float(np.median(np.abs(np.diff(measured)))) / 2**0.5
    band = max(_TOLERANCE_MIN * middle, 2 * spread)
    within = np.abs(_blocks(np.concatenate([warmup, measure])) - middle) <= band
    for start in range(len(within) - _BLOCKS_IN_A_ROW + 1):
        if within[start : start + _BLOCKS_IN_A_ROW].all():
            return float(start * BLOCK_S)
    return None


def _blocks(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The median of each whole block; a block without a known second breaks every row of blocks."""
    whole = len(seconds) // BLOCK_S * BLOCK_S
    rows = seconds[:whole].reshape(-1, BLOCK_S)
    known = ~np.isnan(rows)
    # A median of nothing warns; such rows are put apart.
    return np.array(
        [np.median(row[some]) if some.any() else np.nan for row, some in zip(rows, known, strict=True)],
        dtype=np.float64,
    )
