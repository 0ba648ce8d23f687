"""TPC-H: PostgreSQL as a data warehouse, loaded, asked alone and asked by several at once."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan", "estimate"),
    "prepare": ("inputs",),
    "visit": ("run",),
    "query_plan": ("records",),
    "figures": ("figures", "validity"),
    "reading": ("analysis",),
    "terminal": ("terminal",),
    "page": ("page",),
    "export": ("export",),
}
