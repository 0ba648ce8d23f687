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
# Two speeds of one run: by convention, well above what a quiet machine's seconds scatter.
SPEEDS_SHARE_MIN = 0.15
STRETCH_S_MIN = 3
_ASTRAY_SHARE_MAX = 0.05
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


@dataclass(frozen=True)
class TwoSpeeds:
    """Where the seconds of a run fall into two stretches of unlike tps: the median of each, and when the second begins."""

    first_tps: float
    second_tps: float
    at_s: int


def two_speeds(tps: npt.NDArray[np.float64]) -> TwoSpeeds | None:
    """The change of level that leaves the least deviation within both stretches, if it is one.

    Each stretch has three seconds or more. The medians differ by more than `SPEEDS_SHARE_MIN` of the lesser, and by more
    than four standard deviations (from the median absolute one) of the seconds around their own median, and all but a
    few seconds are nearer to their own.
    """
    known = tps[~np.isnan(tps)]
    # A long run is looked at in as many stretches as a short one: each place costs a pass over all of it.
    step = max(1, len(known) // _TREND_POINTS_MAX)
    best: tuple[float, TwoSpeeds] | None = None
    for at in range(STRETCH_S_MIN, len(known) - STRETCH_S_MIN + 1, step):
        first, second = float(np.median(known[:at])), float(np.median(known[at:]))
        around = np.abs(np.concatenate([known[:at] - first, known[at:] - second]))
        deviation = float(around.mean())
        if best is None or deviation < best[0]:
            best = (deviation, TwoSpeeds(first, second, at))
            spread = _MAD_TO_STDDEV * float(np.median(around))
    if best is None:
        return None
    found = best[1]
    low, high = sorted((found.first_tps, found.second_tps))
    near_second = np.abs(known - found.second_tps) < np.abs(known - found.first_tps)
    astray = int(near_second[: found.at_s].sum() + (~near_second[found.at_s :]).sum())
    is_one = low > 0 and high / low - 1 > SPEEDS_SHARE_MIN and high - low > 4 * spread
    return found if is_one and astray <= _ASTRAY_SHARE_MAX * len(known) else None


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
