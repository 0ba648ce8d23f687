"""`course.parquet` and `latency.parquet`: one run over its time, a row for each second."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.samples import MeasuredWindow, Samples, levels, rates
from bedplate.model.course import COUNTER_COLUMNS, COURSE_COLUMNS, LATENCY_COLUMNS, TRANSACTION_COLUMNS
from bedplate.model.visit import Phase
from bedplate.units import KERNEL_SECTOR_BYTES, MIB

FORMAT_VERSION = 1
EXACT_LIMIT_US = 2048
SUB_BUCKETS = 1024

_TOOL = "the latency record"
_HEADER = struct.Struct("<8sIIIIQ")
_MAGIC = b"BEDPGLOG"
_START = struct.Struct("<BBBBI")
_TRAILER = struct.Struct("<6Q")
_END = b"BEDPGEND"
_FLAG_SCHEDULE_LAG = 1
_FLAG_RETRIES = 2
_OUTCOMES = ("skipped", "failed", "serialization_failures", "deadlock_failures", "retried", "retries")

_RECORD = np.dtype(
    [
        ("kind", "u1"),
        ("script", "u1"),
        ("series", "u1"),
        ("width", "u1"),
        ("buckets", "<u4"),
        ("second", "<i8"),
        *((name, "<u8") for name in ("transactions", "sum", "squares_low", "squares_high", "min", "max")),
        *((name, "<u8") for name in _OUTCOMES),
    ]
)

_KEY = ("second", "script", "series")


class LatencyKind(IntEnum):
    """What was counted. The last two exist only where the log has the schedule lag, as under a rate."""

    LATENCY = 0
    """As the client logs it; under a rate that includes the schedule lag."""
    LATENCY_WITHOUT_LAG = 1
    """Latency minus schedule lag: the time that the database took."""
    SCHEDULE_LAG = 2
    """How late a transaction began, behind its place in the schedule."""


@dataclass(frozen=True)
class LogTrailer:
    """What the reader said at its end."""

    lines: int
    transactions: int
    malformed_lines: int
    truncated_lines: int
    files: int
    size_bytes: int
    first_malformed: str | None


@dataclass(frozen=True)
class LatencyLog:
    """The record of one run, or a selection of its seconds and scripts.

    `seconds`: one row per (`second`, `script`, `series`), sorted: `transactions`, `us_sum`, the sum of
    squares in three limbs (`us2_low` and `us2_middle` of 32 bits, `us2_high`), `us_min`, `us_max` (null
    without transactions), and, in rows of `Series.LATENCY` only, the outcomes `skipped`, `failed`,
    `serialization_failures`, `deadlock_failures`, `retried`, `retries` (else 0). `second` is the second
    of completion since the epoch. `transactions` are the completed ones.

    `histogram`: (`second`, `script`, `series`, `bucket`, `count`), sorted, no zero counts.
    """

    seconds: pl.DataFrame
    histogram: pl.DataFrame
    has_schedule_lag: bool
    has_retries: bool
    trailer: LogTrailer | None

    @property
    def complete(self) -> bool:
        """Whether the reader came to its end; otherwise it was killed and transactions are missing."""
        return self.trailer is not None

    def select(
        self,
        *,
        first_second: int | None = None,
        last_second: int | None = None,
        index: int | None = None,
    ) -> LatencyLog:
        """The same log, restricted to the seconds from `first_second` to `last_second`, and to one script."""
        wanted = pl.lit(True)
        if first_second is not None:
            wanted &= pl.col("second") >= first_second
        if last_second is not None:
            wanted &= pl.col("second") <= last_second
        if index is not None:
            wanted &= pl.col("script") == index
        return replace(self, seconds=self.seconds.filter(wanted), histogram=self.histogram.filter(wanted))


def read_latency_log(path: Path) -> LatencyLog:
    """Read a record whole; `OutputNotUnderstood` where it is damaged or of another version."""
    data = path.read_bytes()
    flags = _read_header(path, data)
    offsets, end = _record_offsets(path, data)
    records = _records(data, offsets)
    order = np.lexsort((records["series"], records["script"], records["second"]))
    records, offsets = records[order], offsets[order]
    log = LatencyLog(
        seconds=_seconds(records),
        histogram=_histogram(data, records, offsets),
        has_schedule_lag=bool(flags & _FLAG_SCHEDULE_LAG),
        has_retries=bool(flags & _FLAG_RETRIES),
        trailer=_read_trailer(path, data, end),
    )
    _verify_sums(path, log, records)
    return log


def _read_header(path: Path, data: bytes) -> int:
    if len(data) < _HEADER.size or data[:8] != _MAGIC:
        raise OutputNotUnderstood(_TOOL, expected=f"{_MAGIC!r} at the start of {path}", found=repr(data[:8]))
    _, version, flags, exact, sub_buckets, _ = _HEADER.unpack_from(data)
    if (version, exact, sub_buckets) != (FORMAT_VERSION, EXACT_LIMIT_US, SUB_BUCKETS):
        raise OutputNotUnderstood(
            _TOOL,
            expected=f"version {FORMAT_VERSION} with {EXACT_LIMIT_US} and {SUB_BUCKETS} buckets in {path}",
            found=f"version {version} with {exact} and {sub_buckets}",
        )
    return int(flags)


def _record_offsets(path: Path, data: bytes) -> tuple[npt.NDArray[np.int64], int]:
    """Where the whole records begin, and where the trailer, or what was cut off, begins."""
    offsets: list[int] = []
    at, size = _HEADER.size, len(data)
    while at + _START.size <= size:
        kind, _script, series, width, buckets = _START.unpack_from(data, at)
        if kind == ord("T"):
            break
        if kind != ord("S") or series > max(LatencyKind) or width not in (1, 2, 4):
            raise OutputNotUnderstood(
                _TOOL, expected=f"a record at byte {at} of {path}", found=data[at : at + 16].hex()
            )
        end = at + _RECORD.itemsize + buckets * (2 + width)
        if end > size:
            break
        offsets.append(at)
        at = end
    return np.array(offsets, dtype=np.int64), at


def _read_trailer(path: Path, data: bytes, offset: int) -> LogTrailer | None:
    """None where the reader was killed before it wrote one, or while it did."""
    if offset + _START.size > len(data) or data[offset] != ord("T"):
        return None
    length = _START.unpack_from(data, offset)[4]
    body = offset + _START.size
    end = body + _TRAILER.size + length
    if len(data) < end + len(_END):
        return None
    if data[end:] != _END:
        raise OutputNotUnderstood(_TOOL, expected=f"{_END!r} at the end of {path}", found=repr(data[end:]))
    quote = data[body + _TRAILER.size : end].decode(errors="replace")
    lines, transactions, malformed, truncated, files, size = _TRAILER.unpack_from(data, body)
    return LogTrailer(lines, transactions, malformed, truncated, files, size, quote or None)


def _records(data: bytes, offsets: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The fixed parts, gathered from between the buckets: one row per record."""
    every = np.frombuffer(data, dtype=np.uint8)
    rows: npt.NDArray[Any] = every[offsets[:, None] + np.arange(_RECORD.itemsize)]
    return rows.reshape(-1).view(_RECORD)


