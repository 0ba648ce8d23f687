"""The figures of one run: made once, written completely, and only then the raw bulk deleted."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.figures.protocol import maker_for
from bedplate.model import codec
from bedplate.model.figure import DEFINITIONS_VERSION, RunFigures
from bedplate.model.visit import RECORD_FILE, RunRecord

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

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


def _write_parquet(path: Path, table: pl.DataFrame) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    table.write_parquet(temporary, compression="zstd", statistics=False)
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
