"""Every run and figure of a study as tables for other tools: CSV, Parquet, JSON (docs/EXPORT.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from polars import Boolean, Float64, Int64, String

from bedplate import registry
from bedplate.analysis.comparison import selected_overviews
from bedplate.analysis.course_file import read_course
from bedplate.analysis.overview import Measurement, Overview, is_chosen_visit
from bedplate.analysis.run_heads import promised
from bedplate.analysis.search import Searched, SearchedCell, search_of
from bedplate.analysis.wording import promising_least
from bedplate.errors import PlanError
from bedplate.export.columns import (
    FIGURE_COLUMNS,
    KEY_COLUMNS,
    NODE_COLUMNS,
    RUN_COLUMNS,
    ExportColumn,
    ExportTable,
    Factors,
    WorkloadExport,
    factors_of,
    run_key,
    schema,
)
from bedplate.model import codec, limits
from bedplate.model.course import COURSE_FILE
from bedplate.model.device_cache import VOLATILE_512
from bedplate.model.figure import Figure
from bedplate.model.metrics import METRICS, unknown_metric
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome
from bedplate.near_names import quoted, unknown_name

SEARCH_COLUMNS: Mapping[str, ExportColumn] = {
    "study": ExportColumn(String, "title of the study"),
    "cell": ExportColumn(String, "identity of the cell"),
    "label": ExportColumn(String, "what it is called"),
    "metric": ExportColumn(String, "the figure whose best cell was looked for"),
    "unit": ExportColumn(String, "its unit"),
    "dataset": ExportColumn(String, "identity of what was loaded"),
    "run": ExportColumn(String, "the runs that it is a figure of; joined by `, `"),
    "visits": ExportColumn(Int64, "visits of the search and its proofs"),
    "believed": ExportColumn(Int64, "those with a trusted figure"),
    "measured": ExportColumn(
        Float64,
        "mean of what was measured; of few visits it is no fair sample, as the cell was chosen for them",
    ),
    "predicted": ExportColumn(
        Float64,
        "what the model expects of the cell, from all figures and the factors that cells share; empty before the first",
    ),
    "predicted_low": ExportColumn(Float64, "95 % of the model's draws lie between them"),
    "predicted_high": ExportColumn(Float64),
    "proved": ExportColumn(
        Float64, "mean of the fresh runs of the last proof; empty of a cell that took no part"
    ),
    "proved_low": ExportColumn(Float64, "its 95 % interval; empty below three repetitions"),
    "proved_high": ExportColumn(Float64),
    "proved_n": ExportColumn(Int64, "how many repetitions it is made of"),
    "chance_near_best": ExportColumn(
        Float64, "the model's chance that the cell is within the margin of the best; a share"
    ),
    "chance_best": ExportColumn(Float64, "that it is the best; a share"),
    "named": ExportColumn(Boolean, "whether the search names it in the end; empty before the end"),
    "left_out": ExportColumn(String, "why it is not visited any more, or never was"),
}


def searched_rows(found: Overview) -> Iterator[dict[str, Any]]:
    """One row per cell, candidates first; none of a study that is no search, or of a selection of cells."""
    search = search_of(found)
    if search is not None:
        yield from (_row(search, cell) for cell in search.cells)


def _row(search: Searched, cell: SearchedCell) -> dict[str, Any]:
    end, predicted, proved = search.end, cell.predicted, cell.proved
    return {
        "study": search.overview.study.facts.title,
        "cell": cell.id,
        "label": cell.label.full,
        "metric": search.metric.name,
        "unit": search.metric.unit,
        "dataset": search.record.dataset,
        "run": ", ".join(search.record.runs),
        "visits": cell.visits,
        "believed": cell.believed,
        "measured": cell.measured.centre,
        "predicted": None if predicted is None else predicted.value,
        "predicted_low": None if predicted is None else predicted.low,
        "predicted_high": None if predicted is None else predicted.high,
        "proved": None if proved is None else proved.centre,
        "proved_low": None if proved is None else proved.low,
        "proved_high": None if proved is None else proved.high,
        "proved_n": None if proved is None else proved.n,
        "chance_near_best": None if predicted is None else cell.near,
        "chance_best": None if predicted is None else cell.best,
        "named": None if end is None else cell.id in {search.id_of(number) for number in end.cells},
        "left_out": None if cell.closed is None else cell.closed.sentence,
    }


SEARCH = "search"

SEARCH_TABLE = ExportTable(SEARCH_COLUMNS, searched_rows)

# With what a spreadsheet lets a formula begin when it opens CSV, and what is a number all the same.
_FORMULA = r"^[=+\-@\t\r]"

# What is meant as a format and not as part of a directory's name.
_ENDING = re.compile(r"[A-Za-z]\w{0,7}")

_NUMBER = r"^[+\-]?\d+(\.\d+)?([eE][+\-]?\d+)?$"

FORMATS = ("csv", "parquet", "json")

SPREADSHEET = "xlsx"

TABLES = ("runs", "figures", "courses")

_RUNS, _FIGURES, _COURSES = TABLES

_NODES = "nodes"


def export(
    study: Path,
    output: Path,
    formats: Sequence[str] | None = None,
    *,
    cells: Sequence[str] = (),
    tables: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write the tables `runs`, `figures` and `courses` of a study; the files that were written.

    A study has those of its workloads too (the role `export`), one of a fleet `nodes`. An `output` that ends in .json takes
    all tables; one that ends in .csv or .parquet takes the one that is asked for, else the figures with the columns of their
    runs; one that ends in .xlsx is a spreadsheet. Anything else is a directory, which gets one file per table in each
    of `formats` (default: all). Folders are made where need be. `cells` are filters: the tables are of the cells
    that they select, and of the canary's visits. `tables` are those that are written, in place of all that are not bulky;
    `metrics` those that `figures` is of. PlanError for a format, a table or a metric that is not known, or a filter that
    selects nothing.
    """
    kind = _kind_of(output)
    reasons = [
        *(unknown_name("format", name, FORMATS) for name in formats or () if name not in FORMATS),
        *(unknown_name("table", name, _all_tables()) for name in tables if name not in _all_tables()),
        *(unknown_metric(name) for name in metrics if name not in METRICS),
    ]
    if not reasons:
        reasons = _misfits(output, kind, formats, tables, metrics)
    if reasons:
        raise PlanError(*reasons)
    (found,) = selected_overviews([study], cells)
    if kind == SPREADSHEET:
        # Its sheets are made of these tables, and a table needs no spreadsheet.
        from bedplate.export.xlsx import write_spreadsheet  # noqa: PLC0415

        output.parent.mkdir(parents=True, exist_ok=True)
        write_spreadsheet(found, output)
        return (output,)
    if kind in ("csv", "parquet") and [*tables] in ([], [_FIGURES]):
        made = {_FIGURES: _figures_with_runs(found, metrics)}
    else:
        made = _tables(found, tables, metrics)
    if kind:
        output.parent.mkdir(parents=True, exist_ok=True)
        if kind == "json":
            rows = {name: frame.to_dicts() for name, frame in made.items()}
            codec.write_text(output, json.dumps(rows, ensure_ascii=False, allow_nan=False))
        else:
            _write(next(iter(made.values())), output, kind)
        return (output,)
    output.mkdir(parents=True, exist_ok=True)
    return tuple(
        _write(frame, output / f"{name}.{each}", each)
        for each in formats or FORMATS
        for name, frame in made.items()
    )


