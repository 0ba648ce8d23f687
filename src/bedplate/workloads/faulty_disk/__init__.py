"""A disk that fails while an engine writes: by order, at a place and a moment, and what is left of what was acknowledged."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model", "metrics", "records"),
    "plan": ("plan", "estimate"),
    "visit": ("run",),
    "figures": ("figures", "validity"),
    "reading": ("analysis",),
    "terminal": ("terminal",),
    "page": ("page",),
    "export": ("export",),
}
