"""What records say of SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.sqlite.amalgamation import AMALGAMATION
from bedplate.engines.sqlite.settings import EXCLUSIVE, FULL, NORMAL, OFF, PAGE_SIZE, WAL
from bedplate.model.engine import EngineModel
from bedplate.model.source_commit import SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Levels


class SqliteModel(EngineModel):
    """Its page size is chosen when the file is made."""

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:
        """By `synchronous`; in WAL mode `normal` syncs at checkpoints alone."""
        mode = in_force.get("sqlite.synchronous") or self.commit_mode(settings)
        journal = in_force.get("sqlite.journal_mode") or settings.text("journal_mode")
        return mode != OFF and not (mode == NORMAL and journal == WAL)

    def lets_one_in(self, settings: Levels) -> str | None:
        """By its locking mode."""
        return f"locking_mode = {EXCLUSIVE}" if settings.text("locking_mode") == EXCLUSIVE else None


MODEL = SqliteModel(
    "SQLite",
    {"cluster.settings.": "sqlite."},
    block_level=f"cluster.settings.{PAGE_SIZE}",
    cuts_per_s=400 / 60,
    commit_setting="synchronous",
    commit_modes=(FULL, OFF),
    more_tests=("tpcb",),
    library_settings=(AMALGAMATION, SOURCE),
)
