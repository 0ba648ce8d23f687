"""Figures from the transaction log: speed, latencies, steadiness."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bedplate.figures.checkpoint_windows import SERVER_LOG_UNREADABLE
from bedplate.figures.latency import percentiles_us, share_below, summary
from bedplate.figures.latency_log import LatencyKind
from bedplate.figures.steadiness import SETTLING_S, divide, settled_after_s, steadiness, trend_share
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.figures.latency_log import LatencyLog
    from bedplate.figures.window import MeasuredWindow
    from bedplate.model.figure import Figure, Window

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


def transaction_count(log: LatencyLog) -> int:
    """Transactions that were processed."""
    return outcome_count(log, ("transactions",))


def outcome_count(log: LatencyLog, columns: Sequence[str] = _FAILURES) -> int:
    """The sum of columns of the log's seconds; without naming any, the transactions that failed."""
    rows = log.seconds.filter(pl.col("series") == int(LatencyKind.LATENCY))
    return sum(int(rows[name].sum()) for name in columns)


def tps_of_seconds(log: LatencyLog, window: MeasuredWindow) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Transactions of each whole second of the window; a second without any is zero, not unknown."""
    whole = window.whole_seconds
    counts = np.zeros(len(whole))
    rows = (
        log.seconds.filter(pl.col("series") == int(LatencyKind.LATENCY))
        .group_by("second")
        .agg(pl.col("transactions").sum())
    )
    place = rows["second"].to_numpy() - window.origin - whole.start
    inside = (place >= 0) & (place < len(whole))
    counts[place[inside]] = rows["transactions"].to_numpy()[inside]
    return counts


def transaction_figures(
    log: LatencyLog | None, window: MeasuredWindow, *, read_only: bool, rate_limited: bool
) -> Iterator[Figure]:
    """tps, counts, latencies, and the share of fast ones."""
    count = None if log is None else transaction_count(log)
    yield figure("tps", None if count is None else count / window.duration_s, reason=_NO_LOG)
    yield figure("transactions", count, reason=_NO_LOG)
    yield figure("transactions_failed", None if log is None else outcome_count(log), reason=_NO_LOG)
    yield figure(
        "transactions_skipped", None if log is None else outcome_count(log, ("skipped",)), reason=_NO_LOG
    )
    yield from _latencies(log, "measure", "")
    if rate_limited:
        yield from _without_lag(log)
    # Waiting for one's turn in the schedule says nothing about a cache.
    series = (
        LatencyKind.LATENCY_WITHOUT_LAG if log is not None and log.has_schedule_lag else LatencyKind.LATENCY
    )
    threshold_us = FAST_READ_ONLY_US if read_only else FAST_OTHER_US
    fast = None if log is None else share_below(log, threshold_us, series=series)
    yield figure("fast_transaction_share", fast, reason=_NO_LOG if log is None else _NO_TRANSACTION)


def script_figures(
    log: LatencyLog | None, window: MeasuredWindow, names: Sequence[str], phase: str
) -> Iterator[Figure]:
    """tps, counts and latencies of each script, in the order of the log's numbers; their phase is a part of the run."""
    for number, name in enumerate(names):
        own = None if log is None else log.select(script=number)
        counts: Mapping[str, float | None] = {
            "tps": None if own is None else transaction_count(own) / window.duration_s,
            "transactions": None if own is None else transaction_count(own),
            "transactions_failed": None if own is None else outcome_count(own),
        }
        for metric, value in counts.items():
            yield figure(metric, value, phase=phase, item=name, reason=_NO_LOG)
        yield from _latencies(own, phase, name)


def steadiness_figures(
    log: LatencyLog | None,
    window: MeasuredWindow,
    windows: tuple[Window, ...] | None,
    warmup_tps: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Iterator[Figure]:
    """Variation, trend and settling time; tps within, after and outside of checkpoints."""
    if log is None:
        for metric in _STEADINESS:
            yield figure(metric, None, reason=_NO_LOG)
        return
    tps = tps_of_seconds(log, window)
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


def _latencies(log: LatencyLog | None, phase: str, item: str) -> Iterator[Figure]:
    reason = _NO_LOG if log is None else _NO_TRANSACTION
    found = None if log is None else summary(log)
    values = None if log is None else percentiles_us(log, tuple(_QUANTILES.values()))
    in_us: Mapping[str, float | None] = {
        "mean": found.latency_us_mean if found else None,
        "stddev": found.latency_us_stddev if found else None,
        **{name: values[place] if values else None for place, name in enumerate(_QUANTILES)},
        "max": found.latency_us_max if found else None,
    }
    for name, value in in_us.items():
        in_ms = None if value is None else value / 1000
        yield figure(f"latency_ms_{name}", in_ms, phase=phase, item=item, reason=reason)


def _without_lag(log: LatencyLog | None) -> Iterator[Figure]:
    reason = _NO_LOG if log is None else _NO_LAG
    series = LatencyKind.LATENCY_WITHOUT_LAG
    has_lag = log is not None and log.has_schedule_lag
    found = summary(log, series=series) if log is not None and has_lag else None
    yield figure(
        "latency_without_lag_ms_mean", found.latency_us_mean / 1000 if found else None, reason=reason
    )
    names = ("p50", "p95", "p99")
    quantiles = tuple(_QUANTILES[name] for name in names)
    values = percentiles_us(log, quantiles, series=series) if log is not None and has_lag else None
    for place, name in enumerate(names):
        yield figure(
            f"latency_without_lag_ms_{name}", values[place] / 1000 if values else None, reason=reason
        )
    lag = summary(log, series=LatencyKind.SCHEDULE_LAG) if log is not None and has_lag else None
    yield figure("schedule_lag_ms_mean", lag.latency_us_mean / 1000 if lag else None, reason=reason)
