"""bonnie++: sequential I/O on one file, and many files that are made and removed."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "metrics",
    "plan": "plan",
    "estimate": "estimate",
    "canary": "canary",
    "run": "run",
    "figures": "figures",
    "validity": "validity",
    "analysis": "analysis",
    "terminal": "terminal",
}
