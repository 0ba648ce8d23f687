"""A workload that nobody knows: it writes a file of bricks and syncs each."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan",),
    "estimate": ("estimate",),
    "run": ("run",),
    "figures": ("figures",),
    "analysis": ("analysis",),
    "terminal": ("terminal",),
    "page": ("page",),
    "export": ("export",),
}
