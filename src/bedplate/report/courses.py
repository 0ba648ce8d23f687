"""Courses and latencies of runs, packed small for a page: rounded, by column, deflated.

A page opens faster when what nobody looks at stays packed: the script unpacks the runs that are
chosen, and those only.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from typing import TYPE_CHECKING, Any

import polars as pl

from bedplate.errors import StudyError
from bedplate.model.course import COURSE_FILE, LATENCY_FILE, SHOWN_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# More than a screen can show of a difference.
_DIGITS = 4
# Eight bins to a doubling of the latency: finer than the width of a line on the page.
_BINS_PER_DOUBLING = 8
_PARTED_BY_ZERO = ("warmup", "measure")


def rounded(value: float | None, digits: int = _DIGITS) -> float | None:
    """The value to so many significant digits; None for what is no finite number."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits - 1}e}")
    if not math.isfinite(short):
        return value
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def packed_course(directory: Path) -> str | None:
    """The course of a run as packed columns; None where the run has none.

    A run of several phases also has `phases`: the name of each, its first second and the one after its last.
    """
    path = directory / COURSE_FILE
    if not path.is_file():
        return None
    frame = _read(path)
    known = [name for name in SHOWN_COLUMNS if name in frame.columns]
    # One query for all columns: as many queries as columns would take longer than the rest of a page.
    short = frame.select(
        pl.col(name)
        if frame.schema[name].is_integer()
        else pl.col(name).cast(pl.Float64).fill_nan(None).round_sig_figs(_DIGITS)
        for name in known
    )
    columns: dict[str, Any] = {
        column.name: column.to_list() if column.dtype.is_integer() else _short(column.to_list())
        for column in short.iter_columns()
        if column.null_count() < len(column)
    }
    phases = _phases(frame)
    return packed(columns | {"phases": phases} if phases else columns)


def _phases(frame: pl.DataFrame) -> list[tuple[str, int, int]]:
    """Stretches of seconds of one phase; none for a warm-up and its measurement, which second 0 parts."""
    if "phase" not in frame.columns or frame["phase"].is_in(_PARTED_BY_ZERO).all():
        return []
    stretches = (
        frame.with_columns(pl.col("phase").rle_id().alias("stretch"))
        .group_by("stretch", "phase", maintain_order=True)
        .agg(pl.col("second").min().alias("first"), pl.col("second").max().alias("last"))
    )
    return [
        (str(row["phase"]), int(row["first"]), int(row["last"]) + 1)
        for row in stretches.iter_rows(named=True)
        if row["phase"] is not None
    ]


def packed_latencies(directory: Path) -> str | None:
    """The latencies of the measured window as `low_ms` (lower bounds), `high_ms` and `count`, packed.

    Summed over the seconds and the scripts of the run.
    """
    path = directory / LATENCY_FILE
    if not path.is_file():
        return None
    frame = _read(path)
    bins = (
        frame.lazy()
        .filter((pl.col("phase") == "measure") & (pl.col("count") > 0))
        .with_columns(
            (pl.max_horizontal(pl.col("latency_us_high"), 1e-3).log(2) * _BINS_PER_DOUBLING)
            .ceil()
            .alias("bin")
        )
        .group_by("bin")
        .agg(pl.col("latency_us_low").min(), pl.col("latency_us_high").max(), pl.col("count").sum())
        .sort("bin")
        .collect()
    )
    if bins.is_empty():
        return None
    return packed(
        {
            "low_ms": [rounded(value / 1000) for value in bins.get_column("latency_us_low")],
            "high_ms": [rounded(value / 1000) for value in bins.get_column("latency_us_high")],
            "count": bins.get_column("count").to_list(),
        }
    )


def packed(value: Any) -> str:
    """JSON, deflated (zlib), in base64: what the page's `unpack` takes apart."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), level=6)).decode("ascii")


def _short(values: Iterable[float | None]) -> list[float | None]:
    """Whole numbers without their `.0`; infinities become absent."""
    return [
        None
        if value is None or not math.isfinite(value)
        else int(value)
        if value.is_integer() and abs(value) < 1e15
        else value
        for value in values
    ]


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from error
