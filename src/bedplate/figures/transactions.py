"""Figures from the transaction log: speed, latencies, steadiness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from bedplate.figures.courses import LatencyKind, LatencyLog, percentiles_us, share_below, summary
from bedplate.figures.samples import MeasuredWindow
from bedplate.figures.server_log import TIMED, Complaint, ServerLog
from bedplate.model.figure import Figure, Window
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because

SERVER_LOG_UNREADABLE = because("server-log-unreadable", "the server's log could not be read")

_COUNTS = ("checkpoints_timed", "checkpoints_requested", "checkpoints_complete")


def checkpoint_windows(
    server_log: ServerLog, zero_wall_s: float, from_s: float, to_s: float
) -> tuple[Window, ...]:
    """Checkpoints that overlap [`from_s`, `to_s`], both in seconds since `zero_wall_s`.

    One that ended after `to_s` has no end: it had not ended when the run did.
    """
    windows = []
    for checkpoint in server_log.checkpoints:
        start_s = checkpoint.start_wall_s - zero_wall_s
        end_s = None if checkpoint.end_wall_s is None else checkpoint.end_wall_s - zero_wall_s
        if start_s < to_s and (end_s is None or end_s > from_s):
            ended = end_s is not None and end_s <= to_s
            windows.append(Window(checkpoint.kind, start_s, end_s if ended else None))
    return tuple(windows)


def complaints_between(server_log: ServerLog, from_wall_s: float, to_wall_s: float) -> tuple[Complaint, ...]:
    """The server's errors in a stretch of wall-clock time."""
    return tuple(found for found in server_log.complaints if from_wall_s <= found.wall_s <= to_wall_s)


def checkpoint_figures(windows: tuple[Window, ...] | None, duration_s: float) -> Iterator[Figure]:
    """Checkpoints begun in the measured window by cause, and timed ones wholly inside it."""
    if windows is None:
        for metric in _COUNTS:
            yield figure(metric, None, reason=SERVER_LOG_UNREADABLE)
        return
    begun = [window for window in windows if 0 <= window.start_s < duration_s]
    timed = [window for window in begun if window.kind == TIMED]
    yield figure("checkpoints_timed", len(timed))
    yield figure("checkpoints_requested", len(begun) - len(timed))
    yield figure("checkpoints_complete", len(complete_timed(windows, duration_s)))


def complete_timed(windows: tuple[Window, ...], duration_s: float) -> tuple[Window, ...]:
    """Timed checkpoints that began and ended within the measured window."""
    return tuple(
        window
        for window in windows
        if window.kind == TIMED
        and window.start_s >= 0
        and window.end_s is not None
        and window.end_s <= duration_s
    )


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


_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}

FAST_READ_ONLY_US = 1000
FAST_OTHER_US = 9000

_NO_LOG = because(
    "no-transaction-log", "there is no transaction log of the measured window that could be read"
)

_NO_TRANSACTION = because("no-transaction", "no transaction was processed")
_NO_LAG = because("no-schedule-lag", "the log has no schedule lag")
_SINGLE_SECOND = because("single-second", "a single second, or no tps")

_NEVER_SETTLED = because(
    "never-settled", "no three blocks of ten seconds in a row were at the level of the measured window"
)

_TOO_FEW_SECONDS = "too-few-seconds"
_FAILURES = ("failed", "serialization_failures", "deadlock_failures")


def transaction_count(latencies: LatencyLog) -> int:
    """Transactions that were processed."""
    return outcome_count(latencies, ("transactions",))


def outcome_count(latencies: LatencyLog, names: Sequence[str] = _FAILURES) -> int:
    """The sum of columns of the log's seconds; without naming any, the transactions that failed."""
    rows = latencies.seconds.filter(pl.col("series") == int(LatencyKind.LATENCY))
    return sum(int(rows[name].sum()) for name in names)


