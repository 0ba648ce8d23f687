"""sysbench: its OLTP scripts, the same on every server that speaks SQL."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model", "metrics"),
    "plan": ("plan", "estimate", "canary", "warnings"),
    "prepare": ("inputs",),
    "visit": ("run",),
    "figures": ("figures", "validity"),
    "reading": ("analysis",),
    "terminal": ("terminal",),
}
