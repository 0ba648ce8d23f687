"""An own engine's writer in the terminal: what it acknowledges a second, and what each acknowledgement takes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from bedplate.analysis.overview import Overview
from bedplate.terminal.table_parts import MARKS
from bedplate.terminal.tables import ToolColumn, WorkloadTables, run_tables, tool_table

_EACH = (
    ToolColumn("p50\nms", "latency_ms_p50"),
    ToolColumn("p99\nms", "latency_ms_p99"),
    ToolColumn("max\nms", "latency_ms_max"),
    ToolColumn("\nflushes", "device_flushes_per_transaction"),
    ToolColumn("written\nKiB", "device_written_kib_per_transaction"),
    ToolColumn("CPU\nms", "server_cpu_ms_per_transaction"),
)
_WORDS = (
    f"Geometric mean of n repetitions, range below. CPU is that of the writer and what it started. {MARKS}"
)


def acks_tables(overview: Overview, runs: Sequence[tuple[str, str]]) -> list[RenderableType]:
    """Rates beside what survives a power cut; then what one acknowledged transaction takes."""
    return [
        *run_tables(overview, runs, "tps"),
        *(tool_table(overview, run, _EACH, "for each acknowledged transaction") for run in runs),
        Text(_WORDS, style="dim"),
    ]


TERMINAL: WorkloadTables = acks_tables
