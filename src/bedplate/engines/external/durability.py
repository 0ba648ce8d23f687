"""The declared durability class of somebody's own engine: what its author promises, as far as the file system holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.external.description import FILE, read_description
from bedplate.engines.external.model import PROMISE
from bedplate.model.durability import UNKNOWN, declared, lowered_to
from bedplate.model.reason import Reason, because
from bedplate.model.visit import ReadBack
from bedplate.visit.declaration import EngineDurability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.engines.external.description import EnginePromise
    from bedplate.model.cell import Cell
    from bedplate.model.durability import FilesystemPromise
    from bedplate.model.levels import Levels
    from bedplate.model.visit import Durability
    from bedplate.visit.declaration import DurabilityOfCells

_NO_PROMISE = because(
    "no-promise", f"{FILE} promises nothing for these settings, so that there is nothing to hold cuts against"
)


class ExternalDurability(EngineDurability):
    """By the engine.toml of a cell."""

    def __init__(self, configuration: str) -> None:
        self._description = read_description(configuration)

    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        """The options of both programs, and what is promised for them."""
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
        filesystem: FilesystemPromise,
    ) -> Durability:
        """The author's class, and never a better one than the file system's; unknown without a promise."""
        promise = self._description.promise(settings)
        promised, reason = (UNKNOWN, _NO_PROMISE) if promise is None else (promise.durability, _said(promise))
        return lowered_to(declared(filesystem), promised, promised, reason)


def _said(promise: EnginePromise) -> Reason:
    words = f"its author promises {promise.durability} ({promise.source})"
    return because("promised-by-author", words)


class _OfCells:
    """The promises of the engine that a cell has."""

    def of(self, cell: Cell) -> EngineDurability:
        return ExternalDurability(cell.cluster.configuration or "")


DURABILITY: DurabilityOfCells = _OfCells()
