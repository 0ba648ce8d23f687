"""The figures of one run: made once, written completely, and only then the raw bulk deleted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.errors import PlanError, StudyError
from bedplate.model import codec
from bedplate.model.figure import DEFINITIONS_VERSION, Figure, RunFigures, Window
from bedplate.model.reason import Reason
from bedplate.model.visit import FORMAT_VERSION, RECORD_FILE, RunRecord, Validity

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Made:
    """What was made of one run: its `run.json`, and the tables beside it by their file name."""

    figures: RunFigures
    tables: Mapping[str, pl.DataFrame]


def run_figures(
    record: RunRecord,
    judgement: tuple[Validity, tuple[Reason, ...]],
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
        validity=judgement[0],
        validity_reasons=judgement[1],
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


RUN = "run.json"


def make_figures(visit_directory: Path, run_directory: Path) -> RunFigures:
    """Make `run.json`, `course.parquet` and `latency.parquet` of a run; its figures.

    May be called again at any time, also after a kill: `run.json` is written last, so that it stands
    for everything, and a call that finds it only deletes what raw bulk is left. StudyError where the
    run's or the visit's record is missing or damaged; damaged inputs beside them become reasons.
    """
    record = codec.read(RunRecord, run_directory / RECORD_FILE)
    maker = maker_for(record.spec.workload)
    done = run_directory / RUN
    if done.exists():
        figures = codec.read(RunFigures, done)
    else:
        made = maker.make(visit_directory, run_directory, record)
        for name, table in made.tables.items():
            _write_parquet(run_directory / name, table)
        figures = replace(made.figures, definitions=DEFINITIONS_VERSION)
        codec.write(done, figures)
        _sync_directory(run_directory)
    for name in maker.bulky:
        (run_directory / name).unlink(missing_ok=True)
    return figures


def _write_parquet(path: Path, frame: pl.DataFrame) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    frame.write_parquet(temporary, compression="zstd", statistics=False)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)


def _sync_directory(path: Path) -> None:
    """The new names must be on the medium before the raw files' names go."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
