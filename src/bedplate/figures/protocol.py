"""What a maker of figures is: one for each workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from bedplate.model.figure import RunFigures


@dataclass(frozen=True)
class Made:
    """What was made of one run: its `run.json`, and the tables beside it by their file name."""

    figures: RunFigures
    tables: Mapping[str, pl.DataFrame]


class FigureMaker(Protocol):
    """Reads the raw record of a run of its workload; `bulky` names the files that are then superfluous."""

    bulky: tuple[str, ...]

    def make(self, visit_directory: Path, run_directory: Path) -> Made:
        """Make everything; writes and deletes nothing. StudyError where there is no record."""
        ...
