"""The registry of metrics: every figure's name, unit, scale, better direction and definition, and what it is taken from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bedplate import registry
from bedplate.model.figure import Better, Figure, Metric, RunFigures, Scale, Status, taken_from
from bedplate.model.plan import model_of
from bedplate.model.reason import Reason
from bedplate.near_names import unknown_name

# Phases: drawn cuts by profile and by the kind of device cache; those that were sought, and those in recovery, by the latter; the
# pages of the data files.
CUT, CACHE, SOUGHT, RECUT, EXHAUSTIVE, PAGES = "cut", "cache", "sought", "recut", "exhaustive", "pages"

_CUT_LOWER, _CUT_NEITHER = Better.LOWER, Better.NEITHER
_CUT_RATIO, _CUT_PROPORTION, _CUT_COUNT = Scale.RATIO, Scale.PROPORTION, Scale.COUNT

# How an engine comes back after a cut.
RECOVERY = "mounting, fsck where it was needed, and starting the engine"

# Where some figures are taken from, unlike the others of their group.
_POINTS_AND_RECORDING = "`points.jsonl` and `recording.json`"

_RECORDING = "`recording.json`"

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
POWER_CUT_METRICS = taken_from(
    "`points.jsonl`",
    Metric("power_cuts", "1", _CUT_COUNT, _CUT_NEITHER, "cuts that were replayed and judged, without the controls"),
    Metric("power_cuts_bad", "1", _CUT_COUNT, _CUT_LOWER,
        "cuts after which something acknowledged was missing or damaged; of a run those of a volatile cache, whatever its sectors, at "
        "positions that chance chose"),
    Metric("power_cut_bad_share", "share", _CUT_PROPORTION, _CUT_LOWER,
        "cuts after which something acknowledged was missing or damaged / the cuts of that kind"),
    Metric("power_cuts_repaired", "1", _CUT_COUNT, _CUT_LOWER, "cuts after which the file system needed fsck, and was then whole"),
    Metric("lost_transactions_max", "1", _CUT_COUNT, _CUT_LOWER,
        "most acknowledged transactions that one cut took, of cuts that left the rest whole; 0 where no cut took any, absent where "
        "each that did broke the rest", _POINTS_AND_RECORDING),
    Metric("lost_ms_max", "ms", _CUT_RATIO, _CUT_LOWER,
        "longest time before a cut at which the first missing transaction was acknowledged", _POINTS_AND_RECORDING),
    Metric("recovery_s_median", "s", _CUT_RATIO, _CUT_LOWER, f"median over the cuts of {RECOVERY}"),
    Metric("recovery_s_max", "s", _CUT_RATIO, _CUT_LOWER, "longest mounting, fsck and starting of the engine after a cut"),
    Metric("recovery_mount_s", "s", _CUT_RATIO, _CUT_LOWER, "median time of mounting, with the journal's recovery"),
    Metric("recovery_fsck_s", "s", _CUT_RATIO, _CUT_LOWER, "median time of fsck, of the cuts that needed it"),
    Metric("recovery_engine_s", "s", _CUT_RATIO, _CUT_LOWER, "median time of the engine's start, with its recovery"),
    Metric("recorded_commits_per_s", "1/s", _CUT_RATIO, _CUT_NEITHER,
        "transactions acknowledged while recording, in memory and through the recorder: no speed to compare", _RECORDING),
    Metric("recorded_flushes_per_commit", "1", _CUT_RATIO, _CUT_NEITHER,
        "flushes of data and journal device while recording / transactions acknowledged", _RECORDING),
    Metric("recorded_kib_per_commit", "KiB", _CUT_RATIO, _CUT_NEITHER,
        "written to data and journal device while recording / transactions acknowledged", _RECORDING),
    Metric("recorded_wal_kib_per_commit", "KiB", _CUT_RATIO, _CUT_NEITHER,
        "WAL that the server wrote while recording / transactions acknowledged", _RECORDING),
    Metric("page_images_per_transaction", "1", _CUT_RATIO, _CUT_NEITHER,
        "whole pages in the WAL while recording / transactions acknowledged", _RECORDING),
    Metric("untorn_writes", "1", _CUT_COUNT, _CUT_NEITHER, "pages that the kernel took as untorn writes", _RECORDING),
    Metric("untorn_refused", "1", _CUT_COUNT, _CUT_LOWER,
        "pages that the kernel would not write untorn, and that were written plainly", _RECORDING),
    Metric("page_extensions", "1", _CUT_COUNT, _CUT_NEITHER, "pages written behind a file's end, where nothing old is torn", _RECORDING),
    Metric("unaligned_pages", "1", _CUT_COUNT, _CUT_LOWER,
        "pages of the data files that do not begin at a multiple of their size on the device, are in several places or in none "
        "yet; before and after the clients", _RECORDING),
)

# fmt: on

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_RATIO, _PROPORTION, _COUNT, _SHARE = Scale.RATIO, Scale.PROPORTION, Scale.COUNT, Scale.SHARE

# Where some figures are taken from, unlike the others of their group.
_LOG_AND_SERVER_LOG = "transaction log, server's log"

_SERVER_LOG = "server's log (`log_checkpoints`)"
_STAT_DATABASE = "`pg_stat_database`"
_MEMINFO = "`/proc/meminfo`, once a second"
_CHECKPOINTER = "`pg_stat_checkpointer` since 17, before `pg_stat_bgwriter`"
_BGWRITER = "`pg_stat_bgwriter`"
_STAT_IO = "`pg_stat_io` since 17, before `pg_stat_bgwriter`"
_SERVER_CGROUP = "the server's control group"
_PROC_STAT = "`/proc/stat`"
_PRESSURE = "`/proc/pressure`"
_STATEMENT = "monotonic clock around the statement"
_BLOCK_STAT = "`/sys/block/…/stat`"
_QUERY_S_AND_PLANS = "`query_s`, EXPLAIN"

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
_LATENCIES = taken_from(
    "transaction log",
    Metric("latency_ms_mean", "ms", _RATIO, _LOWER, "mean latency of the transactions, or of the tool's operations, that were processed"),
    Metric("latency_ms_stddev", "ms", _RATIO, _LOWER, "standard deviation of the latency"),
    Metric("latency_ms_p50", "ms", _RATIO, _LOWER, "median latency"),
    Metric("latency_ms_p95", "ms", _RATIO, _LOWER, "95th percentile of the latency"),
    Metric("latency_ms_p99", "ms", _RATIO, _LOWER, "99th percentile of the latency"),
    Metric("latency_ms_p99_9", "ms", _RATIO, _LOWER, "99.9th percentile of the latency"),
    Metric("latency_ms_max", "ms", _RATIO, _LOWER, "largest latency of one transaction or operation"),
)

# Under a rate limit the client counts latency from the scheduled start; both readings are kept.
_RATE_LIMITED = taken_from(
    "transaction log",
    Metric("latency_without_lag_ms_mean", "ms", _RATIO, _LOWER, "mean latency without schedule lag"),
    Metric("latency_without_lag_ms_p50", "ms", _RATIO, _LOWER, "median latency without schedule lag"),
    Metric("latency_without_lag_ms_p95", "ms", _RATIO, _LOWER, "95th percentile without schedule lag"),
    Metric("latency_without_lag_ms_p99", "ms", _RATIO, _LOWER, "99th percentile without schedule lag"),
    Metric("schedule_lag_ms_mean", "ms", _RATIO, _LOWER, "mean delay between scheduled and real start"),
)

_TRANSACTIONS = taken_from(
    "transaction log",
    Metric("tps", "1/s", _RATIO, _HIGHER, "transactions processed in the measured window, per second"),
    Metric("transactions", "1", _COUNT, _NEITHER, "transactions processed in the measured window"),
    Metric("transactions_failed", "1", _COUNT, _LOWER, "transactions that ended in an error"),
    Metric("transactions_skipped", "1", _COUNT, _LOWER, "transactions skipped under a rate and a limit"),
    Metric("tps_cv", "share", _RATIO, _LOWER, "coefficient of variation of the tps of each second"),
    Metric("tps_trend", "share", _SHARE, _NEITHER, "growth of tps over the window (Theil–Sen) / its mean"),
    Metric("tps_in_checkpoint", "1/s", _RATIO, _HIGHER, "tps in seconds within a checkpoint", _LOG_AND_SERVER_LOG),
    Metric("tps_settling", "1/s", _RATIO, _HIGHER, "tps in the 10 s after a checkpoint has ended", _LOG_AND_SERVER_LOG),
    Metric("tps_outside", "1/s", _RATIO, _HIGHER,
        "tps in seconds that are neither within a checkpoint nor in the 10 s after one", _LOG_AND_SERVER_LOG),
    Metric("tps_in_checkpoint_cv", "share", _RATIO, _LOWER, "variation of tps within checkpoints", _LOG_AND_SERVER_LOG),
    Metric("tps_settling_cv", "share", _RATIO, _LOWER, "variation of tps in the settling time", _LOG_AND_SERVER_LOG),
    Metric("tps_outside_cv", "share", _RATIO, _LOWER, "variation of tps outside", _LOG_AND_SERVER_LOG),
    Metric("settle_s", "s", _RATIO, _LOWER, "time from the start of the warm-up until tps was steady"),
)

_CACHES = (
    Metric("shared_buffers_hit_ratio", "share", _PROPORTION, _HIGHER, "blocks found in shared buffers / blocks asked for", _STAT_DATABASE),
    Metric("page_cache_hit_ratio", "share", _SHARE, _HIGHER,
        "1 - bytes read from the device / bytes of relations that PostgreSQL read; an estimate, absent where the device read more",
        "`/sys/block/…/stat`; `pg_stat_io` since 16, before `pg_stat_database`"),
    Metric("fast_transaction_share", "share", _PROPORTION, _HIGHER,
        "transactions under 1 ms (read-only) or 9 ms (others) / all: the classic cache hit ratio", "transaction log"),
)

_DEVICE = taken_from(
    "`/sys/block/…/stat`",
    Metric("device_reads_per_transaction", "1", _RATIO, _LOWER, "reads of the data device / transactions"),
    Metric("device_writes_per_transaction", "1", _RATIO, _LOWER,
        "write requests that data and journal device completed, those that only ask for a flush among them / transactions"),
    Metric("device_flushes_per_transaction", "1", _RATIO, _NEITHER, "flushes of data and journal device / transactions"),
    Metric("device_read_kib_per_transaction", "KiB", _RATIO, _LOWER, "KiB read from the data device / transactions"),
    Metric("device_written_kib_per_transaction", "KiB", _RATIO, _LOWER, "KiB written to data and journal device / transactions"),
    Metric("device_busy_share", "share", _PROPORTION, _NEITHER, "time with a request to the data device in flight / time"),
    Metric("device_queue_depth_mean", "1", _RATIO, _NEITHER, "time in queue / time (Little's law)"),
    Metric("journal_device_writes_per_transaction", "1", _RATIO, _NEITHER, "of the writes, those to the journal device"),
    Metric("journal_device_flushes_per_transaction", "1", _RATIO, _NEITHER, "of the flushes, those of the journal device"),
    Metric("journal_device_written_kib_per_transaction", "KiB", _RATIO, _NEITHER, "of the KiB written, those to the journal device"),
    Metric("journal_device_busy_share", "share", _PROPORTION, _NEITHER, "time with a request to the journal device in flight / time"),
    Metric("dirty_mib_mean", "MiB", _RATIO, _NEITHER, "mean of dirty and writeback pages of the machine", _MEMINFO),
    Metric("dirty_mib_max", "MiB", _RATIO, _NEITHER, "largest sample of dirty and writeback pages of the machine", _MEMINFO),
)

_SERVER = (
    Metric("checkpoints_timed", "1", _COUNT, _NEITHER, "checkpoints begun in the window because of time", _SERVER_LOG),
    Metric("checkpoints_requested", "1", _COUNT, _NEITHER, "checkpoints begun for another cause", _SERVER_LOG),
    Metric("checkpoints_complete", "1", _COUNT, _NEITHER, "timed checkpoints wholly inside the window", _SERVER_LOG),
    Metric("buffers_checkpointer", "1", _COUNT, _NEITHER, "buffers written by the checkpointer", _CHECKPOINTER),
    Metric("buffers_background_writer", "1", _COUNT, _NEITHER, "buffers written by the background writer", _BGWRITER),
    Metric("buffers_backend", "1", _COUNT, _LOWER, "buffers written by backends themselves", _STAT_IO),
    Metric("buffers_allocated", "1", _COUNT, _NEITHER, "buffers allocated", _BGWRITER),
    Metric("buffers_checkpointer_mib", "MiB", _RATIO, _NEITHER, "buffers written by the checkpointer x the block size", _CHECKPOINTER),
    Metric("buffers_background_writer_mib", "MiB", _RATIO, _NEITHER,
        "buffers written by the background writer x the block size", _BGWRITER),
    Metric("buffers_backend_mib", "MiB", _RATIO, _LOWER, "buffers written by backends x the block size", _STAT_IO),
    Metric("buffers_allocated_mib", "MiB", _RATIO, _NEITHER, "buffers allocated x the block size", _BGWRITER),
    Metric("maxwritten_clean", "1", _COUNT, _LOWER, "times the background writer stopped at its limit", _BGWRITER),
    Metric("wal_kib_per_transaction", "KiB", _RATIO, _LOWER, "WAL, or InnoDB's log, generated / transactions",
        "`pg_current_wal_insert_lsn()`, `Innodb_lsn_current`"),
    Metric("wal_full_page_images", "1", _COUNT, _NEITHER, "full page images in the WAL", "`pg_stat_wal`"),
)

_PROCESSORS = (
    Metric("server_cpu_ms_per_transaction", "ms", _RATIO, _LOWER, "CPU of the server / transactions", _SERVER_CGROUP),
    Metric("client_cpu_share", "share", _SHARE, _LOWER, "CPU of the client / (time x its threads)", "`wait4` of the client program"),
    Metric("client_sleeps_per_transaction", "1", _RATIO, _NEITHER,
        "times that a thread of the client waited for an answer / transactions: 1 where each answer wakes its thread",
        "`wait4` of the client program, voluntary context switches"),
    Metric("context_switches_per_transaction", "1", _RATIO, _NEITHER,
        "context switches of all CPUs / transactions", "`/proc/stat`, `ctxt`"),
    Metric("watching_cpu_share", "share", _SHARE, _LOWER, "CPU of bedplate's probes and log reader / time", "`/proc/PID/stat`"),
    Metric("machine_cpu_share", "share", _PROPORTION, _NEITHER, "busy time of all CPUs / their time", _PROC_STAT),
    Metric("others_cpu_share", "share", _PROPORTION, _LOWER,
        "user time of other programs, at least / time of all CPUs", "`/proc/stat`, less the CPU time of the run's processes"),
    Metric("steal_share", "share", _PROPORTION, _LOWER, "time that a hypervisor took / time of all CPUs", _PROC_STAT),
    Metric("pressure_cpu_some_share", "share", _PROPORTION, _LOWER, "PSI cpu `some` / time", _PRESSURE),
    Metric("pressure_io_some_share", "share", _PROPORTION, _LOWER, "PSI io `some` / time", _PRESSURE),
    Metric("pressure_io_full_share", "share", _PROPORTION, _LOWER, "PSI io `full` / time", _PRESSURE),
    Metric("pressure_memory_some_share", "share", _PROPORTION, _LOWER, "PSI memory `some` / time", _PRESSURE),
)

_VISIT = taken_from(
    "monotonic clock around the step",
    Metric("mkfs_s", "s", _RATIO, _LOWER, "time that mkfs took"),
    Metric("cluster_s", "s", _RATIO, _LOWER, "time of initdb and the first start of the server"),
    Metric("load_s", "s", _RATIO, _LOWER, "time to load the dataset"),
    Metric("duration_s", "s", _RATIO, _NEITHER,
        "length of the measured window, in which transactions ran", "the client's summary, held against the monotonic clock"),
    Metric("database_mib", "MiB", _RATIO, _LOWER, "size of the database after the run", "`pg_database_size()`"),
    Metric("wal_mib", "MiB", _RATIO, _LOWER, "size of the WAL directory after the run", "`pg_ls_waldir()`"),
    Metric("extents_per_mib", "1/MiB", _RATIO, _LOWER,
        "pieces of the data files / their size: after a run, of those of 1 MiB and more; before and after the clients of a power cut's recording",
        "FIEMAP, else FIBMAP"),
)

_FREE_SPACE = taken_from(
    "GETFSMAP on ext4 and XFS, the free space tree of Btrfs; `statvfs`",
    Metric("fill_share", "share", _PROPORTION, _NEITHER, "in use / (in use + available), as df has it"),
    Metric("free_extents", "1", _COUNT, _LOWER, "pieces that the free space lies in"),
    Metric("free_extent_kib_mean", "KiB", _RATIO, _HIGHER, "free space / its pieces"),
    Metric("free_extent_kib_half", "KiB", _RATIO, _HIGHER, "half of the free space lies in pieces of at most this size"),
    Metric("free_extent_kib_max", "KiB", _RATIO, _HIGHER, "largest piece of free space"),
)

_TPCH = (
    Metric("query_s", "s", _RATIO, _LOWER, "time of one TPC-H query, from its sending to its last row", _STATEMENT),
    Metric("phase_s", "s", _RATIO, _LOWER,
        "time of one phase of the TPC-H load, or of one stage of another run", "monotonic clock around the phase"),
    Metric("table_load_s", "s", _RATIO, _LOWER, "time to load one table, or to make one key or index", _STATEMENT),
    Metric("load_total_s", "s", _RATIO, _LOWER, "all phases of the TPC-H load together", "sum of `phase_s`"),
    Metric("queries_total_s", "s", _RATIO, _LOWER,
        "all queries of a pass; where one was stopped at its limit, more than the sum",
        "sum of `query_s`; with a timeout censored, the sum with its limit being the limit"),
    Metric("queries_completed", "1", _COUNT, _HIGHER, "queries that ended within their limit", "`query_s`"),
    Metric("tpch_power", "QphH@SF", _RATIO, _HIGHER, "TPC-H's power (clause 5.4.1), not audited", "`query_s`, by the clause's formula"),
    Metric("tpch_throughput", "QphH@SF", _RATIO, _HIGHER,
        "TPC-H's throughput (clause 5.4.2), not audited", "`streams_s`, by the clause's formula"),
    Metric("tpch_composite", "QphH@SF", _RATIO, _HIGHER,
        "geometric mean of power and throughput, not audited", "both, made when a study is read"),
    Metric("streams_s", "s", _RATIO, _LOWER, "from the first query of the first stream to the last row of the last", "monotonic clock"),
    Metric("device_read_mib", "MiB", _RATIO, _LOWER, "read from the data device within the phase, the query or the run", _BLOCK_STAT),
    Metric("device_written_mib", "MiB", _RATIO, _LOWER, "written to data and journal device within it", _BLOCK_STAT),
    Metric("device_flushes", "1", _COUNT, _LOWER, "flushes of data and journal device within it", _BLOCK_STAT),
    Metric("server_cpu_s", "s", _RATIO, _LOWER, "CPU time of the server, or of the tool where there is none, within it", _SERVER_CGROUP),
    Metric("temporary_mib", "MiB", _RATIO, _LOWER, "temporary files that the server wrote within it", _STAT_DATABASE),
)

# Made by the reading side over a selection of cells, never stored with a run.
_TPCH_SCORES = taken_from(
    "`query_s`",
    Metric("time", "s", _RATIO, _LOWER, "sum of the median times of all queries; a timeout counts as its limit"),
    Metric("score", "1", _RATIO, _HIGHER, "sum over queries of best time / time; a timeout scores 0"),
    Metric("m_time", "s", _RATIO, _LOWER, "`time` over queries that finished everywhere with one plan", _QUERY_S_AND_PLANS),
    Metric("m_score", "1", _RATIO, _HIGHER, "`score` over queries that finished everywhere with one plan", _QUERY_S_AND_PLANS),
)

# fmt: on


def _of_folders() -> Mapping[str, tuple[Metric, ...]]:
    """The role `metrics`: those that a workload or an engine alone has, by their heading; several may share one."""
    found: dict[str, tuple[Metric, ...]] = {}
    for groups in (*registry.parts("metrics").values(), *registry.engine_parts("metrics").values()):
        for heading, metrics in groups.items():
            found[heading] = (*found.get(heading, ()), *metrics)
    return found


# By the headings of docs/METRICS.md, whose tables are made from these.
METRIC_GROUPS: Mapping[str, tuple[Metric, ...]] = {
    "Transactions": _TRANSACTIONS,
    "Latency": (*_LATENCIES, *_RATE_LIMITED),
    "Caches": _CACHES,
    "Device and memory": _DEVICE,
    "Server": _SERVER,
    "Processors and pressure": _PROCESSORS,
    "Preparation and sizes": _VISIT,
    "Free space": _FREE_SPACE,
    "TPC-H": _TPCH,
    "TPC-H scores": _TPCH_SCORES,
    **_of_folders(),
    "Power cuts": POWER_CUT_METRICS,
}

METRICS: Mapping[str, Metric] = {metric.name: metric for group in METRIC_GROUPS.values() for metric in group}

# What studies, claims and calls of before call some of them.
_FORMER_NAMES = {
    old: new for name in registry.WORKLOADS for old, new in model_of(name).former_metrics.items()
}

_LATENCY = "latency_ms_"

# Percentiles of the latency as people name them: `p99` is `latency_ms_p99`.
SHORT_NAMES: Mapping[str, str] = {
    name.removeprefix(_LATENCY): name for name in METRICS if name.startswith(f"{_LATENCY}p")
}


def metric_today(name: str) -> str:
    """What a metric is called today, by that name, a former or a short one; a name that nobody knows stays."""
    return _FORMER_NAMES.get(name) or SHORT_NAMES.get(name, name)


def unknown_metric(name: str) -> str:
    """`metric 'tsp' is not known; did you mean tps?`, with short names among those that are near."""
    return unknown_name("metric", name, sorted((*METRICS, *SHORT_NAMES)))


def as_named_today(run: RunFigures) -> RunFigures:
    """The same, each metric by its name of today."""
    if not any(found.metric in _FORMER_NAMES for found in run.figures):
        return run
    return replace(
        run, figures=tuple(replace(found, metric=metric_today(found.metric)) for found in run.figures)
    )


def of_known_metrics(run: RunFigures) -> tuple[RunFigures, tuple[str, ...]]:
    """The run without figures of metrics that nothing here defines, as a newer bedplate may have them, and what these are called."""
    unknown = tuple(dict.fromkeys(found.metric for found in run.figures if found.metric not in METRICS))
    if not unknown:
        return run, ()
    return replace(run, figures=tuple(found for found in run.figures if found.metric in METRICS)), unknown


def figure(
    metric: str,
    value: float | None,
    *,
    phase: str = "measure",
    item: str = "",
    pass_: int = 1,
    reason: Reason | None = None,
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
