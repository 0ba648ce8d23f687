"""The course and the latencies of a run that nobody measured, as the reading side finds them in its folder."""

from __future__ import annotations

import io
import random
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.figure import Window

WARMUP_S = 10


def write_tables(
    place: Path, tps: float, span: int, windows: tuple[Window, ...], chance: random.Random
) -> None:
    """Both tables of a run of this speed."""
    _course(tps, span, windows, chance).write_parquet(place / "course.parquet")
    _latencies(tps, span, chance).write_parquet(place / "latency.parquet")


def write_same_tables(place: Path, span: int, windows: tuple[Window, ...]) -> None:
    """The tables of some run, made once: most of what a study takes to write."""
    for name, content in zip(("course", "latency"), _made_tables(span, windows), strict=True):
        (place / f"{name}.parquet").write_bytes(content)


@cache
def _made_tables(span: int, windows: tuple[Window, ...]) -> tuple[bytes, bytes]:
    chance = random.Random(0)
    course, latencies = io.BytesIO(), io.BytesIO()
    _course(1000.0, span, windows, chance).write_parquet(course)
    _latencies(1000.0, span, chance).write_parquet(latencies)
    return course.getvalue(), latencies.getvalue()


def _course(tps: float, span: int, windows: tuple[Window, ...], chance: random.Random) -> pl.DataFrame:
    seconds = range(-WARMUP_S, span)
    inside = [
        any(w.start_s <= s <= (w.end_s if w.end_s is not None else span) for w in windows) for s in seconds
    ]
    level = [
        tps * (0.7 if slow else 1.1) * min(1.0, 0.5 + (s + WARMUP_S) / 12) * chance.uniform(0.9, 1.1)
        for s, slow in zip(seconds, inside, strict=True)
    ]
    latency = [4000.0 / value for value in level]

    def times(factor: float) -> list[float]:
        return [value * factor * chance.uniform(0.8, 1.2) for value in latency]

    def around(value: float) -> list[float]:
        return [value * chance.uniform(0.7, 1.3) for _ in seconds]

    return pl.DataFrame(
        {
            "second": list(seconds),
            "phase": ["warmup" if s < 0 else "measure" for s in seconds],
            "tps": level,
            "latency_ms_mean": latency,
            "latency_ms_p50": times(0.8),
            "latency_ms_p95": times(2.0),
            "latency_ms_p99": times(4.5),
            "latency_ms_max": times(20.0),
            "device_reads_per_s": around(300),
            "device_writes_per_s": around(900),
            "device_flushes_per_s": around(400),
            "device_read_mib_per_s": around(4),
            "device_written_mib_per_s": [
                v * (3 if slow else 1) for v, slow in zip(around(12), inside, strict=True)
            ],
            "queue_depth": around(2.0),
            "dirty_mib": around(120),
            "writeback_mib": around(5),
            "memory_available_mib": around(6000),
            "memory_cached_mib": around(1500),
            "server_cpu": around(1.2),
            "client_cpu": around(0.3),
            "watching_cpu": around(0.01),
            "cpu_busy_share": around(0.6),
            "iowait_share": around(0.2),
            "steal_share": around(0.01),
            "pressure_io_some": around(0.4),
            "pressure_io_full": around(0.2),
            "pressure_cpu_some": around(0.1),
            "pressure_memory_some": [None for _ in seconds],
            "shared_buffers_hit_ratio": around(0.7),
            "page_cache_hit_ratio": around(0.7),
            "wal_mib_per_s": around(6),
            "buffers_checkpointer_per_s": around(500),
            "buffers_background_writer_per_s": around(80),
            "buffers_backend_per_s": around(20),
        },
        schema_overrides={"pressure_memory_some": pl.Float64},
    )


def _latencies(tps: float, span: int, chance: random.Random) -> pl.DataFrame:
    centre = 4e6 / tps
    edges = centre * 2 ** (np.arange(-8, 24) / 4)
    steps = np.arange(len(edges) - 1)
    weights = np.exp(-((steps - 6) ** 2) / 18) + np.where(steps > 20, 0.01, 0)
    noise = np.random.default_rng(chance.getrandbits(32)).uniform(0.9, 1.1, (span, len(steps)))
    counts = (tps * weights / weights.sum() * noise).astype(np.int64)
    return pl.DataFrame(
        {
            "phase": ["measure"] * counts.size,
            "second": np.repeat(np.arange(span), len(steps)),
            "script": np.zeros(counts.size, dtype=np.int64),
            "latency_us_low": np.tile(edges[:-1], span),
            "latency_us_high": np.tile(edges[1:], span),
            "count": counts.ravel(),
        }
    )
