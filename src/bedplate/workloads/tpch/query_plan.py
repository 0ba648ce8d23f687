"""What makes two plans of a query the same plan: a hash of the structure that EXPLAIN (FORMAT JSON) shows.

Costs, rows, widths and everything that was counted while the query ran differ between two runs of one and
the same plan, and filters are printed in an order that follows their cost, so they are left out.

Read from PostgreSQL 18's explain.c. Versions before 17 say behind an InitPlan's name which parameters it
returns; that is left out too, so that a plan which two versions share has one hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping  # noqa: TC003 -- the codec reads the types of fields
from dataclasses import dataclass
from typing import Any

from bedplate.errors import OutputNotUnderstood
from bedplate.workloads.tpch.model import QUERIES

_STRUCTURE = (
    "Node Type",
    "Join Type",
    "Strategy",
    "Partial Mode",
    "Relation Name",
    "Alias",
    "Index Name",
    "Scan Direction",
    "Parent Relationship",
    "Subplan Name",
    "Operation",
    "Command",
    "Workers Planned",
)
_CHILDREN = "Plans"
_SUBPLAN = "Subplan Name"
_RETURNS = re.compile(r" \(returns \$\d+(?:,\$\d+)*\)$")
_TOOL = "EXPLAIN (FORMAT JSON)"
PLANS_FILE = "plans.json"
# Beside the server's own settings: what ANALYZE ran with, whose statistics the plans are chosen by.
ANALYZE_TARGET = "default_statistics_target of ANALYZE"


@dataclass(frozen=True)
class QueryPlan:
    """The plan of one query in one run."""

    item: str
    """number of the query: `14`"""
    hash: str
    """SHA-256 of its structure (`workloads/tpch/query_plan.py`): equal where two plans do the same"""
    explained: str
    """EXPLAIN (FORMAT JSON), as PostgreSQL printed it"""
    phase: str = QUERIES
    """that of the query's item: `queries` of a pass, or `stream 2` and so on; missing is `queries`"""


@dataclass(frozen=True)
class QueryPlans:
    """`plans.json` of a run."""

    plans: tuple[QueryPlan, ...]
    """in the order in which the queries ran"""
    settings: Mapping[str, str]
    """the effective settings of the server that choose between plans; of `enable_…` those that are not
    PostgreSQL's default; and `default_statistics_target of ANALYZE`"""


def plan_structure(explained: str) -> dict[str, Any]:
    """The nodes of a plan with what decides its kind, nested in `Plans` as EXPLAIN nests them.

    `explained` is the whole output of EXPLAIN (FORMAT JSON) of one statement. OutputNotUnderstood where it
    is anything else.
    """
    try:
        statements = json.loads(explained)
    except ValueError as error:
        raise OutputNotUnderstood(_TOOL, expected="JSON", found=explained) from error
    if not (isinstance(statements, list) and len(statements) == 1 and isinstance(statements[0], dict)):
        raise OutputNotUnderstood(_TOOL, expected="a list of one statement's plan", found=explained)
    return _node(statements[0].get("Plan"))


def plan_hash(explained: str) -> str:
    """SHA-256 of the structure, in hexadecimal: equal where two plans do the same in the same order."""
    text = json.dumps(plan_structure(explained), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _node(node: object) -> dict[str, Any]:
    if not isinstance(node, dict) or "Node Type" not in node:
        raise OutputNotUnderstood(_TOOL, expected="a node with its `Node Type`", found=str(node))
    kept: dict[str, Any] = _kept(node)
    children = node.get(_CHILDREN, [])
    if not isinstance(children, list):
        raise OutputNotUnderstood(_TOOL, expected=f"a list of `{_CHILDREN}`", found=str(children))
    if children:
        kept[_CHILDREN] = [_node(child) for child in children]
    return kept


def _kept(node: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: node[key] for key in _STRUCTURE if key in node}
    if isinstance(name := kept.get(_SUBPLAN), str):
        kept[_SUBPLAN] = _RETURNS.sub("", name)
    # False stands at every node even where parallel query is off.
    if node.get("Parallel Aware") is True:
        kept["Parallel Aware"] = True
    return kept
