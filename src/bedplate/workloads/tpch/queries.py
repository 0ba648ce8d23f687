"""Executable query text: a template with its parameters in place, and the order of queries in a stream."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from enum import Enum
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bedplate.errors import OutputNotUnderstood
from bedplate.model.reason import Reason, because
from bedplate.workloads.tpch.model import DRAWN, QUERIES, stream_phase

if TYPE_CHECKING:
    from bedplate.workloads.tpch.visit import QueryAnswer, QueryCall, TpchRecording

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


def row_count(schema_table: SchemaTable, scale_factor: float) -> int | None:
    """The rows that a loaded table has; None for order lines at a scale factor that the clause does not list."""
    if not schema_table.scaled:
        return schema_table.rows
    scale = exact_scale_factor(scale_factor)
    return _LINEITEM_ROWS.get(scale) if schema_table is LINEITEM else int(scale * schema_table.rows)


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


TEMPLATES: Mapping[int, str] = {
    1: """
select l_returnflag, l_linestatus,
       sum(l_quantity) as sum_qty,
       sum(l_extendedprice) as sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
       avg(l_quantity) as avg_qty,
       avg(l_extendedprice) as avg_price,
       avg(l_discount) as avg_disc,
       count(*) as count_order
from lineitem
where l_shipdate <= date '1998-12-01' - interval '[DELTA]' day
group by l_returnflag, l_linestatus
order by l_returnflag, l_linestatus
""",
    2: """
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from part, supplier, partsupp, nation, region
where p_partkey = ps_partkey
  and s_suppkey = ps_suppkey
  and p_size = [SIZE]
  and p_type like '%[TYPE]'
  and s_nationkey = n_nationkey
  and n_regionkey = r_regionkey
  and r_name = '[REGION]'
  and ps_supplycost = (
      select min(ps_supplycost)
      from partsupp, supplier, nation, region
      where p_partkey = ps_partkey
        and s_suppkey = ps_suppkey
        and s_nationkey = n_nationkey
        and n_regionkey = r_regionkey
        and r_name = '[REGION]'
  )
order by s_acctbal desc, n_name, s_name, p_partkey
limit 100
""",
    3: """
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer, orders, lineitem
where c_mktsegment = '[SEGMENT]'
  and c_custkey = o_custkey
  and l_orderkey = o_orderkey
  and o_orderdate < date '[DATE]'
  and l_shipdate > date '[DATE]'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate
limit 10
""",
    4: """
select o_orderpriority, count(*) as order_count
from orders
where o_orderdate >= date '[DATE]'
  and o_orderdate < date '[DATE]' + interval '3' month
  and exists (
      select *
      from lineitem
      where l_orderkey = o_orderkey
        and l_commitdate < l_receiptdate
  )
group by o_orderpriority
order by o_orderpriority
""",
    5: """
select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem, supplier, nation, region
where c_custkey = o_custkey
  and l_orderkey = o_orderkey
  and l_suppkey = s_suppkey
  and c_nationkey = s_nationkey
  and s_nationkey = n_nationkey
  and n_regionkey = r_regionkey
  and r_name = '[REGION]'
  and o_orderdate >= date '[DATE]'
  and o_orderdate < date '[DATE]' + interval '1' year
group by n_name
order by revenue desc
""",
    6: """
select sum(l_extendedprice * l_discount) as revenue
from lineitem
where l_shipdate >= date '[DATE]'
  and l_shipdate < date '[DATE]' + interval '1' year
  and l_discount between [DISCOUNT] - 0.01 and [DISCOUNT] + 0.01
  and l_quantity < [QUANTITY]
""",
    7: """
select supp_nation, cust_nation, l_year, sum(volume) as revenue
from (
    select n1.n_name as supp_nation, n2.n_name as cust_nation,
           extract(year from l_shipdate) as l_year,
           l_extendedprice * (1 - l_discount) as volume
    from supplier, lineitem, orders, customer, nation n1, nation n2
    where s_suppkey = l_suppkey
      and o_orderkey = l_orderkey
      and c_custkey = o_custkey
      and s_nationkey = n1.n_nationkey
      and c_nationkey = n2.n_nationkey
      and (
          (n1.n_name = '[NATION1]' and n2.n_name = '[NATION2]')
          or (n1.n_name = '[NATION2]' and n2.n_name = '[NATION1]')
      )
      and l_shipdate between date '1995-01-01' and date '1996-12-31'
) as shipping
group by supp_nation, cust_nation, l_year
order by supp_nation, cust_nation, l_year
""",
    8: """
select o_year, sum(case when nation = '[NATION]' then volume else 0 end) / sum(volume) as mkt_share
from (
    select extract(year from o_orderdate) as o_year,
           l_extendedprice * (1 - l_discount) as volume,
           n2.n_name as nation
    from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    where p_partkey = l_partkey
      and s_suppkey = l_suppkey
      and l_orderkey = o_orderkey
      and o_custkey = c_custkey
      and c_nationkey = n1.n_nationkey
      and n1.n_regionkey = r_regionkey
      and r_name = '[REGION]'
      and s_nationkey = n2.n_nationkey
      and o_orderdate between date '1995-01-01' and date '1996-12-31'
      and p_type = '[TYPE]'
) as all_nations
group by o_year
order by o_year
""",
    9: """
