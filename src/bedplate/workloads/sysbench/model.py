"""What records say of sysbench's datasets and runs."""

from __future__ import annotations

from bedplate.model.engines import MARIADB
from bedplate.model.figure import Better, Metric, Scale, taken_from
from bedplate.model.plan import RecordWords, WorkloadModel

READ_ONLY = "oltp_read_only"
SCRIPTS = (READ_ONLY, "oltp_read_write", "oltp_update_index", "oltp_write_only")

# A plan says on which servers; each has the same datasets and runs, so that they are compared.
MODEL = WorkloadModel(
    MARIADB,
    plan_keys={
        "tables": "tables",
        "table_size": "table_size",
        "script": "run.script",
        "threads": "run.threads",
        "warmup_s": "run.warmup",
        "duration_s": "run.duration",
        "rate_tps": "run.rate",
    },
    words=RecordWords(
        dataset="`tables`, `table_size`",
        run="`script`, `threads`, `warmup_s`, `duration_s`, `rate_tps`",
        phases="`warmup`, `measure`",
        facts="`script`, `clients`, `threads`, `duration_s_asked`, `rate_tps`, `tables`, `table_size`, …",
        files="`warmup.bin`, `measure.bin`: the transaction logs, condensed; deleted once `run.json` is complete",
    ),
)

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
METRICS = {"sysbench": taken_from(
    "sysbench's summary",
    Metric("ignored_errors", "1", Scale.COUNT, Better.LOWER,
        "attempts that ended in an error which sysbench ignores (deadlock, serialization failure, duplicate key): rolled back, and begun again"),
    Metric("ignored_error_share", "share", Scale.PROPORTION, Better.LOWER, "ignored errors / (ignored errors + transactions)"),
    Metric("reconnects", "1", Scale.COUNT, Better.LOWER, "connections that were lost and made again"),
)}

# fmt: on