def _kind_of(output: Path) -> str:
    """The format of one file, empty for a directory. PlanError for an ending that is neither."""
    suffix = output.suffix.removeprefix(".")
    known = (*FORMATS, SPREADSHEET)
    if output.is_dir():
        return ""
    if suffix.lower() == "ods":
        name = quoted(str(output.with_suffix(".xlsx")))
        raise PlanError(f"spreadsheets are written as XLSX, which LibreOffice opens too: export to {name}")
    if _ENDING.fullmatch(suffix) and suffix not in known:
        raise PlanError(
            unknown_name("format", suffix, known),
            f"for a directory of that name, make it first: {quoted(str(output))}",
        )
    return suffix if suffix in known else ""


def _misfits(
    output: Path, kind: str, formats: Sequence[str] | None, tables: Sequence[str], metrics: Sequence[str]
) -> list[str]:
    """What is asked of a file that it cannot hold."""
    reasons = []
    name = quoted(str(output))
    if kind and [*(formats or ())] not in ([], [kind]):
        reasons.append(f"{name} is one file; --format {', '.join(formats or ())} needs a directory")
    if kind in ("csv", "parquet") and len(tables) > 1:
        reasons.append(f"{name} holds one table; several need a directory, or a .json file")
    if kind == SPREADSHEET and (tables or metrics):
        reasons.append(f"{name} is a spreadsheet, which has all; --table and --metric need another format")
    if metrics and tables and _FIGURES not in tables:
        reasons.append(
            f"--metric chooses rows of the table {_FIGURES}, which is not among the tables asked for"
        )
    return reasons