def tps_of_seconds(
    latencies: LatencyLog, window: MeasuredWindow
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Transactions of each whole second of the window; a second without any is zero, not unknown."""
    whole = window.whole_seconds
    counts = np.zeros(len(whole))
    rows = (
        latencies.seconds.filter(pl.col("series") == int(LatencyKind.LATENCY))
        .group_by("second")
        .agg(pl.col("transactions").sum())
    )
    place = rows["second"].to_numpy() - window.origin - whole.start
    inside = (place >= 0) & (place < len(whole))
    counts[place[inside]] = rows["transactions"].to_numpy()[inside]
    return counts


def transaction_figures(
    latencies: LatencyLog | None, window: MeasuredWindow, *, read_only: bool, rate_limited: bool
) -> Iterator[Figure]:
    """tps, counts, latencies, and the share of fast ones."""
    count = None if latencies is None else transaction_count(latencies)
    yield figure("tps", None if count is None else count / window.duration_s, reason=_NO_LOG)
    yield figure("transactions", count, reason=_NO_LOG)
    yield figure(
        "transactions_failed", None if latencies is None else outcome_count(latencies), reason=_NO_LOG
    )
    yield figure(
        "transactions_skipped",
        None if latencies is None else outcome_count(latencies, ("skipped",)),
        reason=_NO_LOG,
    )
    yield from _latencies(latencies, "measure", "")
    if rate_limited:
        yield from _without_lag(latencies)
    # Waiting for one's turn in the schedule says nothing about a cache.
    series = (
        LatencyKind.LATENCY_WITHOUT_LAG
        if latencies is not None and latencies.has_schedule_lag
        else LatencyKind.LATENCY
    )
    threshold_us = FAST_READ_ONLY_US if read_only else FAST_OTHER_US
    fast = None if latencies is None else share_below(latencies, threshold_us, series=series)
    yield figure("fast_transaction_share", fast, reason=_NO_LOG if latencies is None else _NO_TRANSACTION)


def script_figures(
    latencies: LatencyLog | None, window: MeasuredWindow, names: Sequence[str], phase: str
) -> Iterator[Figure]:
    """tps, counts and latencies of each script, in the order of the log's numbers; their phase is a part of the run."""
    for number, name in enumerate(names):
        own = None if latencies is None else latencies.select(index=number)
        counts: Mapping[str, float | None] = {
            "tps": None if own is None else transaction_count(own) / window.duration_s,
            "transactions": None if own is None else transaction_count(own),
            "transactions_failed": None if own is None else outcome_count(own),
        }
        for metric, value in counts.items():
            yield figure(metric, value, phase=phase, item=name, reason=_NO_LOG)
        yield from _latencies(own, phase, name)


def steadiness_figures(
    latencies: LatencyLog | None,
    window: MeasuredWindow,
    windows: tuple[Window, ...] | None,
    warmup_tps: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Iterator[Figure]:
    """Variation, trend and settling time; tps within, after and outside of checkpoints."""
    if latencies is None:
        for metric in _STEADINESS:
            yield figure(metric, None, reason=_NO_LOG)
        return
    tps = tps_of_seconds(latencies, window)
    short = because(_TOO_FEW_SECONDS, f"the window has {len(tps)} whole seconds", seconds=len(tps))
    of_trend = replace(short, sentence=f"{short}; a trend needs ten, and transactions in them")
    yield figure("tps_cv", steadiness(tps).tps_cv, reason=short)
    yield figure("tps_trend", trend_share(tps), reason=of_trend)
    settled = settled_after_s(warmup_tps, tps)
    yield figure("settle_s", settled, reason=_why_not_settled(len(tps)))
    if windows is None:
        for metric in _STEADINESS[3:]:
            yield figure(metric, None, reason=SERVER_LOG_UNREADABLE)
        return
    # Windows count from the exact start of the measurement, seconds of the course from a whole second.
    middles = np.array(window.whole_seconds, dtype=np.float64) + 0.5 + window.origin - window.start_wall_s
    division = divide(middles, windows)
    kinds = {
        "tps_in_checkpoint": (
            division.in_checkpoint,
            because("no-second-in-checkpoint", "no second of the window lies within a checkpoint"),
        ),
        "tps_settling": (
            division.settling,
            because("no-second-settling", f"no second lies within {SETTLING_S:g} s after a checkpoint"),
        ),
        "tps_outside": (
            division.outside,
            because("no-second-outside", "every second lies within a checkpoint or settles after one"),
        ),
    }
    for metric, (chosen, reason) in kinds.items():
        found = steadiness(tps[chosen])
        yield figure(metric, found.tps_mean, reason=reason)
        yield figure(f"{metric}_cv", found.tps_cv, reason=reason if found.seconds == 0 else _SINGLE_SECOND)


_STEADINESS = (
    "tps_cv",
    "tps_trend",
    "settle_s",
    *(f"tps_{kind}{end}" for kind in ("in_checkpoint", "settling", "outside") for end in ("", "_cv")),
)


def _why_not_settled(seconds: int) -> Reason:
    if seconds >= 30:
        return _NEVER_SETTLED
    words = f"{seconds} whole seconds were measured; it takes 30 to know the level"
    return because(_TOO_FEW_SECONDS, words, seconds=seconds)


def _latencies(latencies: LatencyLog | None, phase: str, item: str) -> Iterator[Figure]:
    reason = _NO_LOG if latencies is None else _NO_TRANSACTION
    found = None if latencies is None else summary(latencies)
    values = None if latencies is None else percentiles_us(latencies, tuple(_QUANTILES.values()))
    in_us: Mapping[str, float | None] = {
        "mean": found.latency_us_mean if found else None,
        "stddev": found.latency_us_stddev if found else None,
        **{name: values[place] if values else None for place, name in enumerate(_QUANTILES)},
        "max": found.latency_us_max if found else None,
    }
    for name, value in in_us.items():
        in_ms = None if value is None else value / 1000
        yield figure(f"latency_ms_{name}", in_ms, phase=phase, item=item, reason=reason)


def _without_lag(latencies: LatencyLog | None) -> Iterator[Figure]:
    reason = _NO_LOG if latencies is None else _NO_LAG
    series = LatencyKind.LATENCY_WITHOUT_LAG
    has_lag = latencies is not None and latencies.has_schedule_lag
    found = summary(latencies, series=series) if latencies is not None and has_lag else None
    yield figure(
        "latency_without_lag_ms_mean", found.latency_us_mean / 1000 if found else None, reason=reason
    )
    names = ("p50", "p95", "p99")
    quantiles = tuple(_QUANTILES[name] for name in names)
    values = (
        percentiles_us(latencies, quantiles, series=series) if latencies is not None and has_lag else None
    )
    for place, name in enumerate(names):
        yield figure(
            f"latency_without_lag_ms_{name}", values[place] / 1000 if values else None, reason=reason
        )
    lag = summary(latencies, series=LatencyKind.SCHEDULE_LAG) if latencies is not None and has_lag else None
    yield figure("schedule_lag_ms_mean", lag.latency_us_mean / 1000 if lag else None, reason=reason)
