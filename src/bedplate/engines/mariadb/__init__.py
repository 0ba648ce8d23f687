"""MariaDB with InnoDB: the distribution's packages, unpacked in the cache; its server, and what survives under it."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "model",
    "plan": "plan",
    "estimate": "plan",
    "rules": "plan",
    "canary": "plan",
    "preparation": "prepare",
    "settings_check": "prepare",
    "data_directory": "prepare",
    "durability": "visit",
    "server": "visit",
    "sql": "visit",
    "power_cut": "oracle",
    "faulty_disk": "oracle",
    "page_names": "oracle",
    "reproduction": "oracle",
    "server_log": "reading",
    "counter_figures": "reading",
}
