"""The declared durability class without an engine: it speaks of what was fsynced, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bedplate.model.durability import FilesystemPromise, declared
from bedplate.model.levels import Levels
from bedplate.model.reason import because
from bedplate.model.visit import Durability
from bedplate.visit.declaration import EngineDurability

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
