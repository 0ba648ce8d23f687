"""No engine: the file system itself, on which tools read and write files."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "durability": "visit",
}
