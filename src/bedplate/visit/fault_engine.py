"""What is asked of an engine whose disk fails: the writer and the oracle that it has for power cuts, and where its files are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.visit.cut_engine import CutEngine
    from bedplate.visit.workload import Driver


@dataclass(frozen=True)
class FaultEngine:
    """The role itself. The files are patterns below the data directory; an engine without a log has none of `log_files`.

    `said_of_disk` finds in what a server logs the lines that say that the disk failed; a library logs nothing.
    """

    cuts: CutEngine
    log_files: tuple[str, ...]
    data_files: tuple[str, ...]
    said_of_disk: Callable[[str], tuple[str, ...]] = lambda _: ()

    @property
    def drivers(self) -> tuple[Driver, ...]:
        """What writer and oracle are compiled of."""
        return self.cuts.drivers
