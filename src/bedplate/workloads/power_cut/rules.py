"""What a cell cannot have of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.cell import UNTORN_OFF
from bedplate.model.power_cut import RECUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.cell import Cell
    from bedplate.model.levels import Levels
    from bedplate.plan.rules import DatasetRule


def cut_recoveries(cell: Cell, dataset: Levels) -> Iterator[str]:
    """A server that recovers writes pages as well, and is started without the library that has them written untorn."""
    if dataset.integer(RECUT) and cell.cluster.untorn_writes != UNTORN_OFF:
        yield (
            f"untorn_writes = {cell.cluster.untorn_writes}: a recovery is recorded without it, so a cut in it would speak of another "
            "server; leave recut out"
        )


RULES: Mapping[str, DatasetRule] = {"untorn-writes-in-recovery": cut_recoveries}
