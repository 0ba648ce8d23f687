"""What a maker of figures is, and where that of a workload is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.errors import PlanError, StudyError
from bedplate.model.figure import RunFigures
from bedplate.model.visit import FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import polars as pl

    from bedplate.model.figure import Figure, Window
    from bedplate.model.reason import Reason
    from bedplate.model.visit import RunRecord, Validity


@dataclass(frozen=True)
class Made:
    """What was made of one run: its `run.json`, and the tables beside it by their file name."""

    figures: RunFigures
    tables: Mapping[str, pl.DataFrame]


def run_figures(
    record: RunRecord,
    verdict: tuple[Validity, tuple[Reason, ...]],
    figures: Iterable[Figure] = (),
    *,
    start_wall_s: float | None,
    duration_s: float | None,
    warmup_s: float | None = None,
    windows: tuple[Window, ...] = (),
) -> RunFigures:
    """`run.json` around what was made of a run: times in seconds, None where nothing was measured."""
    return RunFigures(
        format_version=FORMAT_VERSION,
        run=record.spec.name,
        run_id=record.spec.id,
        workload=record.spec.workload,
        outcome=record.outcome,
        reasons=record.reasons,
        validity=verdict[0],
        validity_reasons=verdict[1],
        measure_start_wall_s=start_wall_s,
        warmup_s=warmup_s,
        duration_s=duration_s,
        figures=tuple(figures),
        windows=windows,
    )


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
