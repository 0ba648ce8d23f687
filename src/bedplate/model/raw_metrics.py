"""The metrics of sequential I/O: of a stage of bonnie++, of a job of fio, of a method of pg_test_fsync."""

from __future__ import annotations

from bedplate.model.figure import Better, Metric, Scale

RAW_METRICS = (
    Metric(
        "throughput_mib_per_s",
        "MiB/s",
        Scale.RATIO,
        Better.HIGHER,
        "bytes of files that the tool read and wrote per second; a byte that bonnie++ rewrites counts once",
    ),
    Metric(
        "operations_per_s",
        "1/s",
        Scale.RATIO,
        Better.HIGHER,
        "seeks or files of bonnie++, reads and writes of fio, syncs of pg_test_fsync, per second",
    ),
    Metric(
        "cpu_s_per_gib",
        "s/GiB",
        Scale.RATIO,
        Better.LOWER,
        "CPU time of the tool, its system calls included and threads of the kernel not / GiB that it read and wrote",
    ),
    Metric(
        "machine_cpu_s_per_gib",
        "s/GiB",
        Scale.RATIO,
        Better.LOWER,
        "busy time of all CPUs, threads of the kernel and all else that ran included / GiB that the tool read and wrote",
    ),
    Metric(
        "tool_cpu_share",
        "share",
        Scale.SHARE,
        Better.NEITHER,
        "CPU time of the tool as it states it / time; 1 is one CPU busy throughout",
    ),
    Metric(
        "tool_cpu_s", "s", Scale.RATIO, Better.LOWER, "CPU time of the tool and its children over the run"
    ),
    Metric(
        "stages_total_s", "s", Scale.RATIO, Better.LOWER, "all stages of bonnie++ together, without the sync"
    ),
    Metric(
        "steady_state_attained",
        "share",
        Scale.PROPORTION,
        Better.HIGHER,
        "1 where fio's criterion of a steady state was met, else 0; only where the job asks for one",
    ),
)
