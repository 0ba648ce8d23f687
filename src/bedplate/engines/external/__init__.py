"""Anybody's own engine: two programs in a folder with an engine.toml (docs/ENGINES.md)."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "own_programs": "prepare",
    "durability": "visit",
    "power_cut": "oracle",
    "faulty_disk": "oracle",
    "reproduction": "oracle",
}