select nation, o_year, sum(amount) as sum_profit
from (
    select n_name as nation,
           extract(year from o_orderdate) as o_year,
           l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
    from part, supplier, lineitem, partsupp, orders, nation
    where s_suppkey = l_suppkey
      and ps_suppkey = l_suppkey
      and ps_partkey = l_partkey
      and p_partkey = l_partkey
      and o_orderkey = l_orderkey
      and s_nationkey = n_nationkey
      and p_name like '%[COLOR]%'
) as profit
group by nation, o_year
order by nation, o_year desc
""",
    10: """
select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue,
       c_acctbal, n_name, c_address, c_phone, c_comment
from customer, orders, lineitem, nation
where c_custkey = o_custkey
  and l_orderkey = o_orderkey
  and o_orderdate >= date '[DATE]'
  and o_orderdate < date '[DATE]' + interval '3' month
  and l_returnflag = 'R'
  and c_nationkey = n_nationkey
group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
order by revenue desc
limit 20
""",
    11: """
select ps_partkey, sum(ps_supplycost * ps_availqty) as value
from partsupp, supplier, nation
where ps_suppkey = s_suppkey
  and s_nationkey = n_nationkey
  and n_name = '[NATION]'
group by ps_partkey
having sum(ps_supplycost * ps_availqty) > (
    select sum(ps_supplycost * ps_availqty) * [FRACTION]
    from partsupp, supplier, nation
    where ps_suppkey = s_suppkey
      and s_nationkey = n_nationkey
      and n_name = '[NATION]'
)
order by value desc
""",
    12: """
select l_shipmode,
       sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end)
           as high_line_count,
       sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end)
           as low_line_count
from orders, lineitem
where o_orderkey = l_orderkey
  and l_shipmode in ('[SHIPMODE1]', '[SHIPMODE2]')
  and l_commitdate < l_receiptdate
  and l_shipdate < l_commitdate
  and l_receiptdate >= date '[DATE]'
  and l_receiptdate < date '[DATE]' + interval '1' year
group by l_shipmode
order by l_shipmode
""",
    13: """
select c_count, count(*) as custdist
from (
    select c_custkey, count(o_orderkey)
    from customer left outer join orders on
        c_custkey = o_custkey
        and o_comment not like '%[WORD1]%[WORD2]%'
    group by c_custkey
) as c_orders (c_custkey, c_count)
group by c_count
order by custdist desc, c_count desc
""",
    14: """
select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
       / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
from lineitem, part
where l_partkey = p_partkey
  and l_shipdate >= date '[DATE]'
  and l_shipdate < date '[DATE]' + interval '1' month
""",
    15: """
with revenue (supplier_no, total_revenue) as (
    select l_suppkey, sum(l_extendedprice * (1 - l_discount))
    from lineitem
    where l_shipdate >= date '[DATE]'
      and l_shipdate < date '[DATE]' + interval '3' month
    group by l_suppkey
)
select s_suppkey, s_name, s_address, s_phone, total_revenue
from supplier, revenue
where s_suppkey = supplier_no
  and total_revenue = (
      select max(total_revenue)
      from revenue
  )
order by s_suppkey
""",
    16: """
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
from partsupp, part
where p_partkey = ps_partkey
  and p_brand <> '[BRAND]'
  and p_type not like '[TYPE]%'
  and p_size in ([SIZE1], [SIZE2], [SIZE3], [SIZE4], [SIZE5], [SIZE6], [SIZE7], [SIZE8])
  and ps_suppkey not in (
      select s_suppkey
      from supplier
      where s_comment like '%Customer%Complaints%'
  )
group by p_brand, p_type, p_size
order by supplier_cnt desc, p_brand, p_type, p_size
""",
    17: """
select sum(l_extendedprice) / 7.0 as avg_yearly
from lineitem, part
where p_partkey = l_partkey
  and p_brand = '[BRAND]'
  and p_container = '[CONTAINER]'
  and l_quantity < (
      select 0.2 * avg(l_quantity)
      from lineitem
      where l_partkey = p_partkey
  )
""",
    18: """
select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
from customer, orders, lineitem
where o_orderkey in (
      select l_orderkey
      from lineitem
      group by l_orderkey
      having sum(l_quantity) > [QUANTITY]
  )
  and c_custkey = o_custkey
  and o_orderkey = l_orderkey
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
order by o_totalprice desc, o_orderdate
limit 100
""",
    19: """
select sum(l_extendedprice * (1 - l_discount)) as revenue
from lineitem, part
where (
    p_partkey = l_partkey
    and p_brand = '[BRAND1]'
    and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
    and l_quantity >= [QUANTITY1] and l_quantity <= [QUANTITY1] + 10
    and p_size between 1 and 5
    and l_shipmode in ('AIR', 'AIR REG')
    and l_shipinstruct = 'DELIVER IN PERSON'
) or (
    p_partkey = l_partkey
    and p_brand = '[BRAND2]'
    and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
    and l_quantity >= [QUANTITY2] and l_quantity <= [QUANTITY2] + 10
    and p_size between 1 and 10
    and l_shipmode in ('AIR', 'AIR REG')
    and l_shipinstruct = 'DELIVER IN PERSON'
) or (
    p_partkey = l_partkey
    and p_brand = '[BRAND3]'
    and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
    and l_quantity >= [QUANTITY3] and l_quantity <= [QUANTITY3] + 10
    and p_size between 1 and 15
    and l_shipmode in ('AIR', 'AIR REG')
    and l_shipinstruct = 'DELIVER IN PERSON'
)
""",
    20: """
