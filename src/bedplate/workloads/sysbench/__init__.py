"""sysbench: its OLTP scripts, the same on every server that speaks SQL."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "metrics",
    "plan": "plan",
    "estimate": "estimate",
    "canary": "canary",
    "warnings": "warnings",
    "inputs": "inputs",
    "run": "run",
    "figures": "figures",
    "validity": "validity",
    "analysis": "analysis",
    "terminal": "terminal",
}
