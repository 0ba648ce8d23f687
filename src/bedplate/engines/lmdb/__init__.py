"""LMDB: how its environment is opened, and what its modes leave of what the file system promises."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan", "rules"),
    "prepare": ("own_library", "data_directory"),
    "visit": ("durability", "microbenchmark"),
    "oracle": ("power_cut", "faulty_disk", "page_names", "reproduction"),
}
