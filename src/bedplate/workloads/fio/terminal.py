"""fio in the terminal: a table for each job, and one of pg_test_fsync's ways of syncing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from bedplate.analysis.overview import Overview
from bedplate.model.metrics import METRICS
from bedplate.terminal.table_parts import MARKS
from bedplate.terminal.tables import (
    CPU,
    MIB_PER_S,
    OPERATIONS,
    ToolColumn,
    WorkloadTables,
    part_table,
    tool_table,
)
from bedplate.workloads.fio.model import FIO_JOB, is_pg_test_fsync

Run = tuple[str, str]

_JOB = (
    ToolColumn("\nMiB/s", MIB_PER_S, with_bar=True),
    ToolColumn("CPU\ns/GiB", CPU, with_bar=True),
    ToolColumn("\n1/s", OPERATIONS),
    ToolColumn("p99\nms", "latency_ms_p99"),
    ToolColumn("p99 of\na sync", "latency_ms_p99", FIO_JOB, "sync"),
)
_WORDS = f"Geometric means of n repetitions, range below. CPU: {METRICS[CPU].definition}. {MARKS}"


def fio_tables(overview: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """In the order of the plan, and what the columns of jobs are below them."""
    shown: list[RenderableType] = []
    words: tuple[str, ...] = ()
    for run in runs:
        spec = overview.spec(run)
        if spec is not None and is_pg_test_fsync(spec):
            table = part_table(overview, run, OPERATIONS)
            shown += [] if table is None else [table]
        else:
            shown.append(tool_table(overview, run, _JOB, "fio"))
            words = (_WORDS,)
    return [*shown, *(Text(line, style="dim") for line in words)]


TERMINAL: WorkloadTables = fio_tables
