"""Decodes what the reader of the transaction log recorded: counts per second, script and latency bucket.

The format stands at the head of its driver (`drivers/pgbench_log.c`). A record that was cut off, and a missing
trailer, mean that the reader was killed: what is whole is kept, and `complete` is false.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from bedplate.errors import OutputNotUnderstood

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

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
        script: int | None = None,
    ) -> LatencyLog:
        """The same log, restricted to the seconds from `first_second` to `last_second`, and to one script."""
        wanted = pl.lit(True)
        if first_second is not None:
            wanted &= pl.col("second") >= first_second
        if last_second is not None:
            wanted &= pl.col("second") <= last_second
        if script is not None:
            wanted &= pl.col("script") == script
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


def _read_trailer(path: Path, data: bytes, at: int) -> LogTrailer | None:
    """None where the reader was killed before it wrote one, or while it did."""
    if at + _START.size > len(data) or data[at] != ord("T"):
        return None
    length = _START.unpack_from(data, at)[4]
    body = at + _START.size
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


def _seconds(records: npt.NDArray[Any]) -> pl.DataFrame:
    low = records["squares_low"]
    rows = pl.DataFrame(
        {
            "second": records["second"].astype(np.int64),
            "script": records["script"].astype(np.uint8),
            "series": records["series"].astype(np.uint8),
            "transactions": records["transactions"].astype(np.uint64),
            "us_sum": records["sum"].astype(np.uint64),
            # 32-bit limbs: adding up any number of records cannot overflow 64 bits.
            "us2_low": (low & np.uint64(0xFFFFFFFF)).astype(np.uint64),
            "us2_middle": (low >> np.uint64(32)).astype(np.uint64),
            "us2_high": records["squares_high"].astype(np.uint64),
            "us_min": records["min"].astype(np.uint64),
            "us_max": records["max"].astype(np.uint64),
            **{name: records[name].astype(np.uint64) for name in _OUTCOMES},
        }
    )
    some = pl.col("transactions") > 0
    added = ("transactions", "us_sum", "us2_low", "us2_middle", "us2_high")
    return (
        rows.with_columns(pl.when(some).then(pl.col("us_min", "us_max")))
        .group_by(_KEY, maintain_order=True)
        .agg(pl.col(added).sum(), pl.col("us_min").min(), pl.col("us_max").max(), pl.col(_OUTCOMES).sum())
    )


def _histogram(data: bytes, records: npt.NDArray[Any], offsets: npt.NDArray[np.int64]) -> pl.DataFrame:
    lengths = records["buckets"].astype(np.int64)
    starts = offsets + _RECORD.itemsize
    fixed = list(zip(starts.tolist(), lengths.tolist(), records["width"].tolist(), strict=True))
    buckets = [np.frombuffer(data, "<u2", length, start) for start, length, _ in fixed]
    counts = [
        np.frombuffer(data, f"<u{width}", length, start + 2 * length).astype(np.uint64)
        for start, length, width in fixed
    ]
    rows = pl.DataFrame(
        {
            "second": np.repeat(records["second"].astype(np.int64), lengths),
            "script": np.repeat(records["script"].astype(np.uint8), lengths),
            "series": np.repeat(records["series"].astype(np.uint8), lengths),
            "bucket": np.concatenate(buckets) if buckets else np.empty(0, np.uint16),
            "count": np.concatenate(counts) if counts else np.empty(0, np.uint64),
        }
    )
    keys = records[list(_KEY)]
    if len(keys) < 2 or not (keys[1:] == keys[:-1]).any():
        return rows
    # A second with late lines has several records.
    return rows.group_by(*_KEY, "bucket").agg(pl.col("count").sum()).sort(*_KEY, "bucket")


def _verify_sums(path: Path, log: LatencyLog, records: npt.NDArray[Any]) -> None:
    """The file says its totals three times over; a difference means that it is damaged."""
    expected = int(records["transactions"].sum())
    counted = int(log.histogram["count"].sum())
    if counted != expected:
        raise OutputNotUnderstood(
            _TOOL, expected=f"{expected} transactions in the buckets of {path}", found=str(counted)
        )
    latencies = int(records["transactions"][records["series"] == LatencyKind.LATENCY].sum())
    if log.trailer is not None and log.trailer.transactions != latencies:
        raise OutputNotUnderstood(
            _TOOL,
            expected=f"the {log.trailer.transactions} transactions of the trailer of {path}",
            found=str(latencies),
        )