def _seconds(array: npt.NDArray[Any]) -> pl.DataFrame:
    low = array["squares_low"]
    rows = pl.DataFrame(
        {
            "second": array["second"].astype(np.int64),
            "script": array["script"].astype(np.uint8),
            "series": array["series"].astype(np.uint8),
            "transactions": array["transactions"].astype(np.uint64),
            "us_sum": array["sum"].astype(np.uint64),
            # 32-bit limbs: adding up any number of records cannot overflow 64 bits.
            "us2_low": (low & np.uint64(0xFFFFFFFF)).astype(np.uint64),
            "us2_middle": (low >> np.uint64(32)).astype(np.uint64),
            "us2_high": array["squares_high"].astype(np.uint64),
            "us_min": array["min"].astype(np.uint64),
            "us_max": array["max"].astype(np.uint64),
            **{name: array[name].astype(np.uint64) for name in _OUTCOMES},
        }
    )
    some = pl.col("transactions") > 0
    added = ("transactions", "us_sum", "us2_low", "us2_middle", "us2_high")
    return (
        rows.with_columns(pl.when(some).then(pl.col("us_min", "us_max")))
        .group_by(_KEY, maintain_order=True)
        .agg(pl.col(added).sum(), pl.col("us_min").min(), pl.col("us_max").max(), pl.col(_OUTCOMES).sum())
    )


