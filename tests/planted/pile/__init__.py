"""An engine that nobody knows: files, one brick upon another."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "durability": "durability",
    "server": "server",
}
