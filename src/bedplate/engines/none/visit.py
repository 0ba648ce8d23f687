"""The declared durability class without an engine: it speaks of what was fsynced, and of nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.model.durability import declared
from bedplate.model.reason import because
from bedplate.visit.declaration import EngineDurability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.durability import FilesystemPromise
    from bedplate.model.levels import Levels
    from bedplate.model.visit import Durability

_ONLY_FSYNCED = because(
    "no-engine", "no engine: this holds for what was fsynced, and for nothing that was only written"
)


class FileDurability(EngineDurability):
    """Files alone."""

    def declare(
        self,
        settings: Levels,  # noqa: ARG002 -- there are none
        server_settings: Mapping[str, str],  # noqa: ARG002 -- there is none
        filesystem: FilesystemPromise,
    ) -> Durability:
        """The file system's, with that said."""
        found = declared(filesystem)
        return replace(found, reasons=(*found.reasons, _ONLY_FSYNCED))


DURABILITY: EngineDurability = FileDurability()
