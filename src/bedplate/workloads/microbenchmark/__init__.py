"""LMDB's microbenchmark on any engine that has a driver for it: fills, overwrites and reads of one database."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model", "metrics"),
    "plan": ("plan", "estimate", "canary", "warnings"),
    "visit": ("run",),
    "figures": ("figures", "validity"),
    "reading": ("analysis",),
    "terminal": ("terminal",),
    "page": ("page",),
}
