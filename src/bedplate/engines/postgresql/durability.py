"""The declared durability class of PostgreSQL: the counted flushes and its settings as it shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.durability import declared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.levels import Levels
    from bedplate.model.visit import Durability, FlushCount, ReadBack
    from bedplate.visit.declaration import EngineDurability, Promises


class PostgresqlDurability:
    """The rules are those of `model/durability.py`."""

    def opened(self, settings: Levels) -> Sequence[ReadBack]:  # noqa: ARG002 -- the server shows them
        """Nothing: the server is asked."""
        return ()

    def declare(
        self,
        settings: Levels,  # noqa: ARG002 -- what is in force counts
        server_settings: Mapping[str, str],
        flush_counts: tuple[FlushCount, ...],
        promises: Promises,
        *,
        keeps_write_order: bool,  # noqa: ARG002 -- a server waits
    ) -> Durability:
        """From what is in force."""
        return declared(flush_counts, server_settings, **promises)


DURABILITY: EngineDurability = PostgresqlDurability()
