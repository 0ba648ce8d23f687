"""Anybody's own engine: two programs in a folder with an engine.toml (docs/ENGINES.md)."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan",),
    "prepare": ("own_programs",),
    "visit": ("durability",),
    "oracle": ("power_cut", "faulty_disk", "reproduction"),
}
