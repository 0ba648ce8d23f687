"""Where a disk may fail below MariaDB."""

from __future__ import annotations

from bedplate.engines.mariadb.oracle import errors_in
from bedplate.engines.mariadb.power_cut import POWER_CUT
from bedplate.engines.mariadb.server import DATABASE
from bedplate.visit.fault_engine import FaultEngine

# Not ibdata1: it has the doublewrite buffer, which every page goes to before its own place.
FAULTY_DISK = FaultEngine(
    POWER_CUT,
    log_files=("ib_logfile*",),
    data_files=(f"{DATABASE}/*.ibd",),
    said_of_disk=errors_in,
)
