"""What LMDB cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import LMDB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.cell import Cell
    from bedplate.plan.rules import CellContext, Rule


def lmdb_flags(cell: Cell, around: CellContext) -> Iterator[str]:  # noqa: ARG001 -- a rule is a rule
    """MDB_MAPASYNC speaks of msync, and so of nothing without MDB_WRITEMAP (lmdb.h)."""
    settings = cell.cluster.settings
    if cell.build.engine == LMDB and settings.get("sync") == "mapasync" and not settings.get("writemap"):
        yield "sync = mapasync changes nothing without writemap = true"


RULES: Mapping[str, Rule] = {"flag-without-effect": lmdb_flags}
