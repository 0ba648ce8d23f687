"""Where a disk may fail below SQLite: its log is the WAL, or the rollback journal."""

from __future__ import annotations

from bedplate.engines.sqlite.power_cut import POWER_CUT
from bedplate.visit.fault_engine import FaultEngine

FAULTY_DISK = FaultEngine(POWER_CUT, log_files=("test.db-wal", "test.db-journal"), data_files=("test.db",))
