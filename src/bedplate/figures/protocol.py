"""What a maker of figures is, and where that of a workload is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.errors import PlanError, StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from bedplate.model.figure import RunFigures
    from bedplate.model.visit import RunRecord


@dataclass(frozen=True)
class Made:
    """What was made of one run: its `run.json`, and the tables beside it by their file name."""

    figures: RunFigures
    tables: Mapping[str, pl.DataFrame]


class FigureMaker(Protocol):
    """Reads the raw record of a run of its workload; `bulky` names the files that are then superfluous."""

    bulky: tuple[str, ...]

    def make(self, visit_directory: Path, run_directory: Path, record: RunRecord) -> Made:
        """Make everything of the run that has this record; writes and deletes nothing. StudyError where the visit has none."""
        ...


def maker_for(workload: str) -> FigureMaker:
    """The maker for a workload; StudyError lists the known ones."""
    try:
        maker: FigureMaker = registry.part(workload, "figures")
    except PlanError:
        raise StudyError(
            f"no figures are known for the workload {workload!r}; known are {', '.join(registry.WORKLOADS)}. "
            "The study was made by another version of bedplate"
        ) from None
    return maker
