"""PostgreSQL under pgbench: a dataset by scale, and runs of scripts on it."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "estimate": "plan",
    "rules": "plan",
    "canary": "plan",
    "warnings": "plan",
    "inputs": "prepare",
    "publications": "publications",
    "run": "visit",
    "figures": "figures",
    "validity": "figures",
    "analysis": "reading",
    "terminal": "terminal",
}