def runs_table(found: Overview) -> pl.DataFrame:
    """One row per run that was due, whatever became of it."""
    return pl.DataFrame([_run_row(found, m) for m in found.measurements], schema=schema(RUN_COLUMNS))


def figures_table(found: Overview, metrics: Sequence[str] = ()) -> pl.DataFrame:
    """One row per figure; a value is null where it is absent or censored, and `reason` says why.

    With `metrics` those alone.
    """
    rows = [
        {
            **run_key(found, m),
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
            "reason": figure.reason.sentence if figure.reason else None,
            **_durability(found, m, phase=figure.phase, item=figure.item),
        }
        for m in found.measurements
        for figure in _figures(m)
        if not metrics or figure.metric in metrics
    ]
    return pl.DataFrame(rows, schema=schema(FIGURE_COLUMNS))


def _figures(m: Measurement) -> tuple[Figure, ...]:
    """The figures that are stored with a run, then those that take more than one run to make."""
    stored = m.figures.figures if m.figures else ()
    names = {figure.metric for figure in stored}
    return (*stored, *(figure for figure in m.by_metric.values() if figure.metric not in names))


def courses_table(found: Overview) -> pl.DataFrame:
    """Every second of every run, behind the columns that name the run."""
    kinds = schema(KEY_COLUMNS)
    frames = [pl.DataFrame(schema=kinds)]
    for m in found.measurements:
        path = m.directory / COURSE_FILE if m.directory else None
        if path is None or not limits.is_file(path):
            continue
        course = read_course(path)
        key = [pl.lit(value, dtype=kinds[name]).alias(name) for name, value in run_key(found, m).items()]
        frames.append(course.select(*key, pl.all()))
    courses = pl.concat(frames, how="diagonal_relaxed")
    return courses.with_columns(pl.col(pl.Float64).fill_nan(None))


def nodes_table(found: Overview) -> pl.DataFrame:
    """One row per node of a fleet: what was found about it before the first visit."""
    rows = [
        {
            "study": found.study.facts.title,
            "node": name,
            "hostname": facts.machine.hostname,
            "identity": facts.machine.identity,
            "architecture": facts.machine.architecture,
            "cpu_model": facts.machine.cpu_model,
            "cpu_count": facts.machine.cpu_count,
            "memory_bytes": facts.machine.memory_bytes,
            "page_size_bytes": facts.machine.page_size_bytes,
            "kernel": facts.machine.kernel_release,
            "distribution": facts.machine.distribution,
            "virtualisation": facts.machine.virtualisation,
            "firmware": facts.firmware,
            "device_model": facts.device_model,
            "device_firmware": facts.device_firmware,
            "device_size_bytes": facts.device_size_bytes,
            "journal_device_model": facts.journal_device_model,
            "journal_device_firmware": facts.journal_device_firmware,
            "tools": json.dumps(dict(facts.machine.tools), ensure_ascii=False),
            "tunables": json.dumps(dict(facts.machine.tunables), ensure_ascii=False),
        }
        for name, facts in found.study.nodes.items()
    ]
    return pl.DataFrame(rows, schema=schema(NODE_COLUMNS))


def workload_exports() -> Sequence[WorkloadExport]:
    """The role `export` of every workload that has it."""
    return tuple(registry.parts("export").values())


def _all_tables() -> tuple[str, ...]:
    """Every table that some study has."""
    own = (name for each in workload_exports() for name in each.tables)
    return (*TABLES, *own, SEARCH, _NODES)


