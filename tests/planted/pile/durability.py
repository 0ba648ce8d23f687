from __future__ import annotations

from collections.abc import Mapping, Sequence

from bedplate.model.durability import declared
from bedplate.model.levels import Levels
from bedplate.model.visit import Durability, FlushCount, ReadBack
from bedplate.visit.declaration import EngineDurability, Promises


class PileDurability:
    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        return [
            ReadBack("pile.mortar", settings.get("mortar"), settings.get("mortar"), "the pile", matches=None)
        ]

    def declare(
        self,
        settings: Levels,
        server_settings: Mapping[str, str],
        flush_counts: tuple[FlushCount, ...],
        promises: Promises,
        *,
        keeps_write_order: bool,
    ) -> Durability:
        return declared(flush_counts, {}, **promises)


DURABILITY: EngineDurability = PileDurability()
