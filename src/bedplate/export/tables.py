"""Every run and figure of a study as tables for other tools: CSV, Parquet, JSON (docs/EXPORT.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from polars import Boolean

from bedplate import registry
from bedplate.analysis.comparison import selected_overviews
from bedplate.analysis.course_file import read_course
from bedplate.analysis.overview import Measurement, Overview
from bedplate.analysis.run_heads import promised
from bedplate.analysis.search import Predicted, Searched, SearchedCell, search_of
from bedplate.analysis.wording import promising_least
from bedplate.errors import PlanError
from bedplate.export.columns import (
    KEY_COLUMNS,
    RUN_COLUMNS,
    Column,
    Factors,
    RunRow,
    Table,
    WorkloadExport,
    as_in_runs,
    durability_columns,
    factors_of,
    field_columns,
    frame,
)
from bedplate.model import codec, limits
from bedplate.model.course import COURSE_FILE
from bedplate.model.figure import Figure
from bedplate.model.machine import NodeFacts, StoredMachine
from bedplate.model.metrics import METRICS, unknown_metric
from bedplate.model.visit import Durability, Outcome
from bedplate.near_names import quoted, unknown_name
from bedplate.statistics.summary import Summary


class _Candidate(NamedTuple):
    search: Searched
    cell: SearchedCell


def _candidates(overview: Overview) -> Iterator[_Candidate]:
    """Those that may be named first; none of a study that is no search, or of a selection of cells."""
    search = search_of(overview)
    if search is not None:
        yield from (_Candidate(search, cell) for cell in search.cells)


def _is_named(candidate: _Candidate) -> bool | None:
    search = candidate.search
    return None if search.end is None else candidate.cell.id in map(search.id_of, search.end.cells)


SEARCH_TABLE: Table[_Candidate] = Table(
    (
        as_in_runs("study", lambda row: row.search.overview.study.facts.title),
        Column("cell", lambda row: row.cell.id, "identity of the cell"),
        Column("label", lambda row: row.cell.label.full, "what it is called"),
        Column("metric", lambda row: row.search.metric.name, "the figure whose best cell was looked for"),
        Column("unit", lambda row: row.search.metric.unit, "its unit"),
        as_in_runs("dataset", lambda row: row.search.record.dataset),
        Column(
            "run",
            lambda row: ", ".join(row.search.record.runs),
            "the runs that it is a figure of; joined by `, `",
        ),
        *field_columns(SearchedCell, lambda row: row.cell, "visits believed"),
        *field_columns(
            Summary,
            lambda row: row.cell.measured,
            "measured=centre",
            "mean of what was measured; of few visits it is no fair sample, as the cell was chosen for them",
        ),
        *field_columns(
            Predicted,
            lambda row: row.cell.predicted,
            "predicted=value predicted_low=low predicted_high=high",
            "what the model expects of the cell, from all figures and the factors that cells share; empty before the first",
            "95 % of the model's draws lie between them",
        ),
        *field_columns(
            Summary,
            lambda row: row.cell.proved,
            "proved=centre proved_low=low proved_high=high proved_n=n",
            "mean of the fresh runs of the last proof; empty of a cell that took no part",
            "its 95 % interval; empty below three repetitions",
            "",
            "how many repetitions it is made of",
        ),
        *field_columns(
            SearchedCell,
            lambda row: row.cell if row.cell.predicted else None,
            "chance_near_best=near chance_best=best",
            "the model's chance that the cell is within the margin of the best; a share",
            "that it is the best; a share",
        ),
        Column("named", _is_named, "whether the search names it in the end; empty before the end", Boolean),
        *field_columns(SearchedCell, lambda row: row.cell, "left_out=closed"),
    ),
    _candidates,
)


# With what a spreadsheet lets a formula begin when it opens CSV, and what is a number all the same.
_FORMULA = r"^[=+\-@\t\r]"

# What is meant as a format and not as part of a directory's name.
_ENDING = re.compile(r"[A-Za-z]\w{0,7}")

_NUMBER = r"^[+\-]?\d+(\.\d+)?([eE][+\-]?\d+)?$"

FORMATS = ("csv", "parquet", "json")
SPREADSHEET = "xlsx"
TABLES = ("runs", "figures", "courses")

_RUNS, _FIGURES, _COURSES = TABLES

SEARCH, _NODES = "search", "nodes"


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


def _promise(overview: Overview, m: Measurement, *, phase: str = "", item: str = "") -> Durability | None:
    """What survives a power cut of all that the run, or this part of it, commits; nothing of one that did not complete."""
    facts = overview.cells.get(m.cell)
    declared = facts.durability if facts and m.outcome is Outcome.COMPLETED else None
    known = promised(overview.spec((m.dataset, m.run)), declared, phase, item)
    return promising_least(known) if known else None


def runs_table(overview: Overview) -> pl.DataFrame:
    """One row per run that was due, whatever became of it."""
    return frame(
        RUN_COLUMNS, (RunRow(overview, m, None, _promise(overview, m)) for m in overview.measurements)
    )


FIGURE_COLUMNS: tuple[Column[RunRow[Figure]], ...] = (
    *KEY_COLUMNS,
    *field_columns(
        Figure,
        lambda row: row.record,
        "phase item pass=pass_ metric value unit scale better status limit reason",
    ),
    *durability_columns(
        "what survives a power cut of what this figure's commits wrote: of a part of a run its own class where it has one, "
        "`reads only` where it commits nothing; else that of the run"
    ),
)


def figures_table(overview: Overview, metrics: Sequence[str] = ()) -> pl.DataFrame:
    """One row per figure; a value is null where it is absent or censored, and `reason` says why.

    With `metrics` those alone.
    """
    return frame(
        FIGURE_COLUMNS,
        (
            RunRow(overview, m, figure, _promise(overview, m, phase=figure.phase, item=figure.item))
            for m in overview.measurements
            for figure in _figures(m)
            if not metrics or figure.metric in metrics
        ),
    )


def _figures(m: Measurement) -> tuple[Figure, ...]:
    """The figures that are stored with a run, then those that take more than one run to make."""
    stored = m.figures.figures if m.figures else ()
    names = {figure.metric for figure in stored}
    return (*stored, *(figure for figure in m.by_metric.values() if figure.metric not in names))


def courses_table(found: Overview) -> pl.DataFrame:
    """Every second of every run, behind the columns that name the run."""
    frames = [frame(KEY_COLUMNS, ())]
    for m in found.measurements:
        path = m.directory / COURSE_FILE if m.directory else None
        if path is None or not limits.is_file(path):
            continue
        course = read_course(path)
        key = (pl.lit(key.value(RunRow(found, m, None)), key.kind).alias(key.name) for key in KEY_COLUMNS)
        frames.append(course.select(*key, pl.all()))
    courses = pl.concat(frames, how="diagonal_relaxed")
    return courses.with_columns(pl.col(pl.Float64).fill_nan(None))


class _Node(NamedTuple):
    title: str
    name: str
    facts: NodeFacts


NODES: Table[_Node] = Table(
    (
        as_in_runs("study", lambda row: row.title),
        *field_columns(NodeFacts, lambda row: row.facts, "node"),
        *field_columns(
            StoredMachine,
            lambda row: row.facts.machine,
            "hostname identity architecture cpu_model cpu_count memory_bytes page_size_bytes kernel=kernel_release "
            "distribution virtualisation",
        ),
        *field_columns(
            NodeFacts,
            lambda row: row.facts,
            "firmware device_model device_firmware device_size_bytes journal_device_model journal_device_firmware",
        ),
        Column(
            "tools",
            lambda row: json.dumps(dict(row.facts.machine.tools), ensure_ascii=False),
            "versions of programs, settings of the kernel: an object each, as JSON",
        ),
        Column("tunables", lambda row: json.dumps(dict(row.facts.machine.tunables), ensure_ascii=False)),
    ),
    lambda overview: (
        _Node(overview.study.facts.title, name, facts) for name, facts in overview.study.nodes.items()
    ),
)


def workload_exports() -> Sequence[WorkloadExport]:
    """The role `export` of every workload that has it."""
    return tuple(registry.parts("export").values())


def _all_tables() -> tuple[str, ...]:
    """Every table that some study has."""
    own = (name for each in workload_exports() for name in each.tables)
    return (*TABLES, *own, SEARCH, _NODES)


def _tables(found: Overview, asked: Sequence[str], metrics: Sequence[str]) -> dict[str, pl.DataFrame]:
    """The tables that are asked for by name, or all that are not bulky. PlanError for one that the study does not have."""
    makers = _makers(found, metrics)
    lacking = [name for name in asked if name not in makers]
    if lacking:
        there = ", ".join(makers)
        raise PlanError(*(f"this study has no table {name!r}; there are {there}" for name in lacking))
    bulky = {name for each in workload_exports() for name, table in each.tables.items() if table.bulky}
    return {name: makers[name]() for name in asked or [name for name in makers if name not in bulky]}


def _makers(overview: Overview, metrics: Sequence[str] = ()) -> dict[str, Callable[[], pl.DataFrame]]:
    """What makes each table that the study has: those that all have, those of its workloads, and its nodes."""
    factors = factors_of(overview)
    return {
        _RUNS: lambda: factors.beside(runs_table(overview)),
        _FIGURES: lambda: factors.beside(figures_table(overview, metrics)),
        _COURSES: lambda: courses_table(overview),
        **{
            name: partial(_of_workload, overview, factors, table)
            for each in workload_exports()
            if each.is_in(overview)
            for name, table in each.tables.items()
        },
        **({} if search_of(overview) is None else {SEARCH: lambda: SEARCH_TABLE.of(overview)}),
        **({_NODES: lambda: NODES.of(overview)} if overview.study.nodes else {}),
    }


class StudyTables:
    """The tables of one study by their names in docs/EXPORT.md, as data frames of polars.

    A table is made when it is first asked for. AttributeError for one that the study does not have.
    """

    runs: pl.DataFrame
    figures: pl.DataFrame
    courses: pl.DataFrame

    def __init__(self, study: Path) -> None:
        """StudyError for what is no study, or a damaged one."""
        (found,) = selected_overviews([study])
        self._makers = _makers(found)

    @property
    def names(self) -> tuple[str, ...]:
        """The tables that this study has."""
        return tuple(self._makers)

    def __getattr__(self, name: str) -> pl.DataFrame:
        # Python asks for names of its own too, before there is any table.
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._makers:
            raise AttributeError(unknown_name("table", name, self._makers), name=name, obj=self)
        table = self._makers[name]()
        # Found at once from now on.
        setattr(self, name, table)
        return table

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._makers})


def _of_workload(found: Overview, factors: Factors, table: Table[Any]) -> pl.DataFrame:
    return factors.beside(table.of(found))


def _figures_with_runs(found: Overview, metrics: Sequence[str]) -> pl.DataFrame:
    """The figures, each with the columns of its run and the factors."""
    runs = runs_table(found).drop(
        "study", "durability_volatile", "durability_volatile_512", "durability_protected"
    )
    keys = [column.name for column in KEY_COLUMNS if column.name != "study"]
    figures = figures_table(found, metrics)
    return factors_of(found).beside(
        figures.join(runs, on=keys, how="left", nulls_equal=True, suffix="_of_run")
    )


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
