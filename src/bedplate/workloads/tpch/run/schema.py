"""The eight tables, their keys and indexes, as statements for PostgreSQL (clauses 1.3, 1.4, 1.5.7).

Loading, primary keys, foreign keys and indexes are phases of their own, so the tables are made bare.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

# Statistics are gathered once, from many rows: with the default of 100 a repeated ANALYZE changes plans.
STATISTICS_TARGET = 1000

# Above it O_ORDERKEY leaves the range of four bytes (clause 1.3.1).
_INTEGER_IDENTIFIERS_UP_TO = Decimal(300)
_IDENTIFIER = "identifier"
_DECIMAL = "numeric(15,2)"


class ForeignKey(NamedTuple):
    """Columns that refer to a table's primary key."""

    columns: tuple[str, ...]
    table: str


@dataclass(frozen=True)
class SchemaTable:
    """One table. `rows` is its number of rows at scale factor 1, `scaled` whether it grows.

    `dates` are indexed beside the foreign keys: they are the only other columns that may be (clause 1.5.7).
    """

    name: str
    columns: Mapping[str, str]
    primary_key: tuple[str, ...]
    rows: int
    scaled: bool = True
    foreign_keys: tuple[ForeignKey, ...] = ()

    @property
    def dates(self) -> tuple[str, ...]:
        """The columns that hold a date."""
        return tuple(name for name, kind in self.columns.items() if kind == "date")


@dataclass(frozen=True)
class Statement:
    """One statement of a phase; `name` is that of the table, constraint or index it makes."""

    name: str
    sql: str


REGION = SchemaTable(
    "region",
    {"r_regionkey": _IDENTIFIER, "r_name": "char(25)", "r_comment": "varchar(152)"},
    ("r_regionkey",),
    rows=5,
    scaled=False,
)
NATION = SchemaTable(
    "nation",
    {
        "n_nationkey": _IDENTIFIER,
        "n_name": "char(25)",
        "n_regionkey": _IDENTIFIER,
        "n_comment": "varchar(152)",
    },
    ("n_nationkey",),
    rows=25,
    scaled=False,
    foreign_keys=(ForeignKey(("n_regionkey",), "region"),),
)
PART = SchemaTable(
    "part",
    {
        "p_partkey": _IDENTIFIER,
        "p_name": "varchar(55)",
        "p_mfgr": "char(25)",
        "p_brand": "char(10)",
        "p_type": "varchar(25)",
        "p_size": "integer",
        "p_container": "char(10)",
        "p_retailprice": _DECIMAL,
        "p_comment": "varchar(23)",
    },
    ("p_partkey",),
    rows=200_000,
)
SUPPLIER = SchemaTable(
    "supplier",
    {
        "s_suppkey": _IDENTIFIER,
        "s_name": "char(25)",
        "s_address": "varchar(40)",
        "s_nationkey": _IDENTIFIER,
        "s_phone": "char(15)",
        "s_acctbal": _DECIMAL,
        "s_comment": "varchar(101)",
    },
    ("s_suppkey",),
    rows=10_000,
    foreign_keys=(ForeignKey(("s_nationkey",), "nation"),),
)
PARTSUPP = SchemaTable(
    "partsupp",
    {
        "ps_partkey": _IDENTIFIER,
        "ps_suppkey": _IDENTIFIER,
        "ps_availqty": "integer",
        "ps_supplycost": _DECIMAL,
        "ps_comment": "varchar(199)",
    },
    ("ps_partkey", "ps_suppkey"),
    rows=800_000,
    foreign_keys=(ForeignKey(("ps_partkey",), "part"), ForeignKey(("ps_suppkey",), "supplier")),
)
CUSTOMER = SchemaTable(
    "customer",
    {
        "c_custkey": _IDENTIFIER,
        "c_name": "varchar(25)",
        "c_address": "varchar(40)",
        "c_nationkey": _IDENTIFIER,
        "c_phone": "char(15)",
        "c_acctbal": _DECIMAL,
        "c_mktsegment": "char(10)",
        "c_comment": "varchar(117)",
    },
    ("c_custkey",),
    rows=150_000,
    foreign_keys=(ForeignKey(("c_nationkey",), "nation"),),
)
ORDERS = SchemaTable(
    "orders",
    {
        "o_orderkey": _IDENTIFIER,
        "o_custkey": _IDENTIFIER,
        "o_orderstatus": "char(1)",
        "o_totalprice": _DECIMAL,
        "o_orderdate": "date",
        "o_orderpriority": "char(15)",
        "o_clerk": "char(15)",
        "o_shippriority": "integer",
        "o_comment": "varchar(79)",
    },
    ("o_orderkey",),
    rows=1_500_000,
    foreign_keys=(ForeignKey(("o_custkey",), "customer"),),
)
LINEITEM = SchemaTable(
    "lineitem",
    {
        "l_orderkey": _IDENTIFIER,
        "l_partkey": _IDENTIFIER,
        "l_suppkey": _IDENTIFIER,
        "l_linenumber": "integer",
        "l_quantity": _DECIMAL,
        "l_extendedprice": _DECIMAL,
        "l_discount": _DECIMAL,
        "l_tax": _DECIMAL,
        "l_returnflag": "char(1)",
        "l_linestatus": "char(1)",
        "l_shipdate": "date",
        "l_commitdate": "date",
        "l_receiptdate": "date",
        "l_shipinstruct": "char(25)",
        "l_shipmode": "char(10)",
        "l_comment": "varchar(44)",
    },
    ("l_orderkey", "l_linenumber"),
    rows=6_001_215,
    foreign_keys=(
        ForeignKey(("l_orderkey",), "orders"),
        ForeignKey(("l_partkey",), "part"),
        ForeignKey(("l_suppkey",), "supplier"),
        ForeignKey(("l_partkey", "l_suppkey"), "partsupp"),
    ),
)

