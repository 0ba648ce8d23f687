"""Where two plans part is found from the root down; equal plans have no difference and one hash."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.workloads.tpch.query_plan import PlanDifference, first_difference, plan_hash, plan_lines

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def golden(repository: Path) -> Path:
    """PostgreSQL 18's plans at scale factor 0.01."""
    return repository / "tests" / "golden" / "tpch" / "pg18"


def explained(root: dict[str, Any]) -> str:
    return json.dumps([{"Plan": root}])


def node(kind: str, *children: dict[str, Any], **keys: Any) -> dict[str, Any]:
    made = {"Node Type": kind, **{key.replace("_", " "): value for key, value in keys.items()}}
    return {**made, "Plans": list(children)} if children else made


def difference(left: dict[str, Any], right: dict[str, Any]) -> PlanDifference | None:
    return first_difference(plan_lines(explained(left)), plan_lines(explained(right)))


def test_lines_read_as_explain_writes_them(golden: Path) -> None:
    lines = plan_lines((golden / "query-15.json").read_text(encoding="utf-8"))
    assert [
        (0, "Sort"),
        (1, "CTE revenue: HashAggregate"),
        (2, "Bitmap Heap Scan on lineitem"),
        (3, "Bitmap Index Scan on lineitem_l_shipdate_idx"),
        (1, "InitPlan 2: Aggregate"),
        (2, "CTE Scan on revenue_1"),
        (1, "Hash Join"),
        (2, "Seq Scan on supplier"),
        (2, "Hash"),
        (3, "CTE Scan on revenue"),
    ] == [(line.depth, line.words) for line in lines]
    assert "cost 1284.82..1284.83 · rows 1 · Sort Key: supplier.s_suppkey" == lines[0].detail


def test_a_parallel_plan_parts_where_its_workers_are_gathered(golden: Path) -> None:
    alone, parallel = (
        plan_lines((golden / name).read_text(encoding="utf-8"))
        for name in ("query-9.json", "query-9-parallel.json")
    )
    assert PlanDifference(1, ("Node Type: Sort | Gather Merge", "Workers Planned: none | 2")) == (
        first_difference(alone, parallel)
    )
    assert PlanDifference(1, ("Node Type: Gather Merge | Sort", "Workers Planned: 2 | none")) == (
        first_difference(parallel, alone)
    )


def test_what_was_counted_is_no_difference(golden: Path) -> None:
    bare, counted = (
        plan_lines((golden / name).read_text(encoding="utf-8"))
        for name in ("query-15.json", "query-15-analyze.json")
    )
    assert first_difference(bare, counted) is None


def test_another_index_is_named_on_both_sides() -> None:
    left = node("Sort", node("Index Scan", Relation_Name="orders", Index_Name="a_idx"))
    right = node("Sort", node("Index Scan", Relation_Name="orders", Index_Name="b_idx"))
    assert PlanDifference(1, ("Index Name: a_idx | b_idx",)) == difference(left, right)


def test_a_plan_that_ends_earlier_parts_at_the_line_it_lacks() -> None:
    short = node("Append", node("Seq Scan"))
    long = node("Append", node("Seq Scan"), node("Seq Scan"))
    assert PlanDifference(2, ("ends | goes on",)) == difference(short, long)
    assert PlanDifference(2, ("goes on | ends",)) == difference(long, short)


def test_the_same_nodes_nested_otherwise_are_two_plans() -> None:
    beside = node("Append", node("Sort"), node("Sort"))
    below = node("Append", node("Sort", node("Sort")))
    assert PlanDifference(2, ("Sort at depth 1 | Sort at depth 2",)) == difference(beside, below)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"kind": "Nested Loop", "Join_Type": "Semi"}, "Nested Loop Semi Join"),
        ({"kind": "Hash Join", "Join_Type": "Right Anti"}, "Hash Right Anti Join"),
        (
            {"kind": "Aggregate", "Strategy": "Sorted", "Partial_Mode": "Finalize"},
            "Finalize GroupAggregate",
        ),
        ({"kind": "Aggregate", "Strategy": "Plain", "Partial_Mode": "Simple"}, "Aggregate"),
        (
            {
                "kind": "Index Scan",
                "Relation_Name": "orders",
                "Alias": "o",
                "Index_Name": "orders_pkey",
                "Scan_Direction": "Backward",
                "Parallel_Aware": True,
            },
            "Parallel Index Scan Backward using orders_pkey on orders o",
        ),
        ({"kind": "SetOp", "Strategy": "Hashed", "Command": "Except"}, "SetOp Except"),
        ({"kind": "Result", "Parent_Relationship": "SubPlan"}, "SubPlan: Result"),
    ],
)
def test_names_are_those_of_explain(keys: dict[str, Any], words: str) -> None:
    assert [words] == [line.words for line in plan_lines(explained(node(**keys)))]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '[{"Plan": 3}]', '[{"Plan": {"Node Type": "Sort", "Plans": 1}}]']
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        plan_lines(text)


_NODES = st.recursive(
    st.fixed_dictionaries(
        {"Node Type": st.sampled_from(["Sort", "Hash"])},
        optional={
            "Index Name": st.sampled_from(["a", "b"]),
            "Workers Planned": st.integers(1, 2),
            "Parallel Aware": st.booleans(),
            "Total Cost": st.floats(0, 9),
            "Filter": st.text(max_size=3),
        },
    ),
    lambda children: st.builds(
        lambda kind, below: {"Node Type": kind, "Plans": below},
        st.sampled_from(["Append", "Limit"]),
        st.lists(children, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(left=_NODES, right=_NODES)
def test_plans_part_somewhere_exactly_if_their_hashes_differ(left: Any, right: Any) -> None:
    found = difference(left, right)
    assert (found is None) == (plan_hash(explained(left)) == plan_hash(explained(right)))
    mirrored = difference(right, left)
    assert (found and found.line) == (mirrored and mirrored.line)
    if found is not None:
        lines = [plan_lines(explained(plan)) for plan in (left, right)]
        before = [[(line.depth, line.structure) for line in one[: found.line]] for one in lines]
        assert before[0] == before[1]
        assert found.words
