"""PostgreSQL: its source, builds per block size, and clusters."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "estimate": "plan",
    "rules": "plan",
    "canary": "plan",
    "warnings": "plan",
    "preparation": "prepare",
    "settings_check": "prepare",
    "data_directory": "prepare",
    "durability": "visit",
    "server": "visit",
    "sql": "visit",
    "kept_data": "visit",
    "power_cut": "oracle",
    "faulty_disk": "oracle",
    "page_names": "oracle",
    "reproduction": "oracle",
    "server_log": "reading",
}