# A table comes after those that it refers to.
TABLES: Mapping[str, SchemaTable] = {
    table.name: table for table in (REGION, NATION, PART, SUPPLIER, PARTSUPP, CUSTOMER, ORDERS, LINEITEM)
}

# Order lines are drawn from 1 to 7 for each order, so their number is no multiple (clause 4.2.5.2).
_LINEITEM_ROWS: Mapping[Decimal, int] = {
    Decimal(1): 6_001_215,
    Decimal(10): 59_986_052,
    Decimal(30): 179_998_372,
    Decimal(100): 600_037_902,
    Decimal(300): 1_799_989_091,
    Decimal(1000): 5_999_989_709,
}


def row_count(table: SchemaTable, scale_factor: float) -> int | None:
    """The rows that a loaded table has; None for order lines at a scale factor that the clause does not list."""
    if not table.scaled:
        return table.rows
    scale = exact_scale_factor(scale_factor)
    return _LINEITEM_ROWS.get(scale) if table is LINEITEM else int(scale * table.rows)


def exact_scale_factor(scale_factor: float) -> Decimal:
    """The scale factor as it was written, 0.1 and not its nearest binary fraction; ValueError unless positive."""
    scale = Decimal(str(scale_factor))
    if not (scale.is_finite() and scale > 0):
        raise ValueError(f"scale factor {scale_factor} is not a positive number; take 0.1, 1, 10 or the like")
    return scale


def create_tables(scale_factor: float) -> tuple[Statement, ...]:
    """One `create table` each, without keys; every column is `not null` (clause 1.4.2.1 allows it)."""
    small = exact_scale_factor(scale_factor) <= _INTEGER_IDENTIFIERS_UP_TO
    identifier = "integer" if small else "bigint"
    return tuple(
        Statement(
            table.name,
            f"create table {table.name} ("
            + ", ".join(
                f"{name} {identifier if kind == _IDENTIFIER else kind} not null"
                for name, kind in table.columns.items()
            )
            + ")",
        )
        for table in TABLES.values()
    )


def load_statements() -> tuple[Statement, ...]:
    """One COPY each, from CSV on standard input whose header must be the table's columns in order.

    FREEZE asks that the table was made or truncated in the same transaction. Lines of `dbgen` itself, with
    a `|` at the end, are not CSV: PostgreSQL refuses them.
    """
    return tuple(
        Statement(table.name, f"copy {table.name} from stdin with (format csv, header match, freeze)")
        for table in TABLES.values()
    )


def primary_keys() -> tuple[Statement, ...]:
    """One primary key per table (clause 1.4.2.2)."""
    return tuple(
        Statement(
            f"{table.name}_pkey",
            f"alter table {table.name} add constraint {table.name}_pkey"
            f" primary key ({', '.join(table.primary_key)})",
        )
        for table in TABLES.values()
    )


def foreign_keys() -> tuple[Statement, ...]:
    """All ten of clause 1.4.2.3: whoever defines one must define them all. They need the primary keys."""
    statements = []
    for table in TABLES.values():
        for key in table.foreign_keys:
            name = "_".join((table.name, *key.columns, "fkey"))
            statements.append(
                Statement(
                    name,
                    f"alter table {table.name} add constraint {name} foreign key ({', '.join(key.columns)})"
                    f" references {key.table} ({', '.join(TABLES[key.table].primary_key)})",
                )
            )
    return tuple(statements)


def indexes() -> tuple[Statement, ...]:
    """An index on every foreign key that no primary key begins with, and on every date.

    Nothing else may have one: clause 1.5.7 allows columns of keys and dates only.
    """
    statements = []
    for table in TABLES.values():
        wanted = [key.columns for key in table.foreign_keys] + [(date,) for date in table.dates]
        for columns in wanted:
            if columns == table.primary_key[: len(columns)]:
                continue
            name = "_".join((table.name, *columns, "idx"))
            statements.append(Statement(name, f"create index {name} on {table.name} ({', '.join(columns)})"))
    return tuple(statements)
