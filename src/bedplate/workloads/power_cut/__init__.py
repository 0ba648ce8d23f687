"""Power cuts: what a database still knows after each of many cuts of one recording."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan", "estimate"),
    "visit": ("run",),
    "figures": ("figures", "validity"),
    "reading": ("analysis",),
    "terminal": ("terminal",),
    "page": ("page",),
    "export": ("export",),
}
