"""LMDB: how its environment is opened, and what its modes leave of what the file system promises."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "rules": "rules",
    "own_library": "own_library",
    "data_directory": "data_directory",
    "durability": "durability",
    "microbenchmark": "microbenchmark",
    "power_cut": "power_cut",
    "faulty_disk": "faulty_disk",
    "page_names": "page_names",
    "reproduction": "reproduction",
}
