"""How fast the writer of an own engine is: its acknowledgements, timed as they come, without the recorder of power cuts."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "estimate": "plan",
    "run": "visit",
    "figures": "figures",
    "validity": "figures",
    "analysis": "reading",
    "terminal": "terminal",
}