def _histogram(data: bytes, array: npt.NDArray[Any], offsets: npt.NDArray[np.int64]) -> pl.DataFrame:
    lengths = array["buckets"].astype(np.int64)
    starts = offsets + _RECORD.itemsize
    fixed = list(zip(starts.tolist(), lengths.tolist(), array["width"].tolist(), strict=True))
    buckets = [np.frombuffer(data, "<u2", length, start) for start, length, _ in fixed]
    counts = [
        np.frombuffer(data, f"<u{width}", length, start + 2 * length).astype(np.uint64)
        for start, length, width in fixed
    ]
    rows = pl.DataFrame(
        {
            "second": np.repeat(array["second"].astype(np.int64), lengths),
            "script": np.repeat(array["script"].astype(np.uint8), lengths),
            "series": np.repeat(array["series"].astype(np.uint8), lengths),
            "bucket": np.concatenate(buckets) if buckets else np.empty(0, np.uint16),
            "count": np.concatenate(counts) if counts else np.empty(0, np.uint64),
        }
    )
    keys = array[list(_KEY)]
    if len(keys) < 2 or not (keys[1:] == keys[:-1]).any():
        return rows
    # A second with late lines has several records.
    return rows.group_by(*_KEY, "bucket").agg(pl.col("count").sum()).sort(*_KEY, "bucket")


def _verify_sums(path: Path, latency_log: LatencyLog, array: npt.NDArray[Any]) -> None:
    """The file says its totals three times over; a difference means that it is damaged."""
    expected = int(array["transactions"].sum())
    counted = int(latency_log.histogram["count"].sum())
    if counted != expected:
        raise OutputNotUnderstood(
            _TOOL, expected=f"{expected} transactions in the buckets of {path}", found=str(counted)
        )
    latencies = int(array["transactions"][array["series"] == LatencyKind.LATENCY].sum())
    if latency_log.trailer is not None and latency_log.trailer.transactions != latencies:
        raise OutputNotUnderstood(
            _TOOL,
            expected=f"the {latency_log.trailer.transactions} transactions of the trailer of {path}",
            found=str(latencies),
        )


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


def summary(latencies: LatencyLog, *, series: LatencyKind = LatencyKind.LATENCY) -> LatencySummary | None:
    """Moments of the selection; integers up to the last division, so no digits cancel."""
    rows = latencies.seconds.filter((pl.col("series") == int(series)) & (pl.col("transactions") > 0))
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
    latencies: LatencyLog, quantiles: Sequence[float], *, series: LatencyKind = LatencyKind.LATENCY
) -> tuple[float, ...] | None:
    """Nearest-rank percentiles in µs: for each q of (0, 1] the value of rank ceil(q × n)."""
    _check_quantiles(quantiles)
    found = summary(latencies, series=series)
    if found is None:
        return None
    bucket, count = _totals(latencies, series)
    ranks = np.array([nearest_rank(quantile, found.transactions) for quantile in quantiles])
    value = bucket_value_us(bucket[np.searchsorted(np.cumsum(count), ranks)])
    return tuple(np.clip(value, found.latency_us_min, found.latency_us_max).tolist())


def share_below(
    latencies: LatencyLog, threshold_us: int, *, series: LatencyKind = LatencyKind.LATENCY
) -> float | None:
    """The exact share of transactions under the threshold, which must be a bound of a bucket.

    Every whole number up to 2048 is one, and so is 9000 (multiples of 8 up to 16384). ValueError names
    the nearest bounds otherwise: a share that is exact for one threshold and guessed for another
    would be read as exact for both.
    """
    bucket, count = _totals(latencies, series)
    every = np.arange(EXACT_LIMIT_US + 29 * SUB_BUCKETS)
    lower, _ = bucket_bounds_us(every)
    at = int(np.searchsorted(lower, threshold_us))
    if threshold_us < 1 or at == len(lower) or lower[at] != threshold_us:
        near = [int(lower[i]) for i in (at - 1, at) if 0 < i < len(lower)]
        raise ValueError(f"{threshold_us} µs is not a bound of a latency bucket; near it are {near}")
    total = int(count.sum())
    return None if total == 0 else int(count[bucket < at].sum()) / total


