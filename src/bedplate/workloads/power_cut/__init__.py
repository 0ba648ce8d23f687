"""Power cuts: what a database still knows after each of many cuts of one recording."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "estimate": "estimate",
    "run": "run",
    "figures": "figures",
    "validity": "validity",
    "analysis": "analysis",
    "terminal": "terminal",
    "page": "page",
    "export": "export",
}
