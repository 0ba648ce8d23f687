"""Where a disk may fail below PostgreSQL."""

from __future__ import annotations

from bedplate.engines.postgresql.oracle import write_errors
from bedplate.engines.postgresql.power_cut import POWER_CUT
from bedplate.visit.fault_engine import FaultEngine

FAULTY_DISK = FaultEngine(
    POWER_CUT, log_files=("pg_wal/*",), data_files=("base/*/*",), said_of_disk=write_errors
)