select s_name, s_address
from supplier, nation
where s_suppkey in (
      select ps_suppkey
      from partsupp
      where ps_partkey in (
            select p_partkey
            from part
            where p_name like '[COLOR]%'
        )
        and ps_availqty > (
            select 0.5 * sum(l_quantity)
            from lineitem
            where l_partkey = ps_partkey
              and l_suppkey = ps_suppkey
              and l_shipdate >= date '[DATE]'
              and l_shipdate < date '[DATE]' + interval '1' year
        )
  )
  and s_nationkey = n_nationkey
  and n_name = '[NATION]'
order by s_name
""",
    21: """
select s_name, count(*) as numwait
from supplier, lineitem l1, orders, nation
where s_suppkey = l1.l_suppkey
  and o_orderkey = l1.l_orderkey
  and o_orderstatus = 'F'
  and l1.l_receiptdate > l1.l_commitdate
  and exists (
      select *
      from lineitem l2
      where l2.l_orderkey = l1.l_orderkey
        and l2.l_suppkey <> l1.l_suppkey
  )
  and not exists (
      select *
      from lineitem l3
      where l3.l_orderkey = l1.l_orderkey
        and l3.l_suppkey <> l1.l_suppkey
        and l3.l_receiptdate > l3.l_commitdate
  )
  and s_nationkey = n_nationkey
  and n_name = '[NATION]'
group by s_name
order by numwait desc, s_name
limit 100
""",
    22: """
select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
from (
    select substring(c_phone from 1 for 2) as cntrycode, c_acctbal
    from customer
    where substring(c_phone from 1 for 2) in ('[I1]', '[I2]', '[I3]', '[I4]', '[I5]', '[I6]', '[I7]')
      and c_acctbal > (
          select avg(c_acctbal)
          from customer
          where c_acctbal > 0.00
            and substring(c_phone from 1 for 2)
                in ('[I1]', '[I2]', '[I3]', '[I4]', '[I5]', '[I6]', '[I7]')
      )
      and not exists (
          select *
          from orders
          where o_custkey = c_custkey
      )
) as custsale
group by cntrycode
order by cntrycode
""",
}

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")


class Nation(NamedTuple):
    """A nation's name (N_NAME) and the name of the region that its N_REGIONKEY refers to."""

    name: str
    region: str


def _nations(region_by_nation: str) -> tuple[Nation, ...]:
    pairs = (line.split(": ") for line in region_by_nation.strip().splitlines())
    return tuple(Nation(name, REGIONS[int(region)]) for name, region in pairs)


# In the order of N_NATIONKEY, which phone numbers are made of (clause 4.2.2.9).
NATIONS = _nations("""
ALGERIA: 0
ARGENTINA: 1
BRAZIL: 1
CANADA: 1
EGYPT: 4
ETHIOPIA: 0
FRANCE: 3
GERMANY: 3
INDIA: 2
INDONESIA: 2
IRAN: 4
IRAQ: 4
JAPAN: 2
JORDAN: 4
KENYA: 0
MOROCCO: 0
MOZAMBIQUE: 0
PERU: 1
CHINA: 2
ROMANIA: 3
SAUDI ARABIA: 4
VIETNAM: 2
RUSSIA: 3
UNITED KINGDOM: 3
UNITED STATES: 1
""")

# The first two characters of C_PHONE: N_NATIONKEY + 10 (clause 4.2.2.9).
COUNTRY_CODES = tuple(str(key + 10) for key in range(len(NATIONS)))

TYPE_SYLLABLES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)

CONTAINER_SYLLABLES = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)

SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
SHIP_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")

# Clause 2.4.13.3; the only lists that no data is generated from as such.
COMMENT_WORDS_1 = ("special", "pending", "unusual", "express")

COMMENT_WORDS_2 = ("packages", "requests", "accounts", "deposits")

