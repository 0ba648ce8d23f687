"""The declared durability class of PostgreSQL: the counted flushes and its settings as it shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.durability import declared
from bedplate.visit.declaration import EngineDurability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.durability import FilesystemPromise
    from bedplate.model.levels import Levels
    from bedplate.model.visit import Durability


class PostgresqlDurability(EngineDurability):
    """The rules are those of `model/durability.py`."""

    def declare(
        self,
        settings: Levels,  # noqa: ARG002 -- what is in force counts
        server_settings: Mapping[str, str],
        filesystem: FilesystemPromise,
    ) -> Durability:
        """From what is in force."""
        return declared(filesystem, server_settings)


DURABILITY: EngineDurability = PostgresqlDurability()
