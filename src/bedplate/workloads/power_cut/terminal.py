"""Power cuts in the terminal: their table stands with that of durability, for all runs together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bedplate.analysis.overview import Overview
    from bedplate.terminal.tables import WorkloadTables

Run = tuple[str, str]


def no_tables(overview: Overview, runs: Sequence[Run]) -> list[RenderableType]:  # noqa: ARG001 -- of others' role
    """Nothing."""
    return []


TERMINAL: WorkloadTables = no_tables
