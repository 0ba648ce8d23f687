"""The registry of metrics: every figure's name, unit, scale, better direction and definition.

docs/METHOD.md lists the same names; a test holds the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.figure import Better, Figure, Metric, Scale, Status
from bedplate.model.lmdb_metrics import LMDB_METRICS
from bedplate.model.power_cut_metrics import POWER_CUT_METRICS
from bedplate.model.raw_metrics import RAW_METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_RATIO, _PROPORTION, _COUNT, _SHARE = Scale.RATIO, Scale.PROPORTION, Scale.COUNT, Scale.SHARE

_LATENCIES = (
    Metric(
        "latency_ms_mean",
        "ms",
        _RATIO,
        _LOWER,
        "mean latency of the transactions, or of the tool's operations, that were processed",
    ),
    Metric("latency_ms_stddev", "ms", _RATIO, _LOWER, "standard deviation of the latency"),
    Metric("latency_ms_p50", "ms", _RATIO, _LOWER, "median latency"),
    Metric("latency_ms_p95", "ms", _RATIO, _LOWER, "95th percentile of the latency"),
    Metric("latency_ms_p99", "ms", _RATIO, _LOWER, "99th percentile of the latency"),
    Metric("latency_ms_p99_9", "ms", _RATIO, _LOWER, "99.9th percentile of the latency"),
    Metric("latency_ms_max", "ms", _RATIO, _LOWER, "largest latency of one transaction or operation"),
)

# Under a rate limit pgbench counts latency from the scheduled start; both readings are kept.
_RATE_LIMITED = (
    Metric("latency_without_lag_ms_mean", "ms", _RATIO, _LOWER, "mean latency without schedule lag"),
    Metric("latency_without_lag_ms_p50", "ms", _RATIO, _LOWER, "median latency without schedule lag"),
    Metric("latency_without_lag_ms_p95", "ms", _RATIO, _LOWER, "95th percentile without schedule lag"),
    Metric("latency_without_lag_ms_p99", "ms", _RATIO, _LOWER, "99th percentile without schedule lag"),
    Metric("schedule_lag_ms_mean", "ms", _RATIO, _LOWER, "mean delay between scheduled and real start"),
)

_TRANSACTIONS = (
    Metric("tps", "1/s", _RATIO, _HIGHER, "transactions processed in the measured window, per second"),
    Metric("transactions", "1", _COUNT, _NEITHER, "transactions processed in the measured window"),
    Metric("transactions_failed", "1", _COUNT, _LOWER, "transactions that ended in an error"),
    Metric("transactions_skipped", "1", _COUNT, _LOWER, "transactions skipped under a rate and a limit"),
    Metric("tps_cv", "share", _RATIO, _LOWER, "coefficient of variation of the tps of each second"),
    Metric("tps_trend", "share", _SHARE, _NEITHER, "growth of tps over the window (Theil–Sen) / its mean"),
    Metric("tps_in_checkpoint", "1/s", _RATIO, _HIGHER, "tps in seconds within a checkpoint"),
    Metric("tps_settling", "1/s", _RATIO, _HIGHER, "tps in the 10 s after a checkpoint has ended"),
    Metric(
        "tps_outside",
        "1/s",
        _RATIO,
        _HIGHER,
        "tps in seconds that are neither within a checkpoint nor in the 10 s after one",
    ),
    Metric("tps_in_checkpoint_cv", "share", _RATIO, _LOWER, "variation of tps within checkpoints"),
    Metric("tps_settling_cv", "share", _RATIO, _LOWER, "variation of tps in the settling time"),
    Metric("tps_outside_cv", "share", _RATIO, _LOWER, "variation of tps outside"),
    Metric("settle_s", "s", _RATIO, _LOWER, "time from the start of the warm-up until tps was steady"),
)

_CACHES = (
    Metric(
        "shared_buffers_hit_ratio",
        "share",
        _PROPORTION,
        _HIGHER,
        "blocks found in shared buffers / blocks asked for",
    ),
    Metric(
        "page_cache_hit_ratio",
        "share",
        _SHARE,
        _HIGHER,
        "1 - bytes read from the device / bytes of relations that PostgreSQL read; an estimate, absent "
        "where the device read more",
    ),
    Metric(
        "fast_transaction_share",
        "share",
        _PROPORTION,
        _HIGHER,
        "transactions under 1 ms (read-only) or 9 ms (others) / all: the classic cache hit ratio",
    ),
)

_DEVICE = (
    Metric("device_reads_per_transaction", "1", _RATIO, _LOWER, "reads of the data device / transactions"),
    Metric(
        "device_writes_per_transaction",
        "1",
        _RATIO,
        _LOWER,
        "write requests that data and journal device completed, those that only ask for a flush among them "
        "/ transactions",
    ),
    Metric(
        "device_flushes_per_transaction",
        "1",
        _RATIO,
        _NEITHER,
        "flushes of data and journal device / transactions",
    ),
    Metric(
        "device_read_kib_per_transaction",
        "KiB",
        _RATIO,
        _LOWER,
        "KiB read from the data device / transactions",
    ),
    Metric(
        "device_written_kib_per_transaction",
        "KiB",
        _RATIO,
        _LOWER,
        "KiB written to data and journal device / transactions",
    ),
    Metric(
        "device_busy_share",
        "share",
        _PROPORTION,
        _NEITHER,
        "time with a request to the data device in flight / time",
    ),
    Metric("device_queue_depth_mean", "1", _RATIO, _NEITHER, "time in queue / time (Little's law)"),
    Metric(
        "journal_device_writes_per_transaction",
        "1",
        _RATIO,
        _NEITHER,
        "of the writes, those to the journal device",
    ),
    Metric(
        "journal_device_flushes_per_transaction",
        "1",
        _RATIO,
        _NEITHER,
        "of the flushes, those of the journal device",
    ),
    Metric(
        "journal_device_written_kib_per_transaction",
        "KiB",
        _RATIO,
        _NEITHER,
        "of the KiB written, those to the journal device",
    ),
    Metric(
        "journal_device_busy_share",
        "share",
        _PROPORTION,
        _NEITHER,
        "time with a request to the journal device in flight / time",
    ),
    Metric("dirty_mib_mean", "MiB", _RATIO, _NEITHER, "mean of dirty and writeback pages of the machine"),
    Metric(
        "dirty_mib_max", "MiB", _RATIO, _NEITHER, "largest sample of dirty and writeback pages of the machine"
    ),
)

_SERVER = (
    Metric("checkpoints_timed", "1", _COUNT, _NEITHER, "checkpoints begun in the window because of time"),
    Metric("checkpoints_requested", "1", _COUNT, _NEITHER, "checkpoints begun for another cause"),
    Metric("checkpoints_complete", "1", _COUNT, _NEITHER, "timed checkpoints wholly inside the window"),
    Metric("buffers_checkpointer", "1", _COUNT, _NEITHER, "buffers written by the checkpointer"),
    Metric("buffers_background_writer", "1", _COUNT, _NEITHER, "buffers written by the background writer"),
    Metric("buffers_backend", "1", _COUNT, _LOWER, "buffers written by backends themselves"),
    Metric("buffers_allocated", "1", _COUNT, _NEITHER, "buffers allocated"),
    Metric(
        "buffers_checkpointer_mib",
        "MiB",
        _RATIO,
        _NEITHER,
        "buffers written by the checkpointer x the block size",
    ),
    Metric(
        "buffers_background_writer_mib",
        "MiB",
        _RATIO,
        _NEITHER,
        "buffers written by the background writer x the block size",
    ),
    Metric("buffers_backend_mib", "MiB", _RATIO, _LOWER, "buffers written by backends x the block size"),
    Metric("buffers_allocated_mib", "MiB", _RATIO, _NEITHER, "buffers allocated x the block size"),
    Metric("maxwritten_clean", "1", _COUNT, _LOWER, "times the background writer stopped at its limit"),
    Metric("wal_kib_per_transaction", "KiB", _RATIO, _LOWER, "WAL generated / transactions"),
    Metric("wal_full_page_images", "1", _COUNT, _NEITHER, "full page images in the WAL"),
    Metric("server_cpu_ms_per_transaction", "ms", _RATIO, _LOWER, "CPU of the server / transactions"),
    Metric("client_cpu_share", "share", _SHARE, _LOWER, "CPU of the client / (time x its threads)"),
    Metric(
        "client_sleeps_per_transaction",
        "1",
        _RATIO,
        _NEITHER,
        "times that a thread of the client waited for an answer / transactions: 1 where each answer wakes its thread",
    ),
    Metric(
        "context_switches_per_transaction",
        "1",
        _RATIO,
        _NEITHER,
        "context switches of all CPUs / transactions",
    ),
    Metric("watching_cpu_share", "share", _SHARE, _LOWER, "CPU of bedplate's probes and log reader / time"),
    Metric("machine_cpu_share", "share", _PROPORTION, _NEITHER, "busy time of all CPUs / their time"),
    Metric(
        "others_cpu_share",
        "share",
        _PROPORTION,
        _LOWER,
        "user time of other programs, at least / time of all CPUs",
    ),
    Metric("steal_share", "share", _PROPORTION, _LOWER, "time that a hypervisor took / time of all CPUs"),
    Metric("pressure_cpu_some_share", "share", _PROPORTION, _LOWER, "PSI cpu `some` / time"),
    Metric("pressure_io_some_share", "share", _PROPORTION, _LOWER, "PSI io `some` / time"),
    Metric("pressure_io_full_share", "share", _PROPORTION, _LOWER, "PSI io `full` / time"),
    Metric("pressure_memory_some_share", "share", _PROPORTION, _LOWER, "PSI memory `some` / time"),
)

_VISIT = (
    Metric("mkfs_s", "s", _RATIO, _LOWER, "time that mkfs took"),
    Metric("cluster_s", "s", _RATIO, _LOWER, "time of initdb and the first start of the server"),
    Metric("load_s", "s", _RATIO, _LOWER, "time to load the dataset"),
    Metric("duration_s", "s", _RATIO, _NEITHER, "length of the measured window, in which transactions ran"),
    Metric("database_mib", "MiB", _RATIO, _LOWER, "size of the database after the run"),
    Metric("wal_mib", "MiB", _RATIO, _LOWER, "size of the WAL directory after the run"),
)

_TPCH = (
    Metric("query_s", "s", _RATIO, _LOWER, "time of one TPC-H query, from its sending to its last row"),
    Metric(
        "phase_s", "s", _RATIO, _LOWER, "time of one phase of the TPC-H load, or of one stage of another run"
    ),
    Metric("table_load_s", "s", _RATIO, _LOWER, "time to load one table, or to make one key or index"),
    Metric("load_total_s", "s", _RATIO, _LOWER, "all phases of the TPC-H load together"),
    Metric(
        "queries_total_s",
        "s",
        _RATIO,
        _LOWER,
        "all queries of a pass; where one was stopped at its limit, more than the sum",
    ),
    Metric("queries_completed", "1", _COUNT, _HIGHER, "queries that ended within their limit"),
    Metric("tpch_power", "QphH@SF", _RATIO, _HIGHER, "TPC-H's power (clause 5.4.1), not audited"),
    Metric("tpch_throughput", "QphH@SF", _RATIO, _HIGHER, "TPC-H's throughput (clause 5.4.2), not audited"),
    Metric(
        "tpch_composite", "QphH@SF", _RATIO, _HIGHER, "geometric mean of power and throughput, not audited"
    ),
    Metric(
        "streams_s",
        "s",
        _RATIO,
        _LOWER,
        "from the first query of the first stream to the last row of the last",
    ),
    Metric(
        "device_read_mib",
        "MiB",
        _RATIO,
        _LOWER,
        "read from the data device within the phase, the query or the run",
    ),
    Metric("device_written_mib", "MiB", _RATIO, _LOWER, "written to data and journal device within it"),
    Metric("device_flushes", "1", _COUNT, _LOWER, "flushes of data and journal device within it"),
    Metric(
        "server_cpu_s",
        "s",
        _RATIO,
        _LOWER,
        "CPU time of the server, or of the tool where there is none, within it",
    ),
    Metric("temporary_mib", "MiB", _RATIO, _LOWER, "temporary files that the server wrote within it"),
)

# Made by the reading side over a selection of cells, never stored with a run.
_TPCH_SCORES = (
    Metric(
        "time", "s", _RATIO, _LOWER, "sum of the median times of all queries; a timeout counts as its limit"
    ),
    Metric("score", "1", _RATIO, _HIGHER, "sum over queries of best time / time; a timeout scores 0"),
    Metric("m_time", "s", _RATIO, _LOWER, "`time` over queries that finished everywhere with one plan"),
    Metric("m_score", "1", _RATIO, _HIGHER, "`score` over queries that finished everywhere with one plan"),
)

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *_TRANSACTIONS,
        *_LATENCIES,
        *_RATE_LIMITED,
        *_CACHES,
        *_DEVICE,
        *_SERVER,
        *_VISIT,
        *_TPCH,
        *_TPCH_SCORES,
        *LMDB_METRICS,
        *RAW_METRICS,
        *POWER_CUT_METRICS,
    )
}


def figure(
    metric: str,
    value: float | None,
    *,
    phase: str = "measure",
    item: str = "",
    pass_: int = 1,
    reason: str | None = None,
) -> Figure:
    """A row for a registered metric; a value of None is absent and needs its reason.

    The reason belongs to absence: beside a value it is left out, so that a caller may give it
    without asking first.
    """
    known = METRICS[metric]
    if value is None and reason is None:
        raise ValueError(f"{metric} is absent without a reason")
    return Figure(
        phase=phase,
        item=item,
        pass_=pass_,
        metric=metric,
        value=None if value is None else float(value),
        unit=known.unit,
        scale=known.scale,
        better=known.better,
        status=Status.ABSENT if value is None else Status.MEASURED,
        reason=reason if value is None else None,
    )


def censored(metric: str, limit: float, *, phase: str = "measure", item: str = "", pass_: int = 1) -> Figure:
    """A row for what was stopped at its limit: more than that, and how much more is not known."""
    known = METRICS[metric]
    return Figure(
        phase=phase,
        item=item,
        pass_=pass_,
        metric=metric,
        value=None,
        unit=known.unit,
        scale=known.scale,
        better=known.better,
        status=Status.CENSORED,
        limit=limit,
    )
