"""fio: one run for each job, and pg_test_fsync."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "metrics",
    "plan": "plan",
    "estimate": "estimate",
    "canary": "canary",
    "inputs": "inputs",
    "measured_disk": "measured_disk",
    "run": "run",
    "figures": "figures",
    "validity": "validity",
    "analysis": "analysis",
    "terminal": "terminal",
}