def course(
    latencies: LatencyLog,
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
    latencies = latencies.select(first_second=first_second, last_second=last_second)
    if latencies.seconds.is_empty() and (first_second is None or last_second is None):
        first, last = 0, -1
    else:
        seconds = latencies.seconds["second"].to_numpy()
        first = int(seconds.min()) if first_second is None else first_second
        last = int(seconds.max()) if last_second is None else last_second
    if last - first > _COURSE_LIMIT_S:
        raise OutputNotUnderstood(
            "the transaction log", expected="the seconds of one run", found=f"seconds from {first} to {last}"
        )
    failures = pl.sum_horizontal("failed", "serialization_failures", "deadlock_failures")
    outcomes = latencies.seconds.group_by("second").agg(
        pl.col("skipped").sum(), failures.sum().alias("failures")
    )
    some = (pl.col("series") == int(series)) & (pl.col("transactions") > 0)
    moments = (
        latencies.seconds.filter(some)
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
        .join(_with_percentiles(latencies, moments, series), on="second", how="left")
        .with_columns(pl.col(counted).fill_null(0))
        .sort("second")
        .select("second", *counted, "latency_us_mean", *COURSE_QUANTILES, "latency_us_max")
    )


def _with_percentiles(latencies: LatencyLog, moments: pl.DataFrame, series: LatencyKind) -> pl.DataFrame:
    """`moments` (sorted by second) with a column for each percentile of the course.

    The running total over the whole histogram never falls, so one search in it finds the bucket of a
    rank in any second: that second's start plus the rank.
    """
    rows = latencies.histogram.filter(pl.col("series") == int(series))
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


def _totals(
    latencies: LatencyLog, series: LatencyKind
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint64]]:
    """Buckets in ascending order and their counts over the selection."""
    rows = (
        latencies.histogram.lazy()
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


# An edge second of which less than half lies in the window has no rate: it would be mostly noise.
_COVERED_MIN = 0.5

_SIGNIFICANT_BITS = 7
_LATENCIES = ("mean", "p50", "p95", "p99", "max")
_CPU_STATES = ("user", "system", "irq", "idle", "iowait", "steal")
_BUSY_STATES = ("user", "system", "irq")

# A counter of a tool that says how many transactions have ended, and logs none of them.
TRANSACTIONS_ENDED = "tool.transactions"


@dataclass(frozen=True)
class Stretch:
    """One phase of the course: its transaction log, and the seconds that it covers."""

    phase: str
    window: MeasuredWindow
    log: LatencyLog | None


def make_course(
    stretches: tuple[Stretch, ...],
    measure: MeasuredWindow,
    clock: Phase,
    samples: Samples,
    block_bytes: int | None,
) -> pl.DataFrame:
    """One row for each second of all stretches, `COURSE_COLUMNS`, null where nothing is known.

    `measure` gives second 0. `clock` maps the samples' monotonic clock to the wall clock. A second in
    which one phase ends and the next begins is the next one's.
    """
    parts = []
    for i, stretch in enumerate(stretches):
        first = stretch.window.origin - measure.origin
        last = int(np.ceil(stretch.window.end_wall_s)) - 1 - measure.origin
        if i + 1 < len(stretches):
            last = min(last, stretches[i + 1].window.origin - 1 - measure.origin)
        if last >= first:
            parts.append(_transactions(stretch, measure.origin, first, last))
    if not parts:
        return pl.DataFrame(
            schema=(
                {"second": pl.Int64, "phase": pl.String}
                | dict.fromkeys((*TRANSACTION_COLUMNS, *COUNTER_COLUMNS), pl.Float64)
            )
        )
    rows = pl.concat(parts)
    seconds = rows["second"].to_numpy().astype(np.float64)
    counters = _counters(samples, clock, seconds + measure.origin, block_bytes)
    if TRANSACTIONS_ENDED in samples.values:
        counters.append(_rates_of(samples, clock, seconds + measure.origin, TRANSACTIONS_ENDED).alias("tps"))
    # A NaN is a number to Parquet's readers; what is not known is null.
    return rows.with_columns(counters).with_columns(pl.col(pl.Float64).fill_nan(None)).select(COURSE_COLUMNS)


def make_latencies(stretches: tuple[Stretch, ...], measure: MeasuredWindow) -> pl.DataFrame:
    """The latency histogram of every second and script, `LATENCY_COLUMNS`; bounds are low ≤ x < high.

    Coarser than the log's, for pictures and not for percentiles (those of `run.json` are made from the
    log itself): exact below 128 µs, above it bounds keep 7 significant bits, 0.8 to 1.6 % apart.
    """
    parts = []
    for stretch in stretches:
        if stretch.log is None:
            continue
        rows = stretch.log.histogram.filter(pl.col("series") == int(LatencyKind.LATENCY))
        low, high = _coarse_bounds_us(bucket_bounds_us(rows["bucket"].to_numpy())[0])
        parts.append(
            rows.select(
                pl.lit(stretch.phase).alias("phase"),
                (pl.col("second") - measure.origin).cast(pl.Int32),
                pl.col("script"),
                pl.Series("latency_us_low", low, dtype=pl.Int64),
                pl.Series("latency_us_high", high, dtype=pl.Int64),
                pl.col("count").cast(pl.UInt32),
            )
            .group_by(LATENCY_COLUMNS[:-1])
            .agg(pl.col("count").sum())
            .sort("second", "script", "latency_us_low")
        )
    if not parts:
        return pl.DataFrame(
            schema={
                "phase": pl.String,
                "second": pl.Int32,
                "script": pl.UInt8,
                "latency_us_low": pl.Int64,
                "latency_us_high": pl.Int64,
                "count": pl.UInt32,
            }
        )
    return pl.concat(parts)


def _coarse_bounds_us(low: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The coarse bucket around each fine one; fine bounds are nested in the coarse ones."""
    bits = np.frexp(low.astype(np.float64))[1]
    width = np.int64(1) << np.maximum(bits - _SIGNIFICANT_BITS, 0).astype(np.int64)
    coarse = low // width * width
    return coarse, coarse + width


def _transactions(stretch: Stretch, origin: int, first: int, last: int) -> pl.DataFrame:
    """Rows from second `first` to `last` with tps and latencies."""
    offset = stretch.window.origin - origin
    covered = np.array([stretch.window.coverage(second - offset) for second in range(first, last + 1)])
    base = pl.DataFrame({"second": np.arange(first, last + 1, dtype=np.int64)}).with_columns(
        pl.lit(stretch.phase).alias("phase")
    )
    if stretch.log is None:
        empty = [pl.lit(None, dtype=pl.Float64).alias(name) for name in TRANSACTION_COLUMNS]
        return base.with_columns(empty)
    found = course(stretch.log, first_second=origin + first, last_second=origin + last)
    enough = covered >= _COVERED_MIN
    tps = np.full(len(covered), np.nan)
    tps[enough] = found["transactions"].to_numpy()[enough] / covered[enough]
    latencies = [
        (found[f"latency_us_{name}"] / 1000).cast(pl.Float64).alias(f"latency_ms_{name}")
        for name in _LATENCIES
    ]
    return base.with_columns(pl.Series("tps", tps), *latencies)


def _rates_of(samples: Samples, clock: Phase, seconds: npt.NDArray[np.float64], name: str) -> pl.Series:
    """The growth of one counter in each of these seconds."""
    moments = samples.monotonic_s - clock.start_monotonic_s + clock.start_wall_s
    edges = np.unique(np.concatenate([seconds, seconds + 1]))
    return pl.Series(name, rates(moments, samples.values[name], edges)[np.searchsorted(edges, seconds)])


def _counters(
    samples: Samples, clock: Phase, seconds: npt.NDArray[np.float64], block_bytes: int | None
) -> list[pl.Series]:
    """Every column of `COUNTER_COLUMNS` at the given wall-clock seconds (whole, ascending)."""
    moments = samples.monotonic_s - clock.start_monotonic_s + clock.start_wall_s
    # Phases may lie apart, so each second has its own two edges.
    edges = np.unique(np.concatenate([seconds, seconds + 1]))
    place = np.searchsorted(edges, seconds)

    def rate(name: str) -> npt.NDArray[np.float64]:
        if name not in samples.values or len(seconds) == 0:
            return np.full(len(seconds), np.nan)
        return rates(moments, samples.values[name], edges)[place]

    def level(name: str) -> npt.NDArray[np.float64]:
        if name not in samples.values or len(seconds) == 0:
            return np.full(len(seconds), np.nan)
        return levels(moments, samples.values[name], edges)[place]

    has_journal_device = any(name.startswith("journal_device.") for name in samples.values)

    def rate_of_disks(name: str) -> npt.NDArray[np.float64]:
        return rate(f"device.{name}") + (rate(f"journal_device.{name}") if has_journal_device else 0.0)

    processors = {state: rate(f"cpu.{state}_s") for state in _CPU_STATES}
    all_processors = sum(processors.values(), start=np.zeros(len(seconds)))
    busy = sum((processors[state] for state in _BUSY_STATES), start=np.zeros(len(seconds)))
    hit, missed = rate("postgresql.blks_hit"), rate("postgresql.blks_read")
    read_by_server = (
        rate("postgresql.read_bytes")
        if "postgresql.read_bytes" in samples.values
        else missed * (math.nan if block_bytes is None else block_bytes)
    )
    read_from_device = rate("device.read_sectors") * KERNEL_SECTOR_BYTES
    queue = rate("device.time_in_queue_ms") / 1000
    columns = {
        "device_reads_per_s": rate("device.reads"),
        "device_writes_per_s": rate_of_disks("writes"),
        "device_flushes_per_s": rate_of_disks("flushes"),
        "device_read_mib_per_s": read_from_device / MIB,
        "device_written_mib_per_s": rate_of_disks("written_sectors") * KERNEL_SECTOR_BYTES / MIB,
        "queue_depth": queue,
        "dirty_mib": level("memory.dirty_bytes") / MIB,
        "writeback_mib": level("memory.writeback_bytes") / MIB,
        "memory_available_mib": level("memory.available_bytes") / MIB,
        "memory_cached_mib": level("memory.cached_bytes") / MIB,
        "server_cpu": rate("server.cpu_s"),
        "client_cpu": rate("client.cpu_s"),
        "watching_cpu": rate("watching.cpu_s"),
        "cpu_busy_share": _share(busy, all_processors),
        "iowait_share": _share(processors["iowait"], all_processors),
        "steal_share": _share(processors["steal"], all_processors),
        "pressure_io_some": rate("pressure.io.some.total_us") / 1e6,
        "pressure_io_full": rate("pressure.io.full.total_us") / 1e6,
        "pressure_cpu_some": rate("pressure.cpu.some.total_us") / 1e6,
        "pressure_memory_some": rate("pressure.memory.some.total_us") / 1e6,
        "shared_buffers_hit_ratio": _share(hit, hit + missed),
        "page_cache_hit_ratio": _hits(_share(read_from_device, read_by_server)),
        "wal_mib_per_s": rate("postgresql.wal_bytes") / MIB,
        "buffers_checkpointer_per_s": rate("postgresql.buffers_checkpointer"),
        "buffers_background_writer_per_s": rate("postgresql.buffers_background_writer"),
        "buffers_backend_per_s": rate("postgresql.buffers_backend"),
    }
    return [pl.Series(name, columns[name], dtype=pl.Float64) for name in COUNTER_COLUMNS]


def _hits(missed: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """1 - missed; not-a-number where read-ahead made the device read more than was asked for."""
    return np.where(missed <= 1, 1 - missed, np.nan)


def _share(part: npt.NDArray[np.float64], total: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Part / whole; not-a-number where the whole is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, part / total, np.nan)
