"""PostgreSQL under pgbench: a dataset by scale, and runs of scripts on it."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan", "estimate", "rules", "canary", "warnings"),
    "prepare": ("inputs",),
    "publications": ("publications",),
    "visit": ("run",),
    "figures": ("figures", "validity"),
    "reading": ("analysis",),
    "terminal": ("terminal",),
}
