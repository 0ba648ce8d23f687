"""MariaDB with InnoDB: the distribution's packages, unpacked in the cache; its server, and what survives under it."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "metrics",
    "plan": "plan",
    "estimate": "estimate",
    "rules": "rules",
    "canary": "canary",
    "preparation": "preparation",
    "settings_check": "settings_check",
    "data_directory": "data_directory",
    "durability": "durability",
    "server": "server",
    "sql": "sql",
    "power_cut": "power_cut",
    "faulty_disk": "faulty_disk",
    "page_names": "page_names",
    "reproduction": "reproduction",
    "server_log": "server_log",
    "counter_figures": "counter_figures",
}
