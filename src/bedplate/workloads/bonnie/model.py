"""What records say of bonnie++'s datasets and runs."""

from __future__ import annotations

from bedplate.model.engines import NO_ENGINE
from bedplate.model.figure import Better, Metric, Scale
from bedplate.model.plan import RecordWords, WorkloadModel

WORKLOAD = "bonnie"

MODEL = WorkloadModel(
    NO_ENGINE,
    {"bonnie++": "-v"},
    plan_keys={
        "file_bytes": "file_size",
        "direct": "direct",
        "chunk_bytes": "chunk_size",
        "per_character_bytes": "per_character",
        "files": "files",
    },
    words=RecordWords(
        dataset="`file_bytes`",
        run="`direct`, `chunk_bytes`, `per_character_bytes`, `files`",
        phases="its stages (`put_block`, …) and `sync`",
        facts="`file_bytes`, `made_cold`, `tool_cpu_s`",
    ),
)

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_RATIO, _SHARE = Scale.RATIO, Scale.SHARE

# Where some figures are taken from, unlike the others of their group.
_OUTPUT = "bonnie++'s CSV line, fio's JSON"

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
METRICS = {"Sequential I/O": (
    Metric("throughput_mib_per_s", "MiB/s", _RATIO, _HIGHER,
        "bytes of files that the tool read and wrote per second; a byte that bonnie++ rewrites counts once", _OUTPUT),
    Metric("operations_per_s", "1/s", _RATIO, _HIGHER,
        "seeks or files of bonnie++, reads and writes of fio, syncs of pg_test_fsync, per second",
        "bonnie++'s CSV line, fio's JSON, pg_test_fsync"),
    Metric("cpu_s_per_gib", "s/GiB", _RATIO, _LOWER,
        "CPU time of the tool, its system calls included and threads of the kernel not / GiB that it read and wrote",
        "the visit's control group around a stage of bonnie++; fio's JSON"),
    Metric("machine_cpu_s_per_gib", "s/GiB", _RATIO, _LOWER,
        "busy time of all CPUs, threads of the kernel and all else that ran included / GiB that the tool read and wrote", "`/proc/stat`"),
    Metric("tool_cpu_share", "share", _SHARE, _NEITHER,
        "CPU time of the tool as it states it / time; 1 is one CPU busy throughout", _OUTPUT),
    Metric("tool_cpu_s", "s", _RATIO, _LOWER, "CPU time of the tool and its children over the run", "wait4(2)"),
    Metric("stages_total_s", "s", _RATIO, _LOWER, "all stages of bonnie++ together, without the sync", "sum of `phase_s`"),
)}

# fmt: on
