from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from bedplate.analysis.overview import Overview
from bedplate.terminal.tables import WorkloadTables, run_tables


def brick_tables(found: Overview, runs: Sequence[tuple[str, str]]) -> list[RenderableType]:
    return run_tables(found, runs, "operations_per_s")


TERMINAL: WorkloadTables = brick_tables
