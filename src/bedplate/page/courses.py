"""Courses and latencies of runs, packed small for a page: in steps, by column, deflated.

A page opens faster when what nobody looks at stays packed: the script unpacks the runs that are
chosen, and those only.

A packed course is, deflated (zlib): the length of its head (4 bytes, the least first), the head as JSON, and for
each column of the head a byte for every second, or two planes of bytes (the lower ones first) where it has more
than 254 steps. Code 0 is an absent value, code 1 is `low`, code `steps` + 1 is `high`; between them steps are
equal, those of a logarithmic column in the logarithm.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from bedplate.analysis.course_file import course_scan, read_course
from bedplate.analysis.rounding import rounded
from bedplate.model import no_links
from bedplate.model.course import COURSE_FILE, LATENCY_FILE, SHOWN_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]

# Ends of a column, which the steps between them are made from.
_END_DIGITS = 7
# Eight bins to a doubling of the latency: finer than the width of a line on the page.
_BINS_PER_DOUBLING = 8
_PARTED_BY_ZERO = ("warmup", "measure")
_LOGARITHMIC = "latency_ms_"
_ONE_BYTE = 254
# Beyond so many seconds of all runs together, a page keeps a byte of a value: else it would weigh too much.
_FINE_SECONDS = 250_000


@dataclass(frozen=True)
class Precision:
    """Into how many steps the range of a column is cut: transactions and their latencies, and the lanes beside."""

    transactions: int
    beside: int

    def steps(self, column: str) -> int:
        """The steps of a column of the course."""
        is_main = column == "tps" or column.startswith(_LOGARITHMIC)
        return self.transactions if is_main else self.beside


FINE = Precision(65_000, 65_000)
# A step is no higher than the line is thick: lanes are drawn 186 and 87 pixels high at the most.
COARSE = Precision(180, 64)


def precision_for(seconds: float) -> Precision:
    """How fine the courses of a page are, from the seconds of all its runs together."""
    return FINE if seconds <= _FINE_SECONDS else COARSE


def packed_runs(
    directories: Sequence[Path | None], precision: Precision
) -> list[tuple[bytes | None, bytes | None]]:
    """The packed course and latencies of each run, in their order; None where there is none."""

    def both(directory: Path | None) -> tuple[bytes | None, bytes | None]:
        if directory is None:
            return None, None
        return packed_course(directory, precision), packed_latencies(directory)

    # Reading Parquet and deflating leave the interpreter to others meanwhile.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
        return list(workers.map(both, directories))


def packed_course(directory: Path, precision: Precision = FINE) -> bytes | None:
    """The course of a run, packed; None where the run has none.

    A run of several phases also has `phases`: the name of each, its first second and the one after its last.
    """
    path = directory / COURSE_FILE
    if not no_links.is_file(path):
        return None
    frame = read_course(path)
    seconds = frame.get_column("second").to_list()
    names = [name for name in SHOWN_COLUMNS if name != "second" and name in frame.columns]
    values = frame.select(pl.col(name).cast(pl.Float64) for name in names).to_numpy().astype(np.float64)
    head: dict[str, Any] = {"n": len(seconds), "columns": []}
    first = seconds[0] if seconds else 0
    if seconds == list(range(first, first + len(seconds))):
        head["first"] = first
    else:
        head["second"] = seconds
    planes: list[bytes] = []
    for place, name in enumerate(names):
        made = _in_steps(values[:, place], precision.steps(name), logarithmic=name.startswith(_LOGARITHMIC))
        if made is not None:
            column, plane = made
            head["columns"].append([name, *column])
            planes.append(plane)
    phases = _phases(frame)
    if phases:
        head["phases"] = phases
    words = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    return zlib.compress(b"".join((len(words).to_bytes(4, "little"), words, *planes)), level=6)


def _in_steps(values: Numbers, steps: int, *, logarithmic: bool) -> tuple[list[Any], bytes] | None:
    """A column's low, high, steps and whether they are of the logarithm, and its codes; None without a value."""
    known = np.isfinite(values)
    if not known.any():
        return None
    found = values[known]
    # Zeros have no logarithm.
    logarithmic = logarithmic and bool(np.min(found) > 0)
    least = float(np.min(found))
    low = rounded(least if logarithmic else min(least, 0.0), _END_DIGITS)
    high = rounded(float(np.max(found)), _END_DIGITS)
    ends = np.array([low, high], dtype=np.float64)
    if logarithmic:
        ends, found = np.log(ends), np.log(found)
    width = ends[1] - ends[0]
    codes = np.zeros(len(values), dtype=np.uint16)
    share = np.clip((found - ends[0]) / width, 0, 1) if width > 0 else np.zeros(len(found))
    codes[known] = 1 + np.rint(share * steps)
    planes = [(codes & 0xFF).astype(np.uint8).tobytes()]
    if steps > _ONE_BYTE:
        planes.append((codes >> 8).astype(np.uint8).tobytes())
    return [low, high, steps, int(logarithmic)], b"".join(planes)


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


def packed_latencies(directory: Path) -> bytes | None:
    """The latencies of the measured window as `low_ms` (lower bounds), `high_ms` and `count`, packed.

    Summed over the seconds and the scripts of the run.
    """
    path = directory / LATENCY_FILE
    if not no_links.is_file(path):
        return None
    # Most seconds have the same bounds: they are summed first, and put into bins when few are left. A run of a day has millions of
    # rows, which need not be there at once.
    with course_scan(path) as rows:
        found = (
            rows.filter((pl.col("phase") == "measure") & (pl.col("count") > 0))
            .group_by("latency_us_low", "latency_us_high")
            .agg(pl.col("count").sum())
            .collect(engine="streaming")
        )
    bins = (
        found.with_columns(
            (pl.max_horizontal(pl.col("latency_us_high"), 1e-3).log(2) * _BINS_PER_DOUBLING)
            .ceil()
            .alias("bin")
        )
        .group_by("bin")
        .agg(pl.col("latency_us_low").min(), pl.col("latency_us_high").max(), pl.col("count").sum())
        .sort("bin")
    )
    if bins.is_empty():
        return None
    return _deflated(
        {
            "low_ms": [rounded(value / 1000) for value in bins.get_column("latency_us_low")],
            "high_ms": [rounded(value / 1000) for value in bins.get_column("latency_us_high")],
            "count": bins.get_column("count").to_list(),
        }
    )


def packed(value: Any) -> str:
    """JSON, deflated (zlib), in base64: what the page's `unpack` takes apart."""
    return base64.b64encode(_deflated(value)).decode("ascii")


def _deflated(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":"), allow_nan=False).encode(), level=6)
