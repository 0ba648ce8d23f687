"""What an engine makes of what its file system promises: the role `durability` of its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypedDict

from bedplate import registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.levels import Levels
    from bedplate.model.visit import Durability, FlushCount, ReadBack


class Promises(TypedDict):
    """What the file system under it is known for."""

    checked_by_fsck: bool
    journal_holds_data: bool
    journal_in_memory: bool
    rolls_back_whole: bool
    flushes_when_delayed: bool | None


class EngineDurability(Protocol):
    """The class of its commits, from the flushes that were counted and from its settings."""

    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        """How it is opened, where no server shows it: `settings` are the cell's."""
        ...

    def declare(
        self,
        settings: Levels,
        server_settings: Mapping[str, str],
        flush_counts: tuple[FlushCount, ...],
        promises: Promises,
        *,
        keeps_write_order: bool,
    ) -> Durability:
        """The declared class; `server_settings` are a server's as it shows them, `keeps_write_order` is the file system's."""
        ...


def durability_of(engine: str) -> EngineDurability:
    """That of an engine; PlanError lists the known ones."""
    durability: EngineDurability = registry.engine_part(engine, "durability")
    return durability
