"""The declared durability class without an engine: it speaks of what was fsynced, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bedplate.model.durability import FilesystemPromise, declared
from bedplate.model.reason import ONLY_FSYNCED, because
from bedplate.model.visit import Durability
from bedplate.visit.declaration import DurabilityInForce, EngineDurability

_ONLY_FSYNCED = because(
    ONLY_FSYNCED, "no engine: this holds for what was fsynced, and for nothing that was only written"
)


def _durability(filesystem: FilesystemPromise, _server_settings: Mapping[str, str]) -> Durability:
    found = declared(filesystem)
    return replace(found, reasons=(*found.reasons, _ONLY_FSYNCED))


DURABILITY: EngineDurability = DurabilityInForce(_durability)
