"""sysbench: its OLTP scripts, the same on every server that speaks SQL."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "model",
    "plan": "plan",
    "estimate": "plan",
    "canary": "plan",
    "warnings": "plan",
    "inputs": "prepare",
    "run": "visit",
    "figures": "figures",
    "validity": "figures",
    "analysis": "reading",
    "terminal": "terminal",
}
