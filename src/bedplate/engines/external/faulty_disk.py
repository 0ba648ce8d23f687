"""Where a disk may fail below an own engine, of whose files nothing is known."""

from __future__ import annotations

from bedplate.engines.external.power_cut import POWER_CUT
from bedplate.visit.fault_engine import FaultEngine

FAULTY_DISK = FaultEngine(POWER_CUT, log_files=(), data_files=("**/*",))