_COLOR_WORDS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished
chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick
floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender
lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive
orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy
seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow
"""

# The words of P_NAME.
COLORS = tuple(_COLOR_WORDS.split())

_Value = TypeVar("_Value")

_WORD_BYTES = 8
_WORDS = 1 << (8 * _WORD_BYTES)

_VALIDATION: Mapping[int, Mapping[str, str]] = {
    1: {"DELTA": "90"},
    2: {"SIZE": "15", "TYPE": "BRASS", "REGION": "EUROPE"},
    3: {"SEGMENT": "BUILDING", "DATE": "1995-03-15"},
    4: {"DATE": "1993-07-01"},
    5: {"REGION": "ASIA", "DATE": "1994-01-01"},
    6: {"DATE": "1994-01-01", "DISCOUNT": "0.06", "QUANTITY": "24"},
    7: {"NATION1": "FRANCE", "NATION2": "GERMANY"},
    8: {"NATION": "BRAZIL", "REGION": "AMERICA", "TYPE": "ECONOMY ANODIZED STEEL"},
    9: {"COLOR": "green"},
    10: {"DATE": "1993-10-01"},
    11: {"NATION": "GERMANY"},
    12: {"SHIPMODE1": "MAIL", "SHIPMODE2": "SHIP", "DATE": "1994-01-01"},
    13: {"WORD1": "special", "WORD2": "requests"},
    14: {"DATE": "1995-09-01"},
    15: {"DATE": "1996-01-01"},
    16: {
        "BRAND": "Brand#45",
        "TYPE": "MEDIUM POLISHED",
        "SIZE1": "49",
        "SIZE2": "14",
        "SIZE3": "23",
        "SIZE4": "45",
        "SIZE5": "19",
        "SIZE6": "3",
        "SIZE7": "36",
        "SIZE8": "9",
    },
    17: {"BRAND": "Brand#23", "CONTAINER": "MED BOX"},
    18: {"QUANTITY": "300"},
    19: {
        "QUANTITY1": "1",
        "QUANTITY2": "10",
        "QUANTITY3": "20",
        "BRAND1": "Brand#12",
        "BRAND2": "Brand#23",
        "BRAND3": "Brand#34",
    },
    20: {"COLOR": "forest", "DATE": "1994-01-01", "NATION": "CANADA"},
    21: {"NATION": "SAUDI ARABIA"},
    22: {"I1": "13", "I2": "31", "I3": "23", "I4": "29", "I5": "30", "I6": "18", "I7": "17"},
}


class Draws:
    """Uniform draws from SHA-256 over a key and a counter."""

    def __init__(self, *key: int) -> None:
        self._key = "/".join(("tpch", *map(str, key)))
        self._count = 0

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        # Words beyond the last whole multiple would make small numbers likelier.
        end = _WORDS - _WORDS % bound
        while (word := self._word()) >= end:
            pass
        return word % bound

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def one_of(self, choices: Sequence[_Value]) -> _Value:
        """One of the values."""
        return choices[self.below(len(choices))]

    def some_of(self, choices: Sequence[_Value], count: int) -> list[_Value]:
        """`count` of the values, each at most once, in an order that is drawn too."""
        left = list(choices)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def _word(self) -> int:
        digest = hashlib.sha256(f"{self._key}/{self._count}".encode()).digest()
        self._count += 1
        return int.from_bytes(digest[:_WORD_BYTES], "big")


def validation_parameters(query: int, scale_factor: float) -> Mapping[str, str]:
    """The clause's values; `scale_factor` decides query 11's fraction, as it does in qgen's defaults.

    The answers of the specification belong to scale factor 1.
    """
    parameters = dict(_VALIDATION[query])
    return parameters | _fraction(query, scale_factor)


def drawn_parameters(query: int, scale_factor: float, *, seed: int, stream: int) -> Mapping[str, str]:
    """Values drawn for one query of one stream; stream 0 is the power test's."""
    return _RULES[query](Draws(seed, stream, query)) | _fraction(query, scale_factor)


def _fraction(query: int, scale_factor: float) -> dict[str, str]:
    if query != 11:
        return {}
    # An exact decimal: 0.1 as a binary fraction would give 0.000999….
    fraction: Decimal = 1 / (10_000 * exact_scale_factor(scale_factor))
    return {"FRACTION": format(fraction, "f")}


def _first_of_month(draws: Draws, year: int, month: int, months: int) -> str:
    """The first day of one of `months` months, the first of which is given."""
    count = month - 1 + draws.below(months)
    return f"{year + count // 12}-{count % 12 + 1:02d}-01"


def _first_of_year(draws: Draws) -> str:
    return f"{draws.between(1993, 1997)}-01-01"


def _nation(draws: Draws) -> str:
    return draws.one_of(NATIONS).name


def _brand(draws: Draws) -> str:
    return f"Brand#{draws.between(1, 5)}{draws.between(1, 5)}"


def _syllables(draws: Draws, lists: Sequence[Sequence[str]]) -> str:
    return " ".join(draws.one_of(syllables) for syllables in lists)


def _minimum_cost_supplier(draws: Draws) -> dict[str, str]:
    return {
        "SIZE": str(draws.between(1, 50)),
        "TYPE": draws.one_of(TYPE_SYLLABLES[2]),
        "REGION": draws.one_of(REGIONS),
    }


def _shipping_priority(draws: Draws) -> dict[str, str]:
    return {"SEGMENT": draws.one_of(SEGMENTS), "DATE": f"1995-03-{draws.between(1, 31):02d}"}


def _forecasting_revenue_change(draws: Draws) -> dict[str, str]:
    return {
        "DATE": _first_of_year(draws),
        "DISCOUNT": f"0.0{draws.between(2, 9)}",
        "QUANTITY": str(draws.between(24, 25)),
    }


def _volume_shipping(draws: Draws) -> dict[str, str]:
    first, second = draws.some_of(NATIONS, 2)
    return {"NATION1": first.name, "NATION2": second.name}


def _national_market_share(draws: Draws) -> dict[str, str]:
    nation = draws.one_of(NATIONS)
    return {
        "NATION": nation.name,
        "REGION": nation.region,
        "TYPE": _syllables(draws, TYPE_SYLLABLES),
    }


def _shipping_modes(draws: Draws) -> dict[str, str]:
    first, second = draws.some_of(SHIP_MODES, 2)
    return {"SHIPMODE1": first, "SHIPMODE2": second, "DATE": _first_of_year(draws)}


def _customer_distribution(draws: Draws) -> dict[str, str]:
    return {
        "WORD1": draws.one_of(COMMENT_WORDS_1),
        "WORD2": draws.one_of(COMMENT_WORDS_2),
    }


def _parts_supplier_relationship(draws: Draws) -> dict[str, str]:
    brand_and_type = {"BRAND": _brand(draws), "TYPE": _syllables(draws, TYPE_SYLLABLES[:2])}
    sizes = draws.some_of(range(1, 51), 8)
    return brand_and_type | {f"SIZE{place}": str(size) for place, size in enumerate(sizes, 1)}


