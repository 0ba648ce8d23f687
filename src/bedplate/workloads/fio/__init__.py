"""fio: one run for each job, and pg_test_fsync."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model", "metrics"),
    "plan": ("plan", "estimate", "canary"),
    "prepare": ("inputs", "measured_disk"),
    "visit": ("run",),
    "figures": ("figures", "validity"),
    "reading": ("analysis",),
    "terminal": ("terminal",),
}
