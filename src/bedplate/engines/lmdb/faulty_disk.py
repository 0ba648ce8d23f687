"""Where a disk may fail below LMDB, which has no log."""

from __future__ import annotations

from bedplate.engines.lmdb.power_cut import POWER_CUT
from bedplate.visit.fault_engine import FaultEngine

FAULTY_DISK = FaultEngine(POWER_CUT, log_files=(), data_files=("data.mdb",))