def _discounted_revenue(draws: Draws) -> dict[str, str]:
    return {
        "QUANTITY1": str(draws.between(1, 10)),
        "QUANTITY2": str(draws.between(10, 20)),
        "QUANTITY3": str(draws.between(20, 30)),
        "BRAND1": _brand(draws),
        "BRAND2": _brand(draws),
        "BRAND3": _brand(draws),
    }


def _potential_part_promotion(draws: Draws) -> dict[str, str]:
    return {"COLOR": draws.one_of(COLORS), "DATE": _first_of_year(draws), "NATION": _nation(draws)}


def _global_sales_opportunity(draws: Draws) -> dict[str, str]:
    return {f"I{place}": code for place, code in enumerate(draws.some_of(COUNTRY_CODES, 7), 1)}


_RULES: Mapping[int, Callable[[Draws], dict[str, str]]] = {
    1: lambda draws: {"DELTA": str(draws.between(60, 120))},
    2: _minimum_cost_supplier,
    3: _shipping_priority,
    4: lambda draws: {"DATE": _first_of_month(draws, 1993, 1, 58)},
    5: lambda draws: {"REGION": draws.one_of(REGIONS), "DATE": _first_of_year(draws)},
    6: _forecasting_revenue_change,
    7: _volume_shipping,
    8: _national_market_share,
    9: lambda draws: {"COLOR": draws.one_of(COLORS)},
    10: lambda draws: {"DATE": _first_of_month(draws, 1993, 2, 24)},
    11: lambda draws: {"NATION": _nation(draws)},
    12: _shipping_modes,
    13: _customer_distribution,
    14: lambda draws: {"DATE": _first_of_month(draws, 1993, 1, 60)},
    15: lambda draws: {"DATE": _first_of_month(draws, 1993, 1, 58)},
    16: _parts_supplier_relationship,
    17: lambda draws: {"BRAND": _brand(draws), "CONTAINER": _syllables(draws, CONTAINER_SYLLABLES)},
    18: lambda draws: {"QUANTITY": str(draws.between(312, 315))},
    19: _discounted_revenue,
    20: _potential_part_promotion,
    21: lambda draws: {"NATION": _nation(draws)},
    22: _global_sales_opportunity,
}

_PARAMETER = re.compile(r"\[([A-Z]+[0-9]?)\]")

# Appendix A: the ordered set of every stream. The power test is stream 0 (clause 5.3.5).
_ORDERED_SETS = tuple(
    tuple(int(query) for query in line.split())
    for line in """
14 2 9 20 6 17 18 8 21 13 3 22 16 4 11 15 1 10 19 5 7 12
21 3 18 5 11 7 6 20 17 12 16 15 13 10 2 8 14 19 9 22 1 4
6 17 14 16 19 10 9 2 15 8 5 22 12 7 13 18 1 4 20 3 11 21
8 5 4 6 17 7 1 18 22 14 9 10 15 11 20 2 21 19 13 16 12 3
5 21 14 19 15 17 12 6 4 9 8 16 11 2 10 18 1 13 7 22 3 20
21 15 4 6 7 16 19 18 14 22 11 13 3 1 2 5 8 20 12 17 10 9
10 3 15 13 6 8 9 7 4 11 22 18 12 1 5 16 2 14 19 20 17 21
18 8 20 21 2 4 22 17 1 11 9 19 3 13 5 7 10 16 6 14 15 12
19 1 15 17 5 8 9 12 14 7 4 3 20 16 6 22 10 13 2 21 18 11
8 13 2 20 17 3 6 21 18 11 19 10 15 4 22 1 7 12 9 14 5 16
6 15 18 17 12 1 7 2 22 13 21 10 14 9 3 16 20 19 11 4 8 5
15 14 18 17 10 20 16 11 1 8 4 22 5 12 3 9 21 2 13 6 19 7
1 7 16 17 18 22 12 6 8 9 11 4 2 5 20 21 13 10 19 3 14 15
21 17 7 3 1 10 12 22 9 16 6 11 2 4 5 14 8 20 13 18 15 19
2 9 5 4 18 1 20 15 16 17 7 21 13 14 19 8 22 11 10 3 12 6
16 9 17 8 14 11 10 12 6 21 7 3 15 5 22 20 1 13 19 2 4 18
1 3 6 5 2 16 14 22 17 20 4 9 10 11 15 8 12 19 18 13 7 21
3 16 5 11 21 9 2 15 10 18 17 7 8 19 14 13 1 4 22 20 6 12
14 4 13 5 21 11 8 6 3 17 2 20 1 19 10 9 12 18 15 7 22 16
4 12 22 14 5 15 16 2 8 10 17 9 21 7 3 6 13 18 11 20 19 1
16 15 14 13 4 22 18 19 7 1 12 17 5 10 20 3 9 21 11 2 6 8
20 14 21 12 15 17 4 19 13 10 11 1 16 5 18 7 8 22 9 6 3 2
16 14 13 2 21 10 11 4 1 22 18 12 19 5 7 8 6 3 15 20 9 17
18 15 9 14 12 2 8 11 22 21 16 1 6 17 5 10 19 4 20 13 3 7
7 3 10 14 13 21 18 6 20 4 9 8 22 15 2 1 5 12 19 17 11 16
18 1 13 7 16 10 14 2 19 5 21 11 22 15 8 17 20 3 4 12 6 9
13 2 22 5 11 21 20 14 7 10 4 9 19 18 6 3 1 8 15 12 17 16
14 17 21 8 2 9 6 4 5 13 22 7 15 3 1 18 16 11 10 12 20 19
10 22 1 12 13 18 21 20 2 14 16 7 15 3 4 17 5 19 6 8 9 11
10 8 9 18 12 6 1 5 20 11 17 22 16 3 13 2 15 21 14 19 7 4
7 17 22 5 3 10 13 18 9 1 14 15 21 19 16 12 8 6 11 20 4 2
2 9 21 3 4 7 1 11 16 5 20 19 18 8 17 13 10 12 15 6 14 22
15 12 8 4 22 13 16 17 18 3 7 5 6 1 9 11 21 10 14 20 19 2
15 16 2 11 17 7 5 14 20 4 21 3 10 9 12 8 13 6 18 19 22 1
1 13 11 3 4 21 6 14 15 22 18 9 7 5 10 20 12 16 17 8 19 2
14 17 22 20 8 16 5 10 1 13 2 21 12 9 4 18 3 7 6 19 15 11
9 17 7 4 5 13 21 18 11 3 22 1 6 16 20 14 15 10 8 2 12 19
13 14 5 22 19 11 9 6 18 15 8 10 7 4 17 16 3 1 12 2 21 20
20 5 4 14 11 1 6 16 8 22 7 3 2 12 21 19 17 13 10 15 18 9
3 7 14 15 6 5 21 20 18 10 4 16 19 1 13 9 8 17 11 12 22 2
13 15 17 1 22 11 3 4 7 20 14 21 9 8 2 18 16 6 10 12 5 19
""".strip().splitlines()
)


