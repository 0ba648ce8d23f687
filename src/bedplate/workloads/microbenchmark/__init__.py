"""LMDB's microbenchmark on any engine that has a driver for it: fills, overwrites and reads of one database."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "model",
    "plan": "plan",
    "estimate": "plan",
    "canary": "plan",
    "warnings": "plan",
    "run": "visit",
    "figures": "figures",
    "validity": "figures",
    "analysis": "reading",
    "terminal": "terminal",
    "page": "page",
}
