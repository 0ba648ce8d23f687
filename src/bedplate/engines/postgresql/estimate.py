"""What PostgreSQL keeps on the device beside its data: WAL, up to its limit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring.settings import in_force
from bedplate.units import GIB, MIB, parse_size

if TYPE_CHECKING:
    from bedplate.model.cell import Cell
    from bedplate.plan.workload_estimate import EngineEstimate

_MAX_WAL_SIZE_BYTES = GIB
# What initdb writes into postgresql.conf (DEFAULT_MAX_WAL_SEGS).
_MAX_WAL_SEGMENTS = 64


class PostgresqlEstimate:
    """`max_wal_size`."""

    def log_bytes(self, cell: Cell) -> int:
        """As it is set, else its default."""
        asked, segment = in_force(cell.cluster, "max_wal_size"), cell.cluster.wal_segment_bytes
        if asked is None and segment is not None:
            return _MAX_WAL_SEGMENTS * segment
        return _max_wal_bytes(asked)


@lru_cache(maxsize=1024)
def _max_wal_bytes(text: str | None) -> int:
    if text is None:
        return _MAX_WAL_SIZE_BYTES
    if re.fullmatch(r"\d{1,12}", text):
        return int(text) * MIB  # the server's own unit of max_wal_size
    try:
        return parse_size(text)
    except (ValueError, OverflowError):
        return _MAX_WAL_SIZE_BYTES


ESTIMATE: EngineEstimate = PostgresqlEstimate()
