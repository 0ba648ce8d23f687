"""What SQLite cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.sqlite.settings import EXTRA, WAL
from bedplate.model.engines import SQLITE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.cell import Cell
    from bedplate.plan.rules import CellContext, Rule


def pragmas_without_effect(cell: Cell, around: CellContext) -> Iterator[str]:  # noqa: ARG001 -- a rule is a rule
    """EXTRA speaks of a rollback journal, and a checkpoint of a WAL (sqlite.org/pragma.html)."""
    settings = cell.cluster.settings
    if cell.build.engine != SQLITE:
        return
    is_wal = settings.get("journal_mode") == WAL
    if is_wal and settings.get("synchronous") == EXTRA:
        yield "synchronous = extra changes nothing against full with journal_mode = wal"
    if not is_wal and settings.get("wal_autocheckpoint") is not None:
        yield "wal_autocheckpoint changes nothing without journal_mode = wal"


RULES: Mapping[str, Rule] = {"pragma-without-effect": pragmas_without_effect}
