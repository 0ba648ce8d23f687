"""A disk that fails while an engine writes: by order, at a place and a moment, and what is left of what was acknowledged."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "metrics",
    "plan": "plan",
    "estimate": "estimate",
    "run": "run",
    "records": "records",
    "figures": "figures",
    "validity": "validity",
    "analysis": "analysis",
    "terminal": "terminal",
    "page": "page",
    "export": "export",
}
