"""The declared durability class of somebody's own engine: what its author promises, as far as the file system holds it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.engines.external.description import FILE, read_description
from bedplate.engines.external.model import PROMISE
from bedplate.model.durability import UNKNOWN, UNSAFE, declared, worst
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Durability, ReadBack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.engines.external.description import EnginePromise
    from bedplate.model.cell import Cell
    from bedplate.model.levels import Levels
    from bedplate.model.visit import FlushCount
    from bedplate.visit.declaration import DurabilityOfCells, EngineDurability, Promises

_NO_PROMISE = because(
    "no-promise", f"{FILE} promises nothing for these settings, so that there is nothing to hold cuts against"
)


class ExternalDurability:
    """By the engine.toml of a cell."""

    def __init__(self, configuration: str) -> None:
        self._description = read_description(configuration)

    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        """What the programs are told, and what is promised for it."""
        told = self._description.told(settings)
        promise = self._description.promise(settings)
        source = FILE if promise is None else f"{FILE}: {promise.source}"
        return [
            *(
                ReadBack(f"engine.{name}", settings.get(name), level, "the call of the writer", matches=None)
                for name, level in told.items()
            ),
            ReadBack(PROMISE, None, promise.durability if promise else UNKNOWN, source, matches=None),
        ]

    def declare(
        self,
        settings: Levels,
        server_settings: Mapping[str, str],  # noqa: ARG002 -- there is no server
        flush_counts: tuple[FlushCount, ...],
        promises: Promises,
        *,
        keeps_write_order: bool,  # noqa: ARG002 -- what an engine makes of it only its author knows
    ) -> Durability:
        """The author's class, and never a better one than the file system's; unknown without a promise."""
        of_filesystem = declared(flush_counts, {}, **promises)
        promise = self._description.promise(settings)
        if promise is None:
            return replace(
                of_filesystem,
                volatile_cache=UNKNOWN,
                protected_cache=UNKNOWN,
                reasons=(*of_filesystem.reasons, _NO_PROMISE),
            )
        return Durability(
            _with(promise.durability, of_filesystem.volatile_cache),
            _with(promise.durability, of_filesystem.protected_cache),
            of_filesystem.basis,
            (*of_filesystem.reasons, _said(promise)),
        )


def _with(promised: str, of_filesystem: str) -> str:
    """An engine that may be damaged by a cut is so on any file system."""
    return UNSAFE if promised == UNSAFE else worst(of_filesystem, promised)


def _said(promise: EnginePromise) -> Reason:
    words = f"its author promises {promise.durability} ({promise.source})"
    return because("promised-by-author", words, promised=promise.durability)


class _OfCells:
    """The promises of the engine that a cell has."""

    def of(self, cell: Cell) -> EngineDurability:
        return ExternalDurability(cell.cluster.configuration or "")


DURABILITY: DurabilityOfCells = _OfCells()
