"""MariaDB with InnoDB: the distribution's packages, unpacked in the cache; its server, and what survives under it."""

from __future__ import annotations

# What rooms of the house ask for, by the file that has it: the object of that name, in capitals.
ROLES = {
    "model": ("model", "metrics"),
    "plan": ("plan", "estimate", "rules", "canary"),
    "prepare": ("preparation", "settings_check", "data_directory"),
    "visit": ("durability", "server", "sql"),
    "oracle": ("power_cut", "faulty_disk", "page_names", "reproduction"),
    "reading": ("server_log", "counter_figures"),
}
