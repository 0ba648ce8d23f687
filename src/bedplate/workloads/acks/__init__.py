"""How fast the writer of an own engine is: its acknowledgements, timed as they come, without the recorder of power cuts."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan", "estimate"),
    "visit": ("run",),
    "figures": ("figures", "validity"),
    "reading": ("analysis",),
    "terminal": ("terminal",),
}