def _tables(found: Overview, asked: Sequence[str], metrics: Sequence[str]) -> dict[str, pl.DataFrame]:
    """The tables that are asked for by name: those that all have, those of its workloads, and its nodes.

    PlanError for one that the study does not have.
    """
    own = {name: of for each in workload_exports() if each.is_in(found) for name, of in each.tables.items()}
    factors = factors_of(found)
    makers: dict[str, Callable[[], pl.DataFrame]] = {
        _RUNS: lambda: factors.beside(runs_table(found)),
        _FIGURES: lambda: factors.beside(figures_table(found, metrics)),
        _COURSES: lambda: courses_table(found),
        **{name: partial(_of_workload, found, factors, table) for name, table in own.items()},
        **({} if search_of(found) is None else {SEARCH: lambda: SEARCH_TABLE.made(found)}),
        **({_NODES: lambda: nodes_table(found)} if found.study.nodes else {}),
    }
    lacking = [name for name in asked if name not in makers]
    if lacking:
        there = ", ".join(makers)
        raise PlanError(*(f"this study has no table {name!r}; there are {there}" for name in lacking))
    usual = [name for name in makers if name not in own or not own[name].bulky]
    return {name: makers[name]() for name in asked or usual}


def _of_workload(found: Overview, factors: Factors, table: ExportTable) -> pl.DataFrame:
    return factors.beside(table.made(found))


def _figures_with_runs(found: Overview, metrics: Sequence[str]) -> pl.DataFrame:
    """The figures, each with the columns of its run and the factors."""
    runs = runs_table(found).drop(
        "study", "durability_volatile", "durability_volatile_512", "durability_protected"
    )
    keys = [name for name in KEY_COLUMNS if name != "study"]
    figures = figures_table(found, metrics)
    return factors_of(found).beside(
        figures.join(runs, on=keys, how="left", nulls_equal=True, suffix="_of_run")
    )


def _run_row(found: Overview, m: Measurement) -> dict[str, Any]:
    cell = found.study.schedule.cells[m.cell]
    facts = found.cells.get(m.cell)
    return {
        **run_key(found, m),
        "variant": cell.variant,
        "filesystem": cell.filesystem.type,
        "filesystem_block_size_bytes": (
            facts.label.filesystem_block_bytes if facts else cell.filesystem.block_size_bytes
        ),
        "block_size_bytes": cell.database_block_bytes,
        "throttle": cell.device.throttle.name if cell.device.throttle else None,
        "latency": cell.device.latency.name if cell.device.latency else None,
        "order": m.order,
        "chosen": is_chosen_visit(found.study, m.repetition, canary=m.canary),
        "executor": m.where.executor if m.where else None,
        "kernel": m.where.kernel if m.where else None,
        "accelerator": m.where.accelerator if m.where else None,
        "boot_id": m.where.boot_id if m.where else None,
        "node": m.where.node if m.where else None,
        "started_wall_s": m.started_wall_s,
        "outcome": m.outcome.value,
        "validity": m.validity.value,
        "reasons": "; ".join(sentences(m.reasons)),
        **_durability(found, m),
        "device_sector_bytes": facts.sector_bytes if facts else None,
        "warmup_s": m.figures.warmup_s if m.figures else None,
        "duration_s": m.figures.duration_s if m.figures else None,
    }


def _durability(found: Overview, m: Measurement, *, phase: str = "", item: str = "") -> dict[str, str | None]:
    """What survives a power cut of all that the run, or this part of it, commits; nothing of one that did not complete."""
    facts = found.cells.get(m.cell)
    declared = facts.durability if facts and m.outcome is Outcome.COMPLETED else None
    known = promised(found.spec((m.dataset, m.run)), declared, phase, item)
    least = promising_least(known) if known else None
    return {
        "durability_volatile": least.volatile_cache if least else None,
        "durability_volatile_512": least.class_with(VOLATILE_512) if least else None,
        "durability_protected": least.protected_cache if least else None,
    }


def _write(frame: pl.DataFrame, path: Path, kind: str) -> Path:
    temporary = path.with_name(f".{path.name}.part")
    # Others may have put a link there.
    temporary.unlink(missing_ok=True)
    if kind == "csv":
        _without_formulas(frame).write_csv(temporary)
    elif kind == "parquet":
        frame.write_parquet(temporary)
    else:
        frame.write_json(temporary)
    temporary.replace(path)
    return path


def _without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts that a spreadsheet would take for a formula, behind an apostrophe; numbers are numbers."""
    texts = pl.col(pl.String)
    is_formula = texts.str.contains(_FORMULA) & ~texts.str.contains(_NUMBER)
    shown = frame.with_columns(pl.when(is_formula).then(pl.lit("'") + texts).otherwise(texts).name.keep())
    # The columns of a course are named by its file.
    return shown.rename(lambda name: f"'{name}" if re.match(_FORMULA, name) else name)
