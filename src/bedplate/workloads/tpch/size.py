"""How much disk TPC-H takes: its CSV files, the loaded database, and what sorts and joins spill.

All are a little more than what was measured, as they decide whether a disk is large enough.

- CSV by tpchgen-cli 4.0.0: 10 670 284 bytes at scale factor 0.01, 108 727 010 at 0.1, 1 109 675 030 at 1 and
  3 366 102 646 at 3. Keys grow by a digit with every power of ten, hence the logarithm.
- Heap by PostgreSQL's page layout (documentation, "Database Page Layout"): a header of 24 bytes per page, a
  line pointer of 4 per row, and the tables' mean row as `pg_column_size` gives it at scale factor 1, rounded
  up to eight bytes. On average half a row stays unused at a page's end.
- Indexes from PostgreSQL 18.6 at scale factor 1 and 8 kB, primary keys and all of the schema's others. Those
  with duplicates keep lists of rows, which are shorter on smaller pages: at 4 kB they took 2.4 % more. That
  the overhead doubles with each halving is extrapolated; 1, 2, 16 and 32 kB were not measured.

What is reckoned is up to 3 % more than what pg_database_size gave: 28, 195 and 1855 MB at scale factors 0.01,
0.1 and 1 with 8 kB, 196 MB at 0.1 with 4 kB.
"""

from __future__ import annotations

from math import log10
from typing import NamedTuple

from bedplate.units import KIB

_CSV_BYTES = 1.112e9
_CSV_BYTES_PER_POWER_OF_TEN = 26e6

_PAGE_HEADER = 24
_LINE_POINTER = 4
# 7.4 MB of 18.6's template database, and at least a page or two for each relation and its maps.
_CATALOGUES_BYTES = 10_000_000
_INDEX_REFERENCE_BYTES = 8 * KIB
_INDEX_GROWTH = 0.024
# Free space and visibility maps, and what the averages leave out.
_MARGIN = 1.01

# Above it identifiers take eight bytes (clause 1.3.1).
_INTEGER_IDENTIFIERS_UP_TO = 300
_WIDER_IDENTIFIER_BYTES = 4

# Validating the foreign key of lineitem to orders, with maintenance_work_mem at its default of 64 MB, wrote
# 439 MB of temporary files; each index on lineitem 120 MB; no query with 4 MB of work_mem more than 66 MB.
_TEMPORARY_BYTES = 440e6


class _Table(NamedTuple):
    """Rows at scale factor 1, the mean row and its share of the indexes in bytes, its identifier columns."""

    rows: int
    row_bytes: float
    index_bytes: float
    identifiers: int


_TABLES = (
    _Table(200_000, 161.9, 22.6, 1),  # part
    _Table(10_000, 175.6, 33.6, 2),  # supplier
    _Table(800_000, 173.1, 29.4, 2),  # partsupp
    _Table(150_000, 190.0, 29.8, 2),  # customer
    _Table(1_500_000, 137.1, 38.2, 2),  # orders
    _Table(6_001_215, 147.9, 68.6, 3),  # lineitem
)


def tpch_data_bytes(scale_factor: float) -> int:
    """Bytes of the eight CSV files; about 1.1 GB per unit of scale. ValueError unless it is positive."""
    _require_positive(scale_factor)
    growth = _CSV_BYTES_PER_POWER_OF_TEN * max(0.0, log10(scale_factor))
    return int(scale_factor * (_CSV_BYTES + growth))


def database_bytes(scale_factor: float, block_size_bytes: int) -> int:
    """Bytes of the loaded database: tables, keys, indexes and catalogues, without WAL and temporary files.

    ValueError unless the scale factor is positive.
    """
    _require_positive(scale_factor)
    wider = _WIDER_IDENTIFIER_BYTES if scale_factor > _INTEGER_IDENTIFIERS_UP_TO else 0
    smaller_pages = _INDEX_REFERENCE_BYTES / block_size_bytes - 1
    index_factor = 1 + _INDEX_GROWTH * smaller_pages
    size = 0.0
    for table in _TABLES:
        row = table.row_bytes + wider * table.identifiers
        rows_per_page = (block_size_bytes - _PAGE_HEADER - row / 2) / (row + _LINE_POINTER)
        index = (table.index_bytes + 2 * wider * table.identifiers) * index_factor
        size += table.rows * (block_size_bytes / rows_per_page + index)
    return int(scale_factor * size * _MARGIN) + _CATALOGUES_BYTES


def temporary_bytes(scale_factor: float) -> int:
    """Room for the largest temporary files of one session: keys, indexes or a query, whichever takes most.

    An upper bound, as it counts what was written and not what lay there at once. Streams of a throughput
    test need the queries' part each, a seventh of it. ValueError unless the scale factor is positive.
    """
    _require_positive(scale_factor)
    return int(scale_factor * _TEMPORARY_BYTES)


def _require_positive(scale_factor: float) -> None:
    if not 0 < scale_factor < float("inf"):
        raise ValueError(f"scale factor {scale_factor} is not a positive number; take 0.1, 1, 10 or the like")
