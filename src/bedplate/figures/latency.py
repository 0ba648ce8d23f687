"""Figures from a `LatencyLog`: percentiles, shares, moments and the course over time.

Counts, sums, minimum, maximum, mean and standard deviation are exact. A percentile is the value of
its bucket: exact below 2048 µs, above that the middle of a bucket that is narrower than 0.1 % of its
value, so the error is under 0.05 %. All figures take a whole log or a selection of it
(`LatencyLog.select`), and are None where there is no transaction: absent is not zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.latency_log import EXACT_LIMIT_US, SUB_BUCKETS, LatencyKind, LatencyLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

COURSE_QUANTILES = {"latency_us_p50": 0.5, "latency_us_p95": 0.95, "latency_us_p99": 0.99}
# A log whose seconds lie further apart than this holds a broken clock, not a run.
_COURSE_LIMIT_S = 30 * 86400


@dataclass(frozen=True)
class LatencySummary:
    """Exact moments of the selected transactions; `latency_us_stddev` is the population's, as the client states it."""

    transactions: int
    latency_us_mean: float
    latency_us_stddev: float
    latency_us_min: int
    latency_us_max: int


def bucket_bounds_us(
    bucket: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first value of each bucket, and the first value after it, in µs."""
    wide = bucket.astype(np.int64)
    octave, place = np.divmod(np.maximum(wide - EXACT_LIMIT_US, 0), SUB_BUCKETS)
    exact = wide < EXACT_LIMIT_US
    lower = np.where(exact, wide, (SUB_BUCKETS + place) << (octave + 1))
    return lower, lower + np.where(exact, 1, np.int64(1) << (octave + 1))


def bucket_value_us(bucket: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
    """The value that stands for a bucket: the middle of the whole microseconds that it holds."""
    lower, after = bucket_bounds_us(bucket)
    return (lower + (after - 1)) / 2


def summary(log: LatencyLog, *, series: LatencyKind = LatencyKind.LATENCY) -> LatencySummary | None:
    """Moments of the selection; integers up to the last division, so no digits cancel."""
    rows = log.seconds.filter((pl.col("series") == int(series)) & (pl.col("transactions") > 0))
    if rows.is_empty():
        return None
    count, total = int(rows["transactions"].sum()), int(rows["us_sum"].sum())
    squares = (
        int(rows["us2_low"].sum())
        + (int(rows["us2_middle"].sum()) << 32)
        + (int(rows["us2_high"].sum()) << 64)
    )
    return LatencySummary(
        transactions=count,
        latency_us_mean=total / count,
        latency_us_stddev=math.sqrt((count * squares - total * total) / (count * count)),
        latency_us_min=int(rows.select(pl.col("us_min").min()).item()),
        latency_us_max=int(rows.select(pl.col("us_max").max()).item()),
    )


def percentiles_us(
    log: LatencyLog, quantiles: Sequence[float], *, series: LatencyKind = LatencyKind.LATENCY
) -> tuple[float, ...] | None:
    """Nearest-rank percentiles in µs: for each q of (0, 1] the value of rank ceil(q × n)."""
    _check_quantiles(quantiles)
    found = summary(log, series=series)
    if found is None:
        return None
    bucket, count = _totals(log, series)
    ranks = np.array([nearest_rank(quantile, found.transactions) for quantile in quantiles])
    value = bucket_value_us(bucket[np.searchsorted(np.cumsum(count), ranks)])
    return tuple(np.clip(value, found.latency_us_min, found.latency_us_max).tolist())


def share_below(
    log: LatencyLog, threshold_us: int, *, series: LatencyKind = LatencyKind.LATENCY
) -> float | None:
    """The exact share of transactions under the threshold, which must be a bound of a bucket.

    Every whole number up to 2048 is one, and so is 9000 (multiples of 8 up to 16384). ValueError names
    the nearest bounds otherwise: a share that is exact for one threshold and guessed for another
    would be read as exact for both.
    """
    bucket, count = _totals(log, series)
    every = np.arange(EXACT_LIMIT_US + 29 * SUB_BUCKETS)
    lower, _ = bucket_bounds_us(every)
    at = int(np.searchsorted(lower, threshold_us))
    if threshold_us < 1 or at == len(lower) or lower[at] != threshold_us:
        near = [int(lower[i]) for i in (at - 1, at) if 0 < i < len(lower)]
        raise ValueError(f"{threshold_us} µs is not a bound of a latency bucket; near it are {near}")
    total = int(count.sum())
    return None if total == 0 else int(count[bucket < at].sum()) / total


def course(
    log: LatencyLog,
    *,
    series: LatencyKind = LatencyKind.LATENCY,
    first_second: int | None = None,
    last_second: int | None = None,
) -> pl.DataFrame:
    """One row for each second, without gaps: a second in which nothing was completed is a row too.

    Columns: `second`, `transactions`, `skipped`, `failures`, `latency_us_mean`, `latency_us_p50`, `_p95`,
    `_p99`, `latency_us_max` (null where no transaction was completed). The range is the log's own
    unless it is given.
    """
    log = log.select(first_second=first_second, last_second=last_second)
    if log.seconds.is_empty() and (first_second is None or last_second is None):
        first, last = 0, -1
    else:
        seconds = log.seconds["second"].to_numpy()
        first = int(seconds.min()) if first_second is None else first_second
        last = int(seconds.max()) if last_second is None else last_second
    if last - first > _COURSE_LIMIT_S:
        raise OutputNotUnderstood(
            "the transaction log", expected="the seconds of one run", found=f"seconds from {first} to {last}"
        )
    failures = pl.sum_horizontal("failed", "serialization_failures", "deadlock_failures")
    outcomes = log.seconds.group_by("second").agg(pl.col("skipped").sum(), failures.sum().alias("failures"))
    some = (pl.col("series") == int(series)) & (pl.col("transactions") > 0)
    moments = (
        log.seconds.filter(some)
        .group_by("second")
        .agg(
            pl.col("transactions").sum(),
            (pl.col("us_sum").sum() / pl.col("transactions").sum()).alias("latency_us_mean"),
            pl.col("us_min").min().alias("latency_us_min"),
            pl.col("us_max").max().alias("latency_us_max"),
        )
        .sort("second")
    )
    counted = ("transactions", "skipped", "failures")
    return (
        pl.DataFrame({"second": pl.int_range(first, last + 1, dtype=pl.Int64, eager=True)})
        .join(outcomes, on="second", how="left")
        .join(_with_percentiles(log, moments, series), on="second", how="left")
        .with_columns(pl.col(counted).fill_null(0))
        .sort("second")
        .select("second", *counted, "latency_us_mean", *COURSE_QUANTILES, "latency_us_max")
    )


def _with_percentiles(log: LatencyLog, moments: pl.DataFrame, series: LatencyKind) -> pl.DataFrame:
    """`moments` (sorted by second) with a column for each percentile of the course.

    The running total over the whole histogram never falls, so one search in it finds the bucket of a
    rank in any second: that second's start plus the rank.
    """
    rows = log.histogram.filter(pl.col("series") == int(series))
    if rows["script"].n_unique() > 1:
        rows = rows.group_by("second", "bucket").agg(pl.col("count").sum()).sort("second", "bucket")
    running = np.cumsum(rows["count"].to_numpy())
    value = bucket_value_us(rows["bucket"].to_numpy())
    transactions = moments["transactions"].to_numpy().astype(np.int64)
    before = np.cumsum(transactions) - transactions
    low, high = moments["latency_us_min"].to_numpy(), moments["latency_us_max"].to_numpy()
    columns = []
    for name, quantile in COURSE_QUANTILES.items():
        rank = np.array([nearest_rank(quantile, count) for count in transactions.tolist()], dtype=np.int64)
        found = value[np.searchsorted(running, before + rank)]
        columns.append(pl.Series(name, np.clip(found, low, high), dtype=pl.Float64))
    return moments.with_columns(columns)


def _totals(log: LatencyLog, series: LatencyKind) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint64]]:
    """Buckets in ascending order and their counts over the selection."""
    rows = (
        log.histogram.lazy()
        .filter(pl.col("series") == int(series))
        .group_by("bucket")
        .agg(pl.col("count").sum())
        .sort("bucket")
        .collect()
    )
    return rows["bucket"].to_numpy(), rows["count"].to_numpy()


def nearest_rank(quantile: float, count: int) -> int:
    """ceil(q × n), from 1. A decimal such as 0.07 is a little more in binary: 0.07 × 100 is rank 7."""
    exact = quantile * count
    near = round(exact)
    return max(1, near if math.isclose(exact, near, rel_tol=1e-12) else math.ceil(exact))


def _check_quantiles(quantiles: Sequence[float]) -> None:
    wrong = [quantile for quantile in quantiles if not 0 < quantile <= 1]
    if wrong:
        raise ValueError(f"a quantile lies above 0 and up to 1, not {wrong}")
