"""`course.parquet` and `latency.parquet`: one run over its time, a row for each second."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bedplate.figures.latency import bucket_bounds_us, course
from bedplate.figures.latency_log import LatencyKind
from bedplate.figures.samples import levels, rates
from bedplate.model.course import COUNTER_COLUMNS, COURSE_COLUMNS, LATENCY_COLUMNS, TRANSACTION_COLUMNS
from bedplate.units import KERNEL_SECTOR_BYTES, MIB

if TYPE_CHECKING:
    import numpy.typing as npt

    from bedplate.figures.latency_log import LatencyLog
    from bedplate.figures.samples import Samples
    from bedplate.figures.window import MeasuredWindow
    from bedplate.model.visit import Phase

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
        return pl.DataFrame(schema=_schema())
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


def _schema() -> dict[str, type[pl.DataType]]:
    return {"second": pl.Int64, "phase": pl.String} | dict.fromkeys(
        (*TRANSACTION_COLUMNS, *COUNTER_COLUMNS), pl.Float64
    )


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

    def both(name: str) -> npt.NDArray[np.float64]:
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
        "device_writes_per_s": both("writes"),
        "device_flushes_per_s": both("flushes"),
        "device_read_mib_per_s": read_from_device / MIB,
        "device_written_mib_per_s": both("written_sectors") * KERNEL_SECTOR_BYTES / MIB,
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


def _share(part: npt.NDArray[np.float64], whole: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Part / whole; not-a-number where the whole is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
