"""The files of one run over its time, and their columns: written by `figures`, read by `report`.

docs/STUDY_FORMAT.md lists the same columns; a test holds the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

COURSE_FILE = "course.parquet"
LATENCY_FILE = "latency.parquet"

# Each column, and whether the page shows it; the others are there for `bedplate export`.
_TRANSACTIONS: Mapping[str, bool] = {
    "tps": True,
    "latency_ms_mean": False,
    "latency_ms_p50": True,
    "latency_ms_p95": True,
    "latency_ms_p99": True,
    "latency_ms_max": True,
}
_COUNTERS: Mapping[str, bool] = {
    "device_reads_per_s": False,
    "device_writes_per_s": False,
    "device_flushes_per_s": False,
    "device_read_mib_per_s": True,
    "device_written_mib_per_s": True,
    "queue_depth": True,
    "dirty_mib": True,
    "writeback_mib": False,
    "memory_available_mib": False,
    "memory_cached_mib": False,
    "server_cpu": False,
    "client_cpu": False,
    "watching_cpu": False,
    "cpu_busy_share": False,
    "iowait_share": False,
    "steal_share": False,
    "pressure_io_some": True,
    "pressure_io_full": False,
    "pressure_cpu_some": False,
    "pressure_memory_some": False,
    "shared_buffers_hit_ratio": False,
    "page_cache_hit_ratio": False,
    "wal_mib_per_s": False,
    "buffers_checkpointer_per_s": False,
    "buffers_background_writer_per_s": False,
    "buffers_backend_per_s": False,
}
_COURSE: Mapping[str, bool] = {"second": True, "phase": False, **_TRANSACTIONS, **_COUNTERS}

TRANSACTION_COLUMNS = tuple(_TRANSACTIONS)
COUNTER_COLUMNS = tuple(_COUNTERS)
COURSE_COLUMNS = tuple(_COURSE)
SHOWN_COLUMNS = tuple(name for name, shown in _COURSE.items() if shown)
LATENCY_COLUMNS = ("phase", "second", "script", "latency_us_low", "latency_us_high", "count")
