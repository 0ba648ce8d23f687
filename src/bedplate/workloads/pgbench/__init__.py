"""PostgreSQL under pgbench: a dataset by scale, and runs of scripts on it."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "estimate": "estimate",
    "rules": "rules",
    "canary": "canary",
    "warnings": "warnings",
    "inputs": "inputs",
    "publications": "publications",
    "run": "run",
    "figures": "figures",
    "validity": "validity",
    "analysis": "analysis",
    "terminal": "terminal",
}