def query_order(stream: int) -> tuple[int, ...]:
    """The 22 queries in the order of a stream; after stream 40 the sets come round again (clause 5.3.5.4).

    ValueError for a negative stream.
    """
    if stream < 0:
        raise ValueError(f"stream {stream} is negative; the power test is 0, throughput streams count from 1")
    return _ORDERED_SETS[stream % len(_ORDERED_SETS)]


def validation_query(query: int, scale_factor: float) -> str:
    """The text of a query with the specification's validation parameters, without a semicolon."""
    return query_text(query, validation_parameters(query, scale_factor))


def drawn_query(query: int, scale_factor: float, *, seed: int, stream: int) -> str:
    """The text of a query with parameters drawn for one stream, without a semicolon."""
    return query_text(query, drawn_parameters(query, scale_factor, seed=seed, stream=stream))


def query_text(query: int, parameters: Mapping[str, str]) -> str:
    """A template with every parameter in place.

    ValueError where a query is not known, a parameter is missing or none of the query's, and where a value
    could end the quotes it stands in: values come from lists, so a quote is a mistake.
    """
    if query not in TEMPLATES:
        raise ValueError(f"query {query} is not known; TPC-H has queries 1 to {len(TEMPLATES)}")
    template = TEMPLATES[query].strip()
    wanted = set(_PARAMETER.findall(template))
    reasons = [f"{name} has no value" for name in sorted(wanted - parameters.keys())]
    reasons += [f"{name} is none of its parameters" for name in sorted(parameters.keys() - wanted)]
    reasons += [
        f"{name} is {value!r}, which holds a quote or a backslash"
        for name, value in parameters.items()
        if "'" in value or "\\" in value
    ]
    if reasons:
        raise ValueError(f"query {query}: {'; '.join(reasons)}; it takes {', '.join(sorted(wanted))}")
    return _PARAMETER.sub(lambda match: parameters[match[1]], template)


# A row as a client prints it; None is SQL's null.
Row = tuple[str | None, ...]

_CENT = Decimal("0.01")
_SUM_TOLERANCE = Decimal(100)
_RATIO_TOLERANCE = Decimal("0.01")
_SHOWN_DIFFERENCES = 5


class ColumnKind(Enum):
    """What a column holds, which decides how exact it must be (clause 2.1.3.5 and its comments)."""

    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    SUM = "sum"
    AVERAGE = "average"
    # A ratio of sums: both rules hold (comment 1).
    SUM_RATIO = "sum and ratio"


@dataclass(frozen=True)
class Shape:
    """The columns of a query's result, and which of them its `order by` names, counted from 0."""

    columns: tuple[ColumnKind, ...]
    order_by: tuple[int, ...] = ()


_T, _I, _D, _S, _A = (
    ColumnKind.TEXT,
    ColumnKind.INTEGER,
    ColumnKind.DECIMAL,
    ColumnKind.SUM,
    ColumnKind.AVERAGE,
)

# SUM(l_quantity) is exact (comment 4), as are sums of ones and zeros (comment 2). Dates are text.
SHAPES: Mapping[int, Shape] = {
    1: Shape((_T, _T, _D, _S, _S, _S, _A, _A, _A, _I), (0, 1)),
    2: Shape((_D, _T, _T, _I, _T, _T, _T, _T), (0, 2, 1, 3)),
    3: Shape((_I, _S, _T, _I), (1, 2)),
    4: Shape((_T, _I), (0,)),
    5: Shape((_T, _S), (1,)),
    6: Shape((_S,)),
    7: Shape((_T, _T, _I, _S), (0, 1, 2)),
    8: Shape((_I, ColumnKind.SUM_RATIO), (0,)),
    9: Shape((_T, _I, _S), (0, 1)),
    10: Shape((_I, _T, _S, _D, _T, _T, _T, _T), (2,)),
    11: Shape((_I, _S), (1,)),
    12: Shape((_T, _I, _I), (0,)),
    13: Shape((_I, _I), (1, 0)),
    14: Shape((ColumnKind.SUM_RATIO,)),
    15: Shape((_I, _T, _T, _T, _S), (0,)),
    16: Shape((_T, _T, _I, _I), (3, 0, 1, 2)),
    17: Shape((ColumnKind.SUM_RATIO,)),
    18: Shape((_T, _I, _I, _T, _D, _D), (4, 3)),
    19: Shape((_S,)),
    20: Shape((_T, _T), (0,)),
    21: Shape((_T, _I), (1, 0)),
    22: Shape((_T, _I, _S), (0,)),
}


