"""A disk that fails while an engine writes: by order, at a place and a moment, and what is left of what was acknowledged."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "metrics": "model",
    "plan": "plan",
    "estimate": "plan",
    "run": "visit",
    "records": "model",
    "figures": "figures",
    "validity": "figures",
    "analysis": "reading",
    "terminal": "terminal",
    "page": "page",
    "export": "export",
}
