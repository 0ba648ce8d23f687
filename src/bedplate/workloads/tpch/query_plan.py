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
from collections.abc import Iterator, Mapping, Sequence
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
    """SHA-256 of its structure: equal where two plans do the same in the same order"""
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
    kept: dict[str, Any] = _structure_of(node)
    children = node.get(_CHILDREN, [])
    if not isinstance(children, list):
        raise OutputNotUnderstood(_TOOL, expected=f"a list of `{_CHILDREN}`", found=str(children))
    if children:
        kept[_CHILDREN] = [_node(child) for child in children]
    return kept


def _structure_of(node: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: node[key] for key in _STRUCTURE if key in node}
    if isinstance(name := kept.get(_SUBPLAN), str):
        kept[_SUBPLAN] = _RETURNS.sub("", name)
    # False stands at every node even where parallel query is off.
    if node.get("Parallel Aware") is True:
        kept["Parallel Aware"] = True
    return kept


# The places of a node in its parent that EXPLAIN's own text tells, and the tree does not.
_NAMED_PLACES = ("InitPlan", "SubPlan")

# explain.c's names of an aggregate by its strategy.
_AGGREGATES = {"Sorted": "GroupAggregate", "Hashed": "HashAggregate", "Mixed": "MixedAggregate"}

# Conditions and keys, in the order in which explain.c prints them.
_CONDITIONS = (
    "Index Cond",
    "Recheck Cond",
    "Hash Cond",
    "Merge Cond",
    "Join Filter",
    "Filter",
    "Sort Key",
    "Presorted Key",
    "Group Key",
    "Cache Key",
    "CTE Name",
)


@dataclass(frozen=True)
class PlanLine:
    """One node of a plan, `depth` below its root.

    `words` are the node as EXPLAIN's text names it, `detail` its estimated cost and rows and its conditions.
    `structure` is what the hash of the plan is made of.
    """

    depth: int
    words: str
    detail: str
    structure: Mapping[str, Any]


@dataclass(frozen=True)
class PlanDifference:
    """The first line, counted from 0, at which two plans are not the same; `words` say in what."""

    line: int
    words: tuple[str, ...]


def plan_lines(explained: str) -> tuple[PlanLine, ...]:
    """The nodes of a plan from the root down, each before its children.

    `explained` is the whole output of EXPLAIN (FORMAT JSON) of one statement. OutputNotUnderstood where it
    is anything else.
    """
    structure = plan_structure(explained)
    printed = json.loads(explained)[0]["Plan"]
    return tuple(
        PlanLine(depth, _words(node), _detail(full), {key: node[key] for key in node if key != _CHILDREN})
        for (depth, node), (_, full) in zip(_nodes(structure, 0), _nodes(printed, 0), strict=True)
    )


def first_difference(left_plan: Sequence[PlanLine], right_plan: Sequence[PlanLine]) -> PlanDifference | None:
    """Where two plans part, read from the root down; None where they are one plan.

    A plan that ends earlier parts from the other at the line that it lacks.
    """
    for number, (one, other) in enumerate(zip(left_plan, right_plan, strict=False)):
        if one.depth != other.depth:
            return PlanDifference(number, (f"{_place(one)} | {_place(other)}",))
        if one.structure != other.structure:
            return PlanDifference(number, tuple(_differing(one.structure, other.structure)))
    if len(left_plan) == len(right_plan):
        return None
    number = min(len(left_plan), len(right_plan))
    ends = (
        "ends" if number == len(left_plan) else "goes on",
        "ends" if number == len(right_plan) else "goes on",
    )
    return PlanDifference(number, (" | ".join(ends),))


def _nodes(node: Mapping[str, Any], depth: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    yield depth, node
    for child in node.get(_CHILDREN, []):
        yield from _nodes(child, depth + 1)


def _place(plan_line: PlanLine) -> str:
    return f"{plan_line.words} at depth {plan_line.depth}"


def _differing(left_node: Mapping[str, Any], right_node: Mapping[str, Any]) -> Iterator[str]:
    """Keys in the order in which EXPLAIN prints them, what only the right side has at the end."""
    for key in dict.fromkeys((*left_node, *right_node)):
        if left_node.get(key) != right_node.get(key):
            yield f"{key}: {_value(left_node.get(key))} | {_value(right_node.get(key))}"


def _value(value: object) -> str:
    if value is None:
        return "none"
    return "yes" if value is True else str(value)


def _words(node: Mapping[str, Any]) -> str:
    """`Parallel Index Scan Backward using orders_pkey on orders o`, as EXPLAIN's own text has it."""
    words = _name(node)
    if node.get("Partial Mode") in ("Partial", "Finalize"):
        words = f"{node['Partial Mode']} {words}"
    if node.get("Parallel Aware"):
        words = f"Parallel {words}"
    if node.get("Scan Direction") == "Backward":
        words += " Backward"
    relation, alias, index = (node.get(key) for key in ("Relation Name", "Alias", "Index Name"))
    if index:
        words += f" using {index}" if relation else f" on {index}"
    if relation or alias:
        words += f" on {' '.join(dict.fromkeys(str(name) for name in (relation, alias) if name))}"
    if node.get("Workers Planned") is not None:
        words += f", workers planned: {node['Workers Planned']}"
    if node.get("Parent Relationship") in _NAMED_PLACES:
        words = f"{node.get('Subplan Name', node['Parent Relationship'])}: {words}"
    return words


def _name(node: Mapping[str, Any]) -> str:
    name, strategy, join = (str(node.get(key, "")) for key in ("Node Type", "Strategy", "Join Type"))
    if name == "Aggregate":
        return _AGGREGATES.get(strategy, name)
    if join and join != "Inner":
        return f"{name.removesuffix(' Join')} {join} Join"
    command = node.get("Command") or node.get("Operation")
    return f"{name} {command}" if command else name


def _detail(node: Mapping[str, Any]) -> str:
    parts = []
    if "Total Cost" in node:
        parts.append(f"cost {node.get('Startup Cost', 0)}..{node['Total Cost']}")
    if "Plan Rows" in node:
        parts.append(f"rows {node['Plan Rows']}")
    for key in _CONDITIONS:
        if key in node:
            value = node[key]
            parts.append(f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    return " · ".join(parts)


RECORDS = (QueryPlans,)
