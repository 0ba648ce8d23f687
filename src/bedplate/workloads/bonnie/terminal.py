"""bonnie++ in the terminal: its file, and its many files."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from bedplate.analysis.overview import Overview
from bedplate.model.metrics import METRICS
from bedplate.terminal.table_parts import MARKS
from bedplate.terminal.tables import CPU, MIB_PER_S, OPERATIONS, ToolColumn, WorkloadTables, tool_table

Run = tuple[str, str]

_FILE = (
    ToolColumn("putc\nMiB/s", MIB_PER_S, "putc", beneath=CPU, with_bar=True),
    ToolColumn("getc\nMiB/s", MIB_PER_S, "getc", beneath=CPU, with_bar=True),
    ToolColumn("write\nMiB/s", MIB_PER_S, "put_block", beneath=CPU, with_bar=True),
    ToolColumn("rewrite\nMiB/s", MIB_PER_S, "rewrite", beneath=CPU, with_bar=True),
    ToolColumn("read\nMiB/s", MIB_PER_S, "get_block", beneath=CPU, with_bar=True),
    ToolColumn("seeks\n1/s", OPERATIONS, "seeks", with_bar=True),
)
_SMALL = (
    ToolColumn("create\nin order", OPERATIONS, "seq_create"),
    ToolColumn("stat\nin order", OPERATIONS, "seq_stat"),
    ToolColumn("delete\nin order", OPERATIONS, "seq_del"),
    ToolColumn("create\nrandom", OPERATIONS, "ran_create"),
    ToolColumn("stat\nrandom", OPERATIONS, "ran_stat"),
    ToolColumn("delete\nrandom", OPERATIONS, "ran_del"),
)
_WORDS = (
    "Geometric means of n repetitions, range below. The last line of a throughput is its CPU seconds per GiB: "
    f"{METRICS[CPU].definition}. – not measurable, or not run. {MARKS}"
)


def bonnie_tables(overview: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """In the order of the plan, and what the columns are below them."""
    shown: list[RenderableType] = []
    for run in runs:
        spec = overview.spec(run)
        shown.append(tool_table(overview, run, _FILE, "its file"))
        # `files = 0` leaves the small files out, and with them their table.
        if spec is None or spec.levels.integer("files") != 0:
            shown.append(tool_table(overview, run, _SMALL, "files, 1/s"))
    return [*shown, Text(_WORDS, style="dim")]


TERMINAL: WorkloadTables = bonnie_tables
