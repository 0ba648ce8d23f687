"""PostgreSQL: its source, builds per block size, and clusters."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model",),
    "plan": ("plan", "estimate", "rules", "canary", "warnings"),
    "prepare": ("preparation", "settings_check", "data_directory"),
    "ready_made": ("server_choice",),
    "visit": ("durability", "server", "sql", "kept_data"),
    "oracle": ("power_cut", "faulty_disk", "page_names", "reproduction"),
    "reading": ("server_log",),
}
