"""What an exported table is, the columns that tables of runs share, and the factors; docs/EXPORT.md says what each column means.

The tables that every study has are in `tables.py`; a workload's own stand in its folder (role `export`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import polars as pl
from polars import Boolean, DataFrame, Float64, Int64, String

from bedplate.analysis.labels import plan_levels
from bedplate.analysis.overview import Measurement, Whereabouts, is_chosen_visit
from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.codec import named_fields
from bedplate.model.device_cache import VOLATILE_512
from bedplate.model.figure import RunFigures
from bedplate.model.levels import Scalar, as_in_a_plan
from bedplate.model.plan import model_of
from bedplate.model.reason import Reason

if TYPE_CHECKING:
    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.model.visit import Durability

R = TypeVar("R")

# A field of a record means what the text below it says.
Meaning: TypeAlias = str | tuple[type[Any], str]


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column: its name, its value in the row of a record, what it means, and what polars takes it for.

    Without a meaning it shares that of the column before it.
    """

    name: str
    value: Callable[[R], Any]
    meaning: Meaning = ""
    kind: type[pl.DataType] = String


@dataclass(frozen=True)
class Table(Generic[R]):
    """Columns, and the records of a study that have a row each; one that is `bulky` is written where it is asked for."""

    columns: tuple[Column[R], ...]
    records: Callable[[Overview], Iterable[R]]
    bulky: bool = False

    def of(self, overview: Overview) -> DataFrame:
        """The table of a study."""
        return frame(self.columns, self.records(overview))


def frame(columns: Iterable[Column[R]], subjects: Iterable[R]) -> DataFrame:
    """A row for each subject."""
    rows = [*subjects]
    return DataFrame(
        [pl.Series(column.name, [column.value(row) for row in rows], column.kind) for column in columns]
    )


# What polars takes the values of a field for as they are.
_KINDS: Mapping[str, type[pl.DataType]] = {"int": Int64, "float": Float64, "bool": Boolean, "str": String}


def field_columns(
    record: type[Any], of: Callable[[R], Any], names: str, *meanings: str
) -> tuple[Column[R], ...]:
    """The columns that are fields or properties of a record, by their names in a row, `column=field` where the two differ.

    Kinds are those of the fields, and so are meanings where none is given. Without a record (None) they are empty; an
    enumeration is its value, a reason its sentence, and several are joined by `; `.
    """
    kinds = {field.name: str(field.type) for field in fields(record)}
    pairs = named_fields(names)
    own: list[Meaning] = [(record, field) for _, field in pairs]
    texts: Sequence[Meaning] = (*meanings, *("" for _ in pairs)) if meanings else own

    def column(name: str, field: str, meaning: Meaning) -> Column[R]:
        kind = kinds.get(field) or getattr(record, field).fget.__annotations__["return"]
        of_polars = _KINDS.get(kind.removesuffix(" | None"))
        get = attrgetter(field)

        def value(subject: R) -> Any:
            held = of(subject)
            if held is None:
                return None
            return get(held) if of_polars else plain(get(held))

        return Column(name, value, meaning, of_polars or String)

    return tuple(column(*pair, text) for pair, text in zip(pairs, texts, strict=False))


