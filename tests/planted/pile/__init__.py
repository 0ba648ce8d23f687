"""An engine that nobody knows: files, one brick upon another."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan",),
    "durability": ("durability",),
    "server": ("server",),
}
