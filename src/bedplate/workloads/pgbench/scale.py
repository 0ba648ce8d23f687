"""How large a pgbench database is, and which scale makes it a multiple of the memory.

Derived from PostgreSQL's page layout (documentation, "Database Page Layout"), not fitted:
- heap: a page header of 24 bytes; a row of pgbench_accounts takes 23 bytes of header padded to 24,
  three integers and 85 bytes of filler, padded to 128, and a line pointer of 4.
- primary key: 24 bytes of header and 16 of B-tree data per page, leaves filled to 90 %, 16 bytes and
  a line pointer of 4 per entry.
At 8 kB that is 14.96 MiB per unit of scale, and 14.96 MiB were measured (PostgreSQL 15, scale 20).
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.model import DATABASE_BLOCK_SIZES

if TYPE_CHECKING:
    from bedplate.model.plan import DatasetScale

ROWS_PER_SCALE = 100_000

_PAGE_HEADER = 24
_HEAP_ROW = 128 + 4
_BTREE_SPECIAL = 16
_BTREE_ENTRY = 16 + 4
_BTREE_FILL = 0.9
# Where a plan does not say: 300 MB, which is more than PostgreSQL's usual buffers and loaded in seconds; with little memory
# a share of it, so that the page cache holds the database.
_SUITABLE_UNITS_MOST = 20
_SUITABLE_SHARE = 0.25


def bytes_per_scale(block_size_bytes: int) -> int:
    """Bytes of tables and indexes per unit of pgbench scale, right after loading.

    Small pages hold fewer rows: 7 per kB at 1 kB, 7.75 at 32 kB.
    """
    rows_per_page = (block_size_bytes - _PAGE_HEADER) // _HEAP_ROW
    heap_pages = ceil(ROWS_PER_SCALE / rows_per_page)
    usable = block_size_bytes - _PAGE_HEADER - _BTREE_SPECIAL
    entries_per_leaf = int(usable * _BTREE_FILL) // _BTREE_ENTRY
    level = ceil(ROWS_PER_SCALE / entries_per_leaf)
    index_pages = level
    while level > 1:
        # Inner pages are counted as if the index stood alone; within one large index they are shared.
        level = ceil(level / (usable // _BTREE_ENTRY))
        index_pages += level
    return (heap_pages + index_pages) * block_size_bytes


def scale_units(scale: DatasetScale, memory_bytes: int) -> int:
    """The pgbench scale; `memory_bytes` counts for a multiple of the memory only.

    The same for every block size, so that all cells hold the same rows: the smallest scale at which
    the database is that multiple at the densest block size, and so at least that at the others. One that suits the
    memory is at most a quarter of it, and no more than 20; `memory_bytes` 0 is not known, and no limit.
    """
    if scale.units is not None:
        return scale.units
    densest = min(bytes_per_scale(size) for size in DATABASE_BLOCK_SIZES)
    if scale.times_memory is not None:
        return max(1, ceil(scale.times_memory * memory_bytes / densest))
    if not memory_bytes:
        return _SUITABLE_UNITS_MOST
    return min(_SUITABLE_UNITS_MOST, max(1, int(_SUITABLE_SHARE * memory_bytes / densest)))