def canonical_answer(query: int, rows: Sequence[Sequence[str | None]]) -> tuple[Row, ...]:
    """The result in the form that is compared and hashed.

    Strings without the blanks that `char(n)` pads with, whole numbers without leading zeros, other numbers
    with two digits behind the point (clause 2.1.3.4), half a cent rounded away from zero. Rows keep their
    order; those that the query's `order by` leaves equal are sorted, because any order of theirs is right.
    OutputNotUnderstood for a row of the wrong length or a number that is none.
    """
    shape = SHAPES[query]
    canonical = [_canonical_row(query, shape, row) for row in rows]
    return tuple(row for group in _ties(shape, canonical) for row in sorted(group, key=_sortable))


def answer_digest(query: int, rows: Sequence[Sequence[str | None]]) -> str:
    """SHA-256 of the canonical form, in hexadecimal: equal for equal answers of one engine on one data set."""
    text = "\n".join(
        "|".join(
            "\\N" if value is None else value.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n")
            for value in row
        )
        for row in canonical_answer(query, rows)
    )
    return hashlib.sha256(f"{query}\n{len(rows)}\n{text}".encode()).hexdigest()


def answer_differences(
    query: int, expected: Sequence[Sequence[str | None]], actual: Sequence[Sequence[str | None]]
) -> tuple[str, ...]:
    """One sentence per way in which `actual` is not the answer `expected`; empty where it is right.

    At most five, and a count of the rest. A tie that the row limit cuts is told as a difference: with
    prices to the cent it does not come up.
    """
    if len(expected) != len(actual):
        return (f"query {query}: expected {len(expected)} rows, found {len(actual)}",)
    shape = SHAPES[query]
    found_rows = [_canonical_row(query, shape, row) for row in actual]
    reasons: list[str] = []
    start = 0
    for group in _ties(shape, [_canonical_row(query, shape, row) for row in expected]):
        reasons += _group_differences(query, start, group, found_rows[start : start + len(group)])
        start += len(group)
    if len(reasons) > _SHOWN_DIFFERENCES:
        rest = len(reasons) - _SHOWN_DIFFERENCES
        reasons[_SHOWN_DIFFERENCES:] = [f"query {query}: {rest} more rows differ"]
    return tuple(reasons)


def _group_differences(query: int, start: int, expected: list[Row], actual: list[Row]) -> list[str]:
    """Pair rows that may stand in any order; `start` is the place of the first."""
    left = list(actual)
    missing = []
    for place, row in enumerate(expected, start + 1):
        pair = next((other for other in left if _equal_rows(query, row, other)), None)
        if pair is None:
            missing.append((place, row))
        else:
            left.remove(pair)
    return [
        f"query {query}, row {place}: expected {_row_text(row)}, found {_row_text(other)}"
        for (place, row), other in zip(missing, left, strict=True)
    ]


def _equal_rows(query: int, expected: Row, actual: Row) -> bool:
    return all(
        value == other if value is None or other is None else _EQUAL[kind](value, other)
        for kind, value, other in zip(SHAPES[query].columns, expected, actual, strict=True)
    )


def _equal_sums(expected: str, actual: str) -> bool:
    return abs(Decimal(actual) - Decimal(expected)) <= _SUM_TOLERANCE


def _equal_ratios(expected: str, actual: str) -> bool:
    # The clause's 0.99 v <= round(r, 2) <= 1.01 v, written so that a negative v is held to it too. Its v
    # have two digits, as the canonical form has: with more of them 0.034 would be no share of 0.0344.
    value = Decimal(expected)
    return abs(Decimal(actual) - value) <= abs(value) * _RATIO_TOLERANCE


def _equal_sum_ratios(expected: str, actual: str) -> bool:
    return _equal_sums(expected, actual) and _equal_ratios(expected, actual)


def _equal_exactly(expected: str, actual: str) -> bool:
    return expected == actual


_EQUAL: Mapping[ColumnKind, Callable[[str, str], bool]] = {
    ColumnKind.TEXT: _equal_exactly,
    ColumnKind.INTEGER: _equal_exactly,
    ColumnKind.DECIMAL: _equal_exactly,
    ColumnKind.SUM: _equal_sums,
    ColumnKind.AVERAGE: _equal_ratios,
    ColumnKind.SUM_RATIO: _equal_sum_ratios,
}


def _canonical_row(query: int, shape: Shape, row: Sequence[str | None]) -> Row:
    if len(row) != len(shape.columns):
        raise OutputNotUnderstood(
            f"query {query}", expected=f"{len(shape.columns)} columns", found=_row_text(tuple(row))
        )
    return tuple(
        None if value is None else _canonical(query, kind, value)
        for kind, value in zip(shape.columns, row, strict=True)
    )


