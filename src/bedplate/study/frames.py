"""A study read from its directory, as records and as polars frames with one row per run or per figure.

polars is imported when a frame is asked for: whoever wants the records alone does not wait for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.figure import RunFigures
from bedplate.model.machine import Machine
from bedplate.model.visit import FORMAT_VERSION, Outcome, Validity, VisitRecord
from bedplate.study.layout import StudyLayout
from bedplate.study.records import StudyFacts, StudySchedule
from bedplate.study.version import require_known_format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

# What is not so named (an unfinished visit, a file of someone else's) is no visit.
_ATTEMPT = re.compile(r"[1-9]\d*\.[1-9]\d*")

RUN_COLUMNS = (
    "cell",
    "variant",
    "filesystem",
    "filesystem_block_size_bytes",
    "block_size_bytes",
    "dataset",
    "run",
    "repetition",
    "attempt",
    "order",
    "outcome",
    "validity",
    "durability_volatile",
    "durability_protected",
    "canary",
    "started_wall_s",
    "reasons",
)
FIGURE_COLUMNS = (
    *(name for name in RUN_COLUMNS if name != "reasons"),
    "phase",
    "item",
    "pass",
    "metric",
    "value",
    "unit",
    "scale",
    "better",
    "status",
    "limit",
    "reason",
)


@dataclass(frozen=True)
class StoredVisit:
    """A finished visit, its directory, and the figures of its runs in their order."""

    record: VisitRecord
    directory: Path
    runs: tuple[RunFigures, ...]
    run_directories: tuple[Path, ...]


@dataclass(frozen=True)
class Study:
    """A whole study as it stands on disk; `visits` are in the order of the schedule, then of attempts."""

    directory: Path
    facts: StudyFacts
    machine: Machine
    plan_text: str
    schedule: StudySchedule
    visits: tuple[StoredVisit, ...]


def read_study(path: Path) -> Study:
    """Read a study; StudyError with every reason if it is none, of another format, or damaged.

    It may be being written meanwhile: a visit that is finished later is not in it.
    """
    layout = StudyLayout(path)
    require_known_format(layout)
    facts = codec.read(StudyFacts, layout.facts)
    schedule = codec.read(StudySchedule, layout.schedule)
    reasons: list[str] = []
    visits: list[StoredVisit] = []
    for directory in _visit_directories(layout.visits):
        try:
            visits.append(_read_visit(directory))
        except StudyError as error:
            reasons.extend(error.reasons)
    if reasons:
        raise StudyError(*reasons)
    order = _order(schedule)
    last = len(schedule.visits)
    visits.sort(key=lambda visit: (order.get(_place(visit.record), last), visit.record.key.attempt))
    return Study(
        directory=path,
        facts=facts,
        machine=codec.read(Machine, layout.machine),
        plan_text=layout.plan.read_text(encoding="utf-8"),
        schedule=schedule,
        visits=tuple(visits),
    )


def runs_frame(study: Study) -> pl.DataFrame:
    """One row per run of every finished visit, `RUN_COLUMNS`, runs without figures included.

    `order` is the visit's index in the schedule, null for one that the schedule no longer has.
    `filesystem_block_size_bytes` is what was read back, else what was asked, else null. `reasons` are
    those of the outcome and of the validity, joined.
    """
    import polars as pl  # noqa: PLC0415

    order = _order(study.schedule)
    rows = [
        {
            **_visit_keys(visit, order),
            "run": name,
            "outcome": outcome.value,
            "validity": validity.value,
            "reasons": "; ".join(reasons) or None,
        }
        for visit in study.visits
        for name, outcome, validity, reasons in _runs(study, visit)
    ]
    return pl.DataFrame(rows, schema=_run_schema(pl), orient="row").select(RUN_COLUMNS)


def figures_frame(study: Study) -> pl.DataFrame:
    """One row per figure of every run, `FIGURE_COLUMNS`; an absent value is null and has its reason."""
    import polars as pl  # noqa: PLC0415

    order = _order(study.schedule)
    rows = [
        {
            **keys,
            "run": run.run,
            "outcome": run.outcome.value,
            "validity": run.validity.value,
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
        for visit in study.visits
        for keys in (_visit_keys(visit, order),)
        for run in visit.runs
        for figure in run.figures
    ]
    texts = dict.fromkeys(
        ("phase", "item", "metric", "unit", "scale", "better", "status", "reason"), pl.String
    )
    schema: dict[str, Any] = {
        **_run_schema(pl),
        **texts,
        "pass": pl.Int64,
        "value": pl.Float64,
        "limit": pl.Float64,
    }
    del schema["reasons"]
    return pl.DataFrame(rows, schema=schema, orient="row").select(FIGURE_COLUMNS)


def _visit_directories(visits: Path) -> Iterator[Path]:
    for directory in sorted(visits.glob("*/*/*")):
        if _ATTEMPT.fullmatch(directory.name) and (directory / "visit.json").exists():
            yield directory


def _read_visit(directory: Path) -> StoredVisit:
    record = codec.read(VisitRecord, directory / "visit.json")
    if record.format_version != FORMAT_VERSION:
        raise StudyError(f"{directory} is of format {record.format_version}, not {FORMAT_VERSION}")
    made = sorted(directory.glob("runs/*/run.json"))
    return StoredVisit(
        record=record,
        directory=directory,
        runs=tuple(codec.read(RunFigures, path) for path in made),
        run_directories=tuple(path.parent for path in made),
    )


def _place(record: VisitRecord) -> tuple[str, str, int, bool]:
    key = record.key
    return key.cell, key.dataset, key.repetition, key.canary


def _order(schedule: StudySchedule) -> dict[tuple[str, str, int, bool], int]:
    return {(v.cell_id, v.dataset_id, v.repetition, v.canary): v.index for v in schedule.visits}


def _visit_keys(visit: StoredVisit, order: dict[tuple[str, str, int, bool], int]) -> dict[str, Any]:
    record = visit.record
    durability = record.durability
    return {
        "cell": record.key.cell,
        "variant": record.cell.variant,
        "filesystem": record.cell.filesystem.type,
        "filesystem_block_size_bytes": _filesystem_block_bytes(record),
        "block_size_bytes": record.cell.build.block_size_bytes,
        "dataset": record.key.dataset,
        "repetition": record.key.repetition,
        "attempt": record.key.attempt,
        "order": order.get(_place(record)),
        "durability_volatile": None if durability is None else durability.volatile_cache,
        "durability_protected": None if durability is None else durability.protected_cache,
        "canary": record.key.canary,
        "started_wall_s": record.started_wall_s,
    }


def _filesystem_block_bytes(record: VisitRecord) -> int | None:
    for comparison in record.comparisons:
        if comparison.name == "filesystem.block_size_bytes" and isinstance(comparison.effective, int):
            return comparison.effective
    return record.cell.filesystem.block_size_bytes


def _runs(study: Study, visit: StoredVisit) -> Iterator[tuple[str, Outcome, Validity, tuple[str, ...]]]:
    """Every run of a visit; one that was due and left no figures did not run, for the visit's reasons."""
    made = {run.run for run in visit.runs}
    for run in visit.runs:
        yield run.run, run.outcome, run.validity, (*run.reasons, *run.validity_reasons)
    key, schedule = visit.record.key, study.schedule
    for spec in schedule.canary_runs if key.canary else schedule.runs.get(key.dataset, ()):
        if spec.name not in made and visit.record.outcome is not Outcome.COMPLETED:
            yield spec.name, Outcome.NOT_RUN, Validity.UNKNOWN, visit.record.reasons


def _run_schema(pl: Any) -> dict[str, Any]:
    whole = ("filesystem_block_size_bytes", "block_size_bytes", "repetition", "attempt", "order")
    texts = dict.fromkeys(RUN_COLUMNS, pl.String)
    return {**texts, **dict.fromkeys(whole, pl.Int64), "canary": pl.Boolean, "started_wall_s": pl.Float64}
