"""sysbench in the terminal: rates of transactions, and their latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.terminal.tables import transaction_tables

if TYPE_CHECKING:
    from bedplate.terminal.tables import WorkloadTables

TERMINAL: WorkloadTables = transaction_tables
