"""The declared durability class without an engine: it speaks of what was fsynced, and of nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.model.durability import declared
from bedplate.model.reason import because

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.levels import Levels
    from bedplate.model.visit import Durability, FlushCount, ReadBack
    from bedplate.visit.declaration import EngineDurability, Promises

_ONLY_FSYNCED = because(
    "no-engine", "no engine: this holds for what was fsynced, and for nothing that was only written"
)


class FileDurability:
    """Files alone."""

    def opened(self, settings: Levels) -> Sequence[ReadBack]:  # noqa: ARG002 -- there is nothing to open
        """Nothing."""
        return ()

    def declare(
        self,
        settings: Levels,  # noqa: ARG002 -- there are none
        server_settings: Mapping[str, str],  # noqa: ARG002 -- there is none
        flush_counts: tuple[FlushCount, ...],
        promises: Promises,
        *,
        keeps_write_order: bool,  # noqa: ARG002 -- what was only written is not spoken of
    ) -> Durability:
        """The file system's, with that said."""
        found = declared(flush_counts, {}, **promises)
        return replace(found, reasons=(*found.reasons, _ONLY_FSYNCED))


DURABILITY: EngineDurability = FileDurability()
