"""The files of one run over its time, and their columns: written by `figures`, read by `analysis`, `page` and `export`.

The tables of docs/STUDY_FORMAT.md are made from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

COURSE_FILE = "course.parquet"
LATENCY_FILE = "latency.parquet"


class CourseColumn(NamedTuple):
    """A column: its meaning, its type in words, and whether the page shows it; the others are for `bedplate export`."""

    meaning: str
    kind: str = "number"
    shown: bool = False


_TRANSACTIONS: Mapping[str, CourseColumn] = {
    "tps": CourseColumn(
        "transactions that ended in the second; null, as are latencies, where the workload has none",
        shown=True,
    ),
    "latency_ms_mean": CourseColumn("of those transactions"),
    "latency_ms_p50": CourseColumn("median", shown=True),
    "latency_ms_p95": CourseColumn("95th percentile", shown=True),
    "latency_ms_p99": CourseColumn("99th percentile", shown=True),
    "latency_ms_max": CourseColumn("largest", shown=True),
}

_COUNTERS: Mapping[str, CourseColumn] = {
    "device_reads_per_s": CourseColumn("reads of the data device"),
    "device_writes_per_s": CourseColumn(
        "write requests, those that only ask for a flush among them (METHOD.md, “What the kernel counts of a device”)"
    ),
    "device_flushes_per_s": CourseColumn("flushes of data and journal device"),
    "device_read_mib_per_s": CourseColumn("MiB read from the data device", shown=True),
    "device_written_mib_per_s": CourseColumn("MiB written to data and journal device", shown=True),
    "queue_depth": CourseColumn("time in queue per second", shown=True),
    "dirty_mib": CourseColumn("dirty pages of the machine at the middle of the second", shown=True),
    "writeback_mib": CourseColumn("pages under writeback at the middle of the second"),
    "memory_available_mib": CourseColumn(
        "memory of the machine that could be had without swapping (`MemAvailable`), at the middle of the second"
    ),
    "memory_cached_mib": CourseColumn(
        "page cache of the machine with its shared memory (`Cached`), at the middle of the second"
    ),
    "server_cpu": CourseColumn("processors that the server kept busy"),
    "client_cpu": CourseColumn("processors that the client kept busy"),
    "watching_cpu": CourseColumn("processors that bedplate kept busy"),
    "cpu_busy_share": CourseColumn("user, system and interrupts / all"),
    "iowait_share": CourseColumn("waiting for I/O / all"),
    "steal_share": CourseColumn("taken by a hypervisor / all"),
    "pressure_io_some": CourseColumn("PSI io `some`, share of the second", shown=True),
    "pressure_io_full": CourseColumn("PSI io `full`, share of the second"),
    "pressure_cpu_some": CourseColumn("PSI cpu `some`, share of the second"),
    "pressure_memory_some": CourseColumn("PSI memory `some`, share of the second"),
    "shared_buffers_hit_ratio": CourseColumn("as the metric of this name (METRICS.md, “Caches”)"),
    "page_cache_hit_ratio": CourseColumn("as the metric of this name (METRICS.md, “Caches”)"),
    "wal_mib_per_s": CourseColumn("MiB of WAL generated"),
    "buffers_checkpointer_per_s": CourseColumn("buffers written by the checkpointer"),
    "buffers_background_writer_per_s": CourseColumn("buffers written by the background writer"),
    "buffers_backend_per_s": CourseColumn("buffers written by backends"),
}

COURSE: Mapping[str, CourseColumn] = {
    "second": CourseColumn(
        "0 is the second in which `measure` or the first phase began; negative in the warm-up",
        "whole number",
        shown=True,
    ),
    "phase": CourseColumn("name of the phase", "text"),
    **_TRANSACTIONS,
    **_COUNTERS,
}

LATENCY: Mapping[str, CourseColumn] = {
    "phase": CourseColumn("`warmup` or `measure`", "text"),
    "second": CourseColumn(
        "as in the course; both phases may have transactions in the second in which one ended", "whole number"
    ),
    "script": CourseColumn("index of the script", "whole number"),
    "latency_us_low": CourseColumn("lower bound, included", "whole number"),
    "latency_us_high": CourseColumn("upper bound, not included", "whole number"),
    "count": CourseColumn("transactions", "whole number"),
}

TRANSACTION_COLUMNS = tuple(_TRANSACTIONS)
COUNTER_COLUMNS = tuple(_COUNTERS)
COURSE_COLUMNS = tuple(COURSE)
SHOWN_COLUMNS = tuple(name for name, column in COURSE.items() if column.shown)
LATENCY_COLUMNS = tuple(LATENCY)


def filled(template: str, **values: object) -> str:
    """The template with values in place of its {names}, whole numbers with thousands apart; `{s}` makes a plural unless `n` is 1."""
    written = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
    return template.format(**{"s": "" if values.get("n") == 1 else "s", **written})


def and_more(count: int, most: int) -> str:
    """` and 3 more` behind the first `most` of `count`; empty where these are all."""
    return f" and {count - most} more" if count > most else ""


def first_of(words: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` of some words in a row, and how many more there are."""
    return f"{separator.join(words[:most])}{and_more(len(words), most)}"
