"""fio: one run for each job, and pg_test_fsync."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "model",
    "plan": "plan",
    "estimate": "plan",
    "canary": "plan",
    "inputs": "prepare",
    "measured_disk": "prepare",
    "run": "visit",
    "figures": "figures",
    "validity": "figures",
    "analysis": "reading",
    "terminal": "terminal",
}
