"""pgbench in the terminal: rates of transactions, and their latency."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from bedplate.analysis.overview import Overview
from bedplate.analysis.run_heads import TRANSACTIONS
from bedplate.terminal.tables import WorkloadTables, part_table, transaction_tables


def pgbench_tables(overview: Overview, runs: Sequence[tuple[str, str]]) -> list[RenderableType]:
    """Their tps, and the latency of each script where a run has several."""
    of_scripts = (part_table(overview, run, TRANSACTIONS.second) for run in runs)
    return [
        *transaction_tables(overview, runs),
        *(table for table in of_scripts if table is not None),
    ]


TERMINAL: WorkloadTables = pgbench_tables
