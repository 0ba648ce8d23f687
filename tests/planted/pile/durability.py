from __future__ import annotations

from collections.abc import Mapping, Sequence

from bedplate.model.durability import FilesystemPromise, declared
from bedplate.model.levels import Levels
from bedplate.model.visit import Durability, ReadBack
from bedplate.visit.declaration import EngineDurability


class PileDurability(EngineDurability):
    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        return [
            ReadBack("pile.mortar", settings.get("mortar"), settings.get("mortar"), "the pile", matches=None)
        ]

    def declare(
        self, settings: Levels, server_settings: Mapping[str, str], filesystem: FilesystemPromise
    ) -> Durability:
        return declared(filesystem)


DURABILITY: EngineDurability = PileDurability()
