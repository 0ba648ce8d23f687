"""PostgreSQL: its source, builds per block size, and clusters."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "estimate": "estimate",
    "rules": "rules",
    "canary": "canary",
    "warnings": "warnings",
    "preparation": "preparation",
    "settings_check": "settings_check",
    "data_directory": "data_directory",
    "durability": "durability",
    "server": "server",
    "sql": "sql",
    "kept_data": "kept_data",
    "power_cut": "power_cut",
    "faulty_disk": "faulty_disk",
    "page_names": "page_names",
    "reproduction": "reproduction",
    "server_log": "server_log",
}