def plain(value: Any) -> Any:
    """A value as a column has it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return "; ".join(map(str, map(plain, value)))
    return value.sentence if isinstance(value, Reason) else value


class WorkloadExport(NamedTuple):
    """The role `export` of a workload: tables by their names, and whether a study has them.

    `about` stands on the sheet of a spreadsheet that says what its numbers mean.
    """

    tables: Mapping[str, Table[Any]]
    is_in: Callable[[Overview], bool]
    about: tuple[tuple[str, str], ...] = ()


class RunRow(NamedTuple, Generic[R]):
    """The row of a run, or of one of its records; `promise` is what survives a power cut of what its commits wrote."""

    overview: Overview
    m: Measurement
    record: R
    promise: Durability | None = None

    @property
    def request(self) -> Cell:
        """What was asked for."""
        return self.overview.study.schedule.cells[self.m.cell]

    @property
    def facts(self) -> CellFacts | None:
        """What is known of its cell; None where that is left out by a filter."""
        return self.overview.cells.get(self.m.cell)


def durability_columns(
    volatile: str, volatile_512: str = "", protected: str = ""
) -> tuple[Column[RunRow[Any]], ...]:
    """The classes of what a row promises, with what they mean."""
    return (
        Column("durability_volatile", lambda row: row.promise and row.promise.volatile_cache, volatile),
        Column(
            "durability_volatile_512",
            lambda row: row.promise and row.promise.class_with(VOLATILE_512),
            volatile_512,
        ),
        Column("durability_protected", lambda row: row.promise and row.promise.protected_cache, protected),
    )


RUN_COLUMNS: tuple[Column[RunRow[Any]], ...] = (
    Column("study", lambda row: row.overview.study.facts.title, "title of the study"),
    *field_columns(Measurement, lambda row: row.m, "cell"),
    Column(
        "variant", lambda row: row.request.variant, "the file system with its options, without its block size"
    ),
    Column("filesystem", lambda row: row.request.filesystem.type, "`ext4`, `xfs`, …"),
    Column(
        "filesystem_block_size_bytes",
        lambda row: (
            row.facts.label.filesystem_block_bytes if row.facts else row.request.filesystem.block_size_bytes
        ),
        "block size of the file system, read back where none was requested",
        Int64,
    ),
    Column(
        "block_size_bytes",
        lambda row: row.request.database_block_bytes,
        "block size that PostgreSQL was built with",
        Int64,
    ),
    Column(
        "throttle",
        lambda row: row.request.device.throttle and row.request.device.throttle.name,
        "the plan's name of the emulated device; empty without emulation",
    ),
    Column(
        "latency",
        lambda row: row.request.device.latency and row.request.device.latency.name,
        "the plan's name of the emulated device with latency; empty without one",
    ),
    *field_columns(Measurement, lambda row: row.m, "dataset run repetition attempt order canary"),
    Column(
        "chosen",
        lambda row: is_chosen_visit(row.overview.study, row.m.repetition, canary=row.m.canary),
        "true where a search chose the visit: its cell was not sampled as the others were (table `search`)",
        Boolean,
    ),
    *field_columns(Whereabouts, lambda row: row.m.where, "emulated executor kernel accelerator boot_id node"),
    *field_columns(Measurement, lambda row: row.m, "started_wall_s outcome validity reasons"),
    *durability_columns(
        "what survives a power cut if the device's cache does not; of the commits that promise least, where a run has "
        "several kinds. Measured, of a device with sectors of 4 KiB; "
        "empty for a run that did not complete",
        "the same with sectors of 512 bytes; declared classes do not tell them apart",
        "the same if the device's cache survives too",
    ),
    Column(
        "device_sector_bytes",
        lambda row: row.facts and row.facts.sector_bytes,
        "physical sectors of the study's device, of an image file those of the disk under it: from 4096 on "
        "`durability_volatile` holds on it, else `durability_volatile_512`; empty where nothing tells, which counts as 512",
        Int64,
    ),
    *field_columns(RunFigures, lambda row: row.m.figures, "warmup_s duration_s"),
)

_RUN_COLUMN = {column.name: column for column in RUN_COLUMNS}

# Whether the processors were emulated stands beside every figure, so it is in every table of runs.
KEY_COLUMNS = tuple(
    _RUN_COLUMN[name]
    for name in ("study", "cell", "dataset", "run", "repetition", "attempt", "canary", "emulated")
)


def as_in_runs(name: str, getter: Callable[[R], Any]) -> Column[R]:
    """The column of that name in `runs`, of records that are not of one run."""
    column = _RUN_COLUMN[name]
    return Column(name, getter, column.meaning, column.kind)


Run = tuple[str, str]

_KEYS = ("cell", "dataset", "run")
_TYPE = "workload.type"


@dataclass(frozen=True)
class Factors:
    """What the plan asked for in each cell, and in each run by its dataset and name."""

    of_cells: Mapping[str, Mapping[str, Scalar]]
    of_runs: Mapping[Run, Mapping[str, Scalar]]

    @property
    def cell_names(self) -> tuple[str, ...]:
        """The keys that any cell has, in the order of the plan's tables."""
        return _names(self.of_cells.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the cells, then those of the runs."""
        return (*self.cell_names, *_names(self.of_runs.values()))

    def of(self, cell: str, run: Run) -> Mapping[str, Scalar]:
        """All of them in one run of a cell."""
        return {**self.of_cells.get(cell, {}), **self.of_runs.get(run, {})}

    def level(self, name: str, cell: str, run: Run) -> Scalar | None:
        """One of them."""
        return self.of_runs.get(run, {}).get(name, self.of_cells.get(cell, {}).get(name))

    def beside(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The table with these columns behind its own; a table that names no cell as it is."""
        if not set(_KEYS) <= set(frame.columns):
            return frame
        keys = frame.select(_KEYS).unique(maintain_order=True)
        values = [self.of(cell, (dataset, run)) for cell, dataset, run in keys.iter_rows()]
        columns = [_column(name, [found.get(name) for found in values]) for name in self.names]
        return frame.join(keys.with_columns(columns), on=_KEYS, how="left", maintain_order="left")


def factors_of(found: Overview) -> Factors:
    """Every factor of a study: a level that its plan left out is none."""
    schedule = found.study.schedule
    shown = {m.cell for m in found.measurements} | set(found.cells)
    specs = {run: found.spec(run) for run in dict.fromkeys((m.dataset, m.run) for m in found.measurements)}
    return Factors(
        plan_levels({name: cell for name, cell in schedule.cells.items() if name in shown}),
        {run: _of_run(schedule.datasets.get(run[0]), spec) for run, spec in specs.items()},
    )


def _of_run(dataset: Dataset | None, spec: RunSpec | None) -> Mapping[str, Scalar]:
    """The keys of its `[[workload]]`; nothing of a run that the schedule does not know."""
    if spec is None:
        return {}
    model = model_of(spec.workload)
    loaded = {} if dataset is None else model.in_a_plan(dataset.levels)
    levels = {**loaded, **model.in_a_plan(spec.levels)}
    return {_TYPE: spec.workload, **{f"workload.{key}": level for key, level in levels.items()}}


def _names(found: Iterable[Mapping[str, Scalar]]) -> tuple[str, ...]:
    """Keys of one table of the plan stand together."""
    names = dict.fromkeys(name for levels in found for name in levels)
    tables = list(dict.fromkeys(name.partition(".")[0] for name in names))
    return tuple(sorted(names, key=lambda name: tables.index(name.partition(".")[0])))


def _column(name: str, values: list[Scalar | None]) -> pl.Series:
    """Numbers and booleans where all levels are that, else texts as a plan has them."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds == {int}:
        return pl.Series(name, values, pl.Int64)
    if kinds and kinds <= {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64)
    return pl.Series(name, [None if value is None else as_in_a_plan(value) for value in values], pl.String)
