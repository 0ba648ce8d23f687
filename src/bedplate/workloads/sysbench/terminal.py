"""sysbench in the terminal: rates of transactions, and their latency."""

from __future__ import annotations

from bedplate.terminal.tables import WorkloadTables, transaction_tables

TERMINAL: WorkloadTables = transaction_tables
