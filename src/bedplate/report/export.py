"""Every run and figure of a study as tables for other tools: CSV, Parquet, JSON (docs/EXPORT.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from bedplate.errors import PlanError, StudyError
from bedplate.model.course import COURSE_FILE
from bedplate.report.overview import overview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bedplate.report.overview import Measurement, Overview

FORMATS = ("csv", "parquet", "json")
TABLES = ("runs", "figures", "courses")

RUN_COLUMNS: Mapping[str, Any] = {
    "study": pl.String,
    "cell": pl.String,
    "variant": pl.String,
    "filesystem": pl.String,
    "filesystem_block_size_bytes": pl.Int64,
    "block_size_bytes": pl.Int64,
    "throttle": pl.String,
    "dataset": pl.String,
    "run": pl.String,
    "repetition": pl.Int64,
    "attempt": pl.Int64,
    "order": pl.Int64,
    "canary": pl.Boolean,
    "emulated": pl.Boolean,
    "executor": pl.String,
    "kernel": pl.String,
    "accelerator": pl.String,
    "boot_id": pl.String,
    "started_wall_s": pl.Float64,
    "outcome": pl.String,
    "validity": pl.String,
    "reasons": pl.String,
    "durability_volatile": pl.String,
    "durability_protected": pl.String,
    "warmup_s": pl.Float64,
    "duration_s": pl.Float64,
}
# Whether the processors were emulated stands beside every figure, so it is in all three tables.
KEY_COLUMNS = ("study", "cell", "dataset", "run", "repetition", "attempt", "canary", "emulated")
FIGURE_COLUMNS: Mapping[str, Any] = {
    **{name: RUN_COLUMNS[name] for name in KEY_COLUMNS},
    "phase": pl.String,
    "item": pl.String,
    "pass": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "scale": pl.String,
    "better": pl.String,
    "status": pl.String,
    "limit": pl.Float64,
    "reason": pl.String,
}


def export(study: Path, output: Path, formats: Sequence[str] | None = None) -> tuple[Path, ...]:
    """Write the tables `runs`, `figures` and `courses` of a study; the files that were written.

    An `output` that ends in .json takes all three tables; one that ends in .csv or .parquet takes the
    figures with the columns of their runs. Anything else is a directory, which gets one file per table
    in each of `formats` (default: all). Folders are made where need be. PlanError for an unknown format.
    """
    suffix = output.suffix.removeprefix(".")
    unknown = [name for name in formats or () if name not in FORMATS]
    if unknown:
        raise PlanError(
            *(f"format {name!r} is not known; known are {', '.join(FORMATS)}" for name in unknown)
        )
    if suffix in FORMATS and not output.is_dir() and formats not in (None, (), [], [suffix], (suffix,)):
        raise PlanError(f"{output} is one file; --format {', '.join(formats or ())} needs a directory")
    found = overview(study)
    if suffix in FORMATS and not output.is_dir():
        output.parent.mkdir(parents=True, exist_ok=True)
        _write_file(found, output, suffix)
        return (output,)
    output.mkdir(parents=True, exist_ok=True)
    tables = {name: make(found) for name, make in _MAKERS.items()}
    return tuple(
        _write(frame, output / f"{name}.{kind}", kind)
        for kind in formats or FORMATS
        for name, frame in tables.items()
    )


def runs_table(found: Overview) -> pl.DataFrame:
    """One row per run that was due, whatever became of it."""
    return pl.DataFrame([_run_row(found, m) for m in found.measurements], schema=RUN_COLUMNS)


def figures_table(found: Overview) -> pl.DataFrame:
    """One row per figure; a value is null where it is absent or censored, and `reason` says why."""
    rows = [
        {
            **_key(found, m),
            "phase": figure.phase,
            "item": figure.item,
            "pass": figure.pass_,
            "metric": figure.metric,
            "value": figure.value,
            "unit": figure.unit,
            "scale": figure.scale.value,
            "better": figure.better.value,
            "status": figure.status.value,
            "limit": figure.limit,
            "reason": figure.reason,
        }
        for m in found.measurements
        for figure in (m.figures.figures if m.figures else ())
    ]
    return pl.DataFrame(rows, schema=FIGURE_COLUMNS)


def courses_table(found: Overview) -> pl.DataFrame:
    """Every second of every run, behind the columns that name the run."""
    schema = {name: RUN_COLUMNS[name] for name in KEY_COLUMNS}
    frames = [pl.DataFrame(schema=schema)]
    for m in found.measurements:
        path = m.directory / COURSE_FILE if m.directory else None
        if path is None or not path.is_file():
            continue
        try:
            course = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StudyError(f"{path} cannot be read: {error}") from error
        key = [pl.lit(value, dtype=schema[name]).alias(name) for name, value in _key(found, m).items()]
        frames.append(course.select(*key, pl.all()))
    courses = pl.concat(frames, how="diagonal_relaxed")
    return courses.with_columns(pl.col(pl.Float64).fill_nan(None))


_MAKERS: Mapping[str, Callable[[Overview], pl.DataFrame]] = {
    "runs": runs_table,
    "figures": figures_table,
    "courses": courses_table,
}


def _key(found: Overview, m: Measurement) -> dict[str, Any]:
    return {
        "study": found.study.facts.title,
        "cell": m.cell,
        "dataset": m.dataset,
        "run": m.run,
        "repetition": m.repetition,
        "attempt": m.attempt,
        "canary": m.canary,
        "emulated": None if m.where is None else m.where.emulated,
    }


def _run_row(found: Overview, m: Measurement) -> dict[str, Any]:
    cell = found.study.schedule.cells[m.cell]
    facts = found.cells.get(m.cell)
    durability = facts.durability if facts else None
    return {
        **_key(found, m),
        "variant": cell.variant,
        "filesystem": cell.filesystem.type,
        "filesystem_block_size_bytes": (
            facts.label.filesystem_block_bytes if facts else cell.filesystem.block_size_bytes
        ),
        "block_size_bytes": cell.build.block_size_bytes,
        "throttle": cell.device.throttle.name if cell.device.throttle else None,
        "order": m.order,
        "executor": m.where.executor if m.where else None,
        "kernel": m.where.kernel if m.where else None,
        "accelerator": m.where.accelerator if m.where else None,
        "boot_id": m.where.boot_id if m.where else None,
        "started_wall_s": m.started_wall_s,
        "outcome": m.outcome.value,
        "validity": m.validity.value,
        "reasons": "; ".join(m.reasons),
        "durability_volatile": durability.volatile_cache if durability else None,
        "durability_protected": durability.protected_cache if durability else None,
        "warmup_s": m.figures.warmup_s if m.figures else None,
        "duration_s": m.figures.duration_s if m.figures else None,
    }


def _write_file(found: Overview, output: Path, kind: str) -> None:
    if kind == "json":
        tables = {name: make(found).to_dicts() for name, make in _MAKERS.items()}
        _write_text(output, json.dumps(tables, ensure_ascii=False, allow_nan=False))
        return
    runs = runs_table(found).drop("study")
    keys = [name for name in KEY_COLUMNS if name != "study"]
    figures = figures_table(found).join(runs, on=keys, how="left", nulls_equal=True, suffix="_of_run")
    _write(figures, output, kind)


def _write(frame: pl.DataFrame, path: Path, kind: str) -> Path:
    temporary = path.with_name(f".{path.name}.part")
    if kind == "csv":
        frame.write_csv(temporary)
    elif kind == "parquet":
        frame.write_parquet(temporary)
    else:
        frame.write_json(temporary)
    temporary.replace(path)
    return path


def _write_text(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
