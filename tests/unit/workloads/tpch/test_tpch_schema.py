"""The tables and their keys are those of clause 1.4, and nothing is indexed that may not be."""

from __future__ import annotations

import re

import pytest

from bedplate.workloads.tpch import queries
from bedplate.workloads.tpch.queries import LINEITEM, TABLES


def test_eight_tables_with_the_columns_of_the_specification() -> None:
    assert {
        "region": 3,
        "nation": 4,
        "part": 9,
        "supplier": 7,
        "partsupp": 5,
        "customer": 8,
        "orders": 9,
        "lineitem": 16,
    } == {name: len(table.columns) for name, table in TABLES.items()}


def test_a_column_carries_the_prefix_of_its_table() -> None:
    prefixes = {"partsupp": "ps_"}
    for table in TABLES.values():
        prefix = prefixes.get(table.name, f"{table.name[0]}_")
        assert all(column.startswith(prefix) for column in table.columns), table.name


def test_tables_come_after_those_they_refer_to() -> None:
    seen: set[str] = set()
    for table in TABLES.values():
        assert {key.table for key in table.foreign_keys} <= seen
        seen.add(table.name)


def test_foreign_keys_are_as_wide_as_the_primary_keys_they_refer_to() -> None:
    for table in TABLES.values():
        for key in table.foreign_keys:
            assert len(TABLES[key.table].primary_key) == len(key.columns)
            assert set(key.columns) <= table.columns.keys()


def test_all_ten_foreign_keys_are_defined_or_none_may_be() -> None:
    statements = queries.foreign_keys()
    assert 10 == len(statements) == len({statement.name for statement in statements})
    assert (
        "alter table lineitem add constraint lineitem_l_partkey_l_suppkey_fkey"
        " foreign key (l_partkey, l_suppkey) references partsupp (ps_partkey, ps_suppkey)"
    ) in {statement.sql for statement in statements}


def test_indexes_are_on_foreign_keys_and_dates_only_and_none_doubles_a_primary_key() -> None:
    assert {
        "nation (n_regionkey)",
        "supplier (s_nationkey)",
        "partsupp (ps_suppkey)",
        "customer (c_nationkey)",
        "orders (o_custkey)",
        "orders (o_orderdate)",
        "lineitem (l_partkey)",
        "lineitem (l_suppkey)",
        "lineitem (l_partkey, l_suppkey)",
        "lineitem (l_shipdate)",
        "lineitem (l_commitdate)",
        "lineitem (l_receiptdate)",
    } == {statement.sql.split(" on ")[1] for statement in queries.indexes()}


def test_primary_keys_are_those_of_the_specification() -> None:
    assert {
        "region": ("r_regionkey",),
        "nation": ("n_nationkey",),
        "part": ("p_partkey",),
        "supplier": ("s_suppkey",),
        "partsupp": ("ps_partkey", "ps_suppkey"),
        "customer": ("c_custkey",),
        "orders": ("o_orderkey",),
        "lineitem": ("l_orderkey", "l_linenumber"),
    } == {name: table.primary_key for name, table in TABLES.items()}
    assert 8 == len(queries.primary_keys())


@pytest.mark.parametrize(("scale_factor", "kind"), [(0.01, "integer"), (300, "integer"), (301, "bigint")])
def test_identifiers_grow_where_four_bytes_end(scale_factor: float, kind: str) -> None:
    orders = next(s.sql for s in queries.create_tables(scale_factor) if s.name == "orders")
    assert f"o_orderkey {kind} not null" in orders
    assert f"o_custkey {kind} not null" in orders
    assert "o_shippriority integer not null" in orders


def test_every_column_is_made_once_with_a_type_of_the_specification() -> None:
    kinds = re.compile(r"(integer|date|numeric\(15,2\)|(char|varchar)\(\d+\)) not null")
    for statement in queries.create_tables(1):
        inside = statement.sql.partition("(")[2].removesuffix(")")
        columns = re.split(r", (?=[a-z])", inside)
        assert len(TABLES[statement.name].columns) == len(columns)
        assert all(kinds.fullmatch(column.partition(" ")[2]) for column in columns)


def test_data_of_another_shape_is_refused_while_it_is_loaded() -> None:
    statements = queries.load_statements()
    assert list(TABLES) == [statement.name for statement in statements]
    assert all("format csv, header match, freeze" in statement.sql for statement in statements)


@pytest.mark.parametrize(
    ("table", "scale_factor", "rows"),
    [
        ("region", 10, 5),
        ("nation", 0.01, 25),
        ("supplier", 0.01, 100),
        ("orders", 0.1, 150_000),
        ("customer", 0.29, 43_500),
        ("lineitem", 1, 6_001_215),
        ("lineitem", 10, 59_986_052),
        ("lineitem", 0.1, None),
        ("lineitem", 2, None),
    ],
)
def test_row_counts(table: str, scale_factor: float, rows: int | None) -> None:
    assert rows == queries.row_count(TABLES[table], scale_factor)


@pytest.mark.parametrize("scale_factor", [0, -1, float("nan"), float("inf")])
def test_a_scale_factor_that_is_no_size_is_refused(scale_factor: float) -> None:
    with pytest.raises(ValueError, match="is not a positive number"):
        queries.row_count(LINEITEM, scale_factor)
    with pytest.raises(ValueError, match="is not a positive number"):
        queries.create_tables(scale_factor)
