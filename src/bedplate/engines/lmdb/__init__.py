"""LMDB: how its environment is opened, and what its modes leave of what the file system promises."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "rules": "plan",
    "own_library": "prepare",
    "data_directory": "prepare",
    "durability": "visit",
    "microbenchmark": "visit",
    "power_cut": "oracle",
    "faulty_disk": "oracle",
    "page_names": "oracle",
    "reproduction": "oracle",
}
