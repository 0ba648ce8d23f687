"""The metrics of the microbenchmark: of one test, and of a run of several."""

from __future__ import annotations

from bedplate.model.figure import Better, Metric, Scale, taken_from

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_RATIO, _PROPORTION, _COUNT = Scale.RATIO, Scale.PROPORTION, Scale.COUNT
_TIMED = "of those that were timed: each transaction that writes (a whole batch), every 16th random read"

# Where some figures are taken from, unlike the others of their group.
_RUSAGE = "getrusage(2), in the driver’s document"
_LSTAT = "lstat(2), in the driver’s document"

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
_METRICS = taken_from(
    "the driver’s document",
    Metric("test_operations_per_s", "1/s", _RATIO, _HIGHER, "entries that a test wrote, read or looked for (of tpcb its transactions) / time"),
    Metric("test_us_per_operation", "us", _RATIO, _LOWER, "time of a test / its operations"),
    Metric("test_mib_per_s", "MiB/s", _RATIO, _HIGHER, "keys and values that a test wrote or read / time"),
    Metric("test_cpu_us_per_operation", "us", _RATIO, _LOWER,
        "CPU time of the driver, user and system, within a test / its operations", _RUSAGE),
    Metric("test_latency_us_mean", "us", _RATIO, _LOWER, f"mean latency {_TIMED}"),
    Metric("test_latency_us_p50", "us", _RATIO, _LOWER, f"median latency {_TIMED}"),
    Metric("test_latency_us_p95", "us", _RATIO, _LOWER, f"95th percentile {_TIMED}"),
    Metric("test_latency_us_p99", "us", _RATIO, _LOWER, f"99th percentile {_TIMED}"),
    Metric("test_latency_us_p99_9", "us", _RATIO, _LOWER, f"99.9th percentile {_TIMED}"),
    Metric("test_latency_us_max", "us", _RATIO, _LOWER, f"largest latency {_TIMED}"),
    Metric("test_writer_operations_per_s", "1/s", _RATIO, _HIGHER, "entries that the writer of readwhilewriting wrote / time"),
    Metric("test_busy_share", "share", _PROPORTION, _LOWER,
        "attempts at a transaction of tpcb that met another's lock for longer than the engine waits, and were begun again / all attempts"),
    Metric("test_slowest_process_share", "share", _PROPORTION, _HIGHER,
        "transactions of the process of tpcb that made the fewest / those of an equal part"),
    Metric("test_found_share", "share", _PROPORTION, _NEITHER, "random reads that met an entry / all"),
    Metric("test_prepare_s", "s", _RATIO, _LOWER, "time to make, open and preallocate the database; no part of the test's"),
    Metric("test_flush_s", "s", _RATIO, _LOWER, "time of the flush after a test that writes; no part of the test's"),
    Metric("test_size_mib", "MiB", _RATIO, _LOWER, "size of the data file after the test", _LSTAT),
    Metric("test_space_mib", "MiB", _RATIO, _LOWER, "space that the data file takes on the file system then", _LSTAT),
    Metric("test_flushes_per_commit", "1", _RATIO, _NEITHER,
        "flushes of data and journal device within a test / its transactions; those of its preparation, and of the flush after it, count too",
        "`/sys/block/…/stat`, the driver’s document"),
    Metric("test_major_faults", "1", _COUNT, _LOWER, "page faults of a test that waited for the device", _RUSAGE),
    Metric("tests_s", "s", _RATIO, _LOWER,
        "all tests of a run, without what lies between them; absent where its cell’s settings leave one out",
        "sum over the documents of the run"),
)
# fmt: on

METRICS = {"Microbenchmark": _METRICS}
