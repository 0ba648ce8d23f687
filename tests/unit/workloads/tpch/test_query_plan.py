"""Two runs of one plan have one hash; anything that a plan does otherwise changes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bedplate.errors import OutputNotUnderstood
from bedplate.workloads.tpch.query_plan import plan_hash, plan_structure

GOLDEN = "tests/golden/tpch"
STRUCTURE = {
    "Join Type": "Semi",
    "Strategy": "Mixed",
    "Partial Mode": "Finalize",
    "Relation Name": "other",
    "Alias": "l9",
    "Index Name": "other_idx",
    "Scan Direction": "Backward",
    "Parent Relationship": "SubPlan",
    "Subplan Name": "InitPlan 9",
    "Operation": "Update",
    "Command": "Except",
    "Workers Planned": 2,
    "Parallel Aware": True,
}
# What explain.c prints besides: estimates, counters, and conditions whose order follows their cost.
BESIDES = {
    "Startup Cost": 99.5,
    "Total Cost": 100.5,
    "Plan Rows": 7,
    "Plan Width": 8,
    "Disabled": True,
    "Async Capable": True,
    "Parallel Aware": False,
    "Inner Unique": True,
    "Actual Rows": 3.0,
    "Actual Loops": 1,
    "Shared Hit Blocks": 12,
    "I/O Read Time": 0.5,
    "WAL Bytes": 10,
    "Hash Buckets": 1024,
    "Hash Batches": 4,
    "Planned Partitions": 8,
    "Sort Space Used": 25,
    "Workers Launched": 1,
    "Cache Mode": "binary",
    "Filter": "(a AND b)",
    "Hash Cond": "(a = b)",
    "Index Cond": "(a > 1)",
    "Sort Key": ["a"],
    "A field of a later version": "x",
}


@pytest.fixture
def explained(repository: Path) -> str:
    """Query 15 on PostgreSQL 18.6 at scale factor 0.01."""
    return golden(repository, "pg18/query-15.json")


def golden(repository: Path, name: str) -> str:
    return (repository / GOLDEN / name).read_text(encoding="utf-8")


def changed(explained: str, key: str, value: Any) -> str:
    document = json.loads(explained)
    document[0]["Plan"]["Plans"][0]["Plans"][0][key] = value
    return json.dumps(document)


def test_a_run_with_counters_has_the_hash_of_the_bare_plan(repository: Path, explained: str) -> None:
    analyzed = golden(repository, "pg18/query-15-analyze.json")
    assert "Actual Total Time" in analyzed
    assert plan_hash(explained) == plan_hash(analyzed)


def test_golden_plans_differ_from_one_another(repository: Path) -> None:
    names = ("pg18/query-15.json", "pg18/query-9.json", "pg18/query-9-parallel.json")
    assert 3 == len({plan_hash(golden(repository, name)) for name in names})


def test_two_versions_that_do_the_same_have_one_plan(repository: Path, explained: str) -> None:
    older = golden(repository, "pg15/query-15.json")
    assert "InitPlan 2 (returns $1)" in older
    assert "returns" not in explained
    assert plan_hash(older) == plan_hash(explained)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("InitPlan 1 (returns $0,$1)", "InitPlan 1"),
        ("CTE returns", "CTE returns"),
        ("CTE x (returns y)", "CTE x (returns y)"),
    ],
)
def test_only_returned_parameters_are_cut_off_a_subplans_name(explained: str, name: str, kept: str) -> None:
    assert plan_hash(changed(explained, "Subplan Name", name)) == plan_hash(
        changed(explained, "Subplan Name", kept)
    )
    structure = plan_structure(changed(explained, "Subplan Name", name))
    assert kept == structure["Plans"][0]["Plans"][0]["Subplan Name"]


def test_the_hash_is_pinned(explained: str) -> None:
    # Stored hashes are compared with new ones: whoever changes what is hashed makes them incomparable.
    assert plan_hash(explained) == "871c430302f40aedcb186f56e8c022a2dc1bf05d96e86c2632e002a5f958e225"


@pytest.mark.parametrize(("key", "value"), STRUCTURE.items())
def test_what_a_plan_does_is_hashed(explained: str, key: str, value: Any) -> None:
    assert plan_hash(explained) != plan_hash(changed(explained, key, value))


@pytest.mark.parametrize(("key", "value"), BESIDES.items())
def test_what_it_costs_or_counts_is_not(explained: str, key: str, value: Any) -> None:
    assert plan_hash(explained) == plan_hash(changed(explained, key, value))


def test_the_order_of_children_is_hashed(explained: str) -> None:
    document = json.loads(explained)
    document[0]["Plan"]["Plans"].reverse()
    assert plan_hash(explained) != plan_hash(json.dumps(document))


def test_the_order_of_keys_is_not(explained: str) -> None:
    assert plan_hash(explained) == plan_hash(json.dumps(json.loads(explained), sort_keys=True))


def test_structure_keeps_the_nesting(explained: str) -> None:
    structure = plan_structure(explained)
    assert "Sort" == structure["Node Type"]
    expression, maximum, join = structure["Plans"]
    assert "CTE revenue" == expression["Subplan Name"]
    assert "lineitem_l_shipdate_idx" == expression["Plans"][0]["Plans"][0]["Index Name"]
    assert {"Node Type", "Strategy", "Partial Mode", "Parent Relationship", "Subplan Name", "Plans"} == set(
        maximum
    )
    assert ["Seq Scan", "Hash"] == [child["Node Type"] for child in join["Plans"]]


def test_parallel_query_is_seen(repository: Path) -> None:
    structure = json.dumps(plan_structure(golden(repository, "pg18/query-9-parallel.json")))
    assert '"Workers Planned": 2' in structure
    assert '"Parallel Aware": true' in structure
    assert "Parallel Aware" not in json.dumps(plan_structure(golden(repository, "pg18/query-9.json")))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "QUERY PLAN",
        "{}",
        "[]",
        "[1]",
        '[{"Plan": {"Node Type": "Result"}}, {"Plan": {"Node Type": "Result"}}]',
        "[{}]",
        '[{"Plan": {}}]',
        '[{"Plan": {"Node Type": "Sort", "Plans": {"Node Type": "Result"}}}]',
        '[{"Plan": {"Node Type": "Sort", "Plans": [null]}}]',
    ],
)
def test_anything_but_one_plan_is_refused(text: str) -> None:
    with pytest.raises(OutputNotUnderstood, match=r"EXPLAIN \(FORMAT JSON\): expected"):
        plan_hash(text)
