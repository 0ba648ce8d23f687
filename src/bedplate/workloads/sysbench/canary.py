"""sysbench's canary: a run of seconds."""

from __future__ import annotations

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import Load

CANARY = Load(
    Dataset("sysbench", Levels(tables=2, table_size=10_000)),
    (
        RunSpec(
            "canary",
            "sysbench",
            Levels(script="oltp_read_write", threads=2, warmup_s=2.0, duration_s=8.0),
        ),
    ),
)