def _canonical(query: int, column_kind: ColumnKind, value: str) -> str:
    if column_kind is ColumnKind.TEXT:
        return value.rstrip(" ")
    try:
        number = Decimal(value.strip())
        if column_kind is not ColumnKind.INTEGER and number.is_finite():
            rounded = number.quantize(_CENT, rounding=ROUND_HALF_UP)
            # There is one zero, though a number just below it rounds to another.
            return str(rounded or abs(rounded))
        if column_kind is ColumnKind.INTEGER and number == (whole := int(number)):
            return str(whole)
    except (InvalidOperation, ValueError, OverflowError):
        pass
    raise OutputNotUnderstood(f"query {query}", expected=f"a number ({column_kind.value})", found=value)


def _ties(shape: Shape, rows: list[Row]) -> list[list[Row]]:
    """Rows that follow one another and agree in every column of `order by`, together."""
    return [
        list(group)
        for _, group in groupby(rows, key=lambda row: tuple(row[place] for place in shape.order_by))
    ]


def _sortable(row: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, value or "") for value in row)


def _row_text(row: Row) -> str:
    return "(" + ", ".join("null" if value is None else value for value in row) + ")"


SCALE_FACTOR = 1

_ANSWERS = Path(__file__).with_name("specification_answers.json.gz")


def specification_answer(query: int) -> tuple[Row, ...]:
    """The rows of a query at scale factor 1 with its validation parameters, in canonical form.

    ValueError for a query that is none of 1 to 22.
    """
    answers = _answers()
    if query not in answers:
        raise ValueError(f"query {query} is not known; TPC-H has queries 1 to {len(answers)}")
    return answers[query]


def check_answer(query: int, rows: Sequence[Sequence[str | None]]) -> tuple[str, ...]:
    """How a result at scale factor 1 differs from the right one by the rules of clause 2.1.3.5; empty if right.

    `rows` are as a client prints them. ValueError for an unknown query, OutputNotUnderstood for rows that
    cannot be this query's.
    """
    return answer_differences(query, specification_answer(query), rows)


@cache
def _answers() -> Mapping[int, tuple[Row, ...]]:
    decoded = json.loads(gzip.decompress(_ANSWERS.read_bytes()))
    return {int(query): tuple(map(tuple, rows)) for query, rows in decoded.items()}


# Enough to look at; query 16 alone has 18314 at scale factor 1.
_ROWS_SHOWN = 2000

_DIGEST_SHOWN = 12

# Not to be taken for an empty string; COPY's own word for it.
_NULL = "\\N"


def item_place(call: QueryCall) -> tuple[str, str]:
    """The phase and the item under which a question stands in the record."""
    phase = stream_phase(call.stream) if call.stream else QUERIES
    return phase, str(call.query)


def check_answers(recording: TpchRecording, query_answers: Iterable[QueryAnswer]) -> None:
    """Put a digest at each item that has an answer, and a reason into the record for each wrong one."""
    specified = (
        exact_scale_factor(recording.scale_factor) == SCALE_FACTOR
        and recording.spec.levels.text("parameters") != DRAWN
    )
    for one in query_answers:
        if one.rows is not None:
            recording.reasons += _problems(recording, one.question, one.rows, specified=specified)


def _problems(
    recording: TpchRecording, call: QueryCall, rows: Sequence[Sequence[str | None]], *, specified: bool
) -> list[Reason]:
    path = recording.directory / "logs" / answer_file(call)
    shown = f"the whole answer is in logs/{path.name}"
    name = f"query {call.query}" + (f" of stream {call.stream}" if call.stream else "")
    try:
        digest = answer_digest(call.query, rows)
        differences = check_answer(call.query, rows) if specified else ()
    except OutputNotUnderstood as error:
        write_answer(path, rows)
        head = f"{name}: no answer of its kind, {shown}"
        return [
            because("answer-not-understood", f"{head}: {reason}", query=call.query)
            for reason in error.reasons
        ]
    recording.add_facts(*item_place(call), answer=digest, answer_key=call.key)
    if differences:
        write_answer(path, rows)
        head = f"{name}: its answer differs from the specification's ({len(rows)} rows; {shown})"
        return [
            because("answer-unlike-specification", f"{head}: {difference}", query=call.query)
            for difference in differences
        ]
    known = recording.context.expected_answers
    if call.key not in known:
        # Right as far as can be told: what later runs are held to, and what a person may look at.
        known[call.key] = digest
        recording.context.answer_sources[call.key] = f"run {recording.spec.name} of this visit"
        write_answer(path, rows[:_ROWS_SHOWN])
        return []
    expected = known[call.key]
    if expected != digest:
        write_answer(path, rows)
        digests = f"digest {digest:.{_DIGEST_SHOWN}}…, expected digest {expected:.{_DIGEST_SHOWN}}…"
        source = recording.context.answer_sources.get(call.key)
        where = f" in {source}" if source else ""
        words = f"{name}: its answer differs from the one found before{where} ({len(rows)} rows, {digests}); {shown}"
        return [because("answer-unlike-earlier", words, query=call.query)]
    return []


def answer_file(call: QueryCall) -> str:
    """The name of the file of an answer in a run's logs: `answer-05.csv`, `answer-stream-2-05.csv`."""
    stream = f"stream-{call.stream}-" if call.stream else ""
    return f"answer-{stream}{call.query:02d}.csv"


def write_answer(path: Path, rows: Sequence[Sequence[str | None]]) -> None:
    """The rows as CSV without a header, as the client printed them; null as in PostgreSQL's own COPY."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([_NULL if value is None else value for value in row] for row in rows)
