"""No engine: the file system itself, on which tools read and write files."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "visit": ("durability",),
}
