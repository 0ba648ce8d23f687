"""What records say of MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engine import EngineModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.cell import Cell
    from bedplate.model.levels import Levels

# A commit waits for the log's sync with these (MariaDB manual, "innodb_flush_log_at_trx_commit").
WAITING = ("1", "3")
PAGE_SIZE = "innodb_page_size"
USUAL_PAGE_BYTES = 16384


class MariadbModel(EngineModel):
    """Its page size is chosen when the data directory is made."""

    def block_bytes(self, cell: Cell) -> int | None:
        """As asked, else InnoDB's own."""
        found = super().block_bytes(cell)
        return USUAL_PAGE_BYTES if found is None else found

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:
        """By the setting of the server."""
        name = "innodb_flush_log_at_trx_commit"
        return str(in_force.get(f"setting {name}") or settings.get(name) or "1") in WAITING


MODEL = MariadbModel(
    "MariaDB",
    {
        f"cluster.settings.{PAGE_SIZE}": f"mariadb.{PAGE_SIZE}",
        "cluster.settings.": "mariadb.settings.",
        "cluster.": "mariadb.",
    },
    making="mariadb-install-db",
    block_level=f"cluster.settings.{PAGE_SIZE}",
    before_block="innodb",
    # Measured on two busy processors: 2.5.
    cuts_per_s=2.0,
)
