"""TPC-H: PostgreSQL as a data warehouse, loaded, asked alone and asked by several at once."""

from __future__ import annotations

# Which file has what a room of the house asks for: the object of that name, in capitals.
ROLES = {
    "model": "model",
    "plan": "plan",
    "estimate": "plan",
    "inputs": "prepare",
    "run": "visit",
    "records": "query_plan",
    "figures": "figures",
    "validity": "figures",
    "analysis": "reading",
    "terminal": "terminal",
    "page": "page",
    "export": "export",
}
