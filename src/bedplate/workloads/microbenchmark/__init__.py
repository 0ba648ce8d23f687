"""LMDB's microbenchmark on any engine that has a driver for it: fills, overwrites and reads of one database."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "metrics",
    "plan": "plan",
    "estimate": "estimate",
    "canary": "canary",
    "warnings": "warnings",
    "run": "run",
    "figures": "figures",
    "validity": "validity",
    "analysis": "analysis",
    "terminal": "terminal",
    "page": "page",
}
