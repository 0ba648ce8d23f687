"""The columns of the exported tables: of what kind each is, and what it means, as docs/EXPORT.md says it.

Here are those of the tables that every study has, and of a fleet's nodes; a workload's own stand in its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from polars import Boolean, DataFrame, Float64, Int64, String

from bedplate.analysis.labels import plan_levels
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Scalar, as_in_a_plan
from bedplate.model.plan import model_of

if TYPE_CHECKING:
    from bedplate.analysis.overview import Measurement, Overview


class ExportColumn(NamedTuple):
    """A column: what polars takes it for, and its meaning; without one it shares that of the column before it."""

    kind: type[pl.DataType]
    meaning: str = ""


def schema(columns: Mapping[str, ExportColumn]) -> dict[str, type[pl.DataType]]:
    """What polars takes each column for."""
    return {name: column.kind for name, column in columns.items()}


class ExportTable(NamedTuple):
    """A table: its columns, and what makes its rows of a study; one that is `bulky` is written where it is asked for."""

    columns: Mapping[str, ExportColumn]
    rows: Callable[[Overview], Iterable[Mapping[str, Any]]]
    bulky: bool = False

    def made(self, found: Overview) -> DataFrame:
        """The table of a study."""
        return DataFrame(list(self.rows(found)), schema=schema(self.columns))


class WorkloadExport(NamedTuple):
    """The role `export` of a workload: tables by their names, and whether a study has them.

    `about` stands on the sheet of a spreadsheet that says what its numbers mean.
    """

    tables: Mapping[str, ExportTable]
    is_in: Callable[[Overview], bool]
    about: tuple[tuple[str, str], ...] = ()


RUN_COLUMNS: Mapping[str, ExportColumn] = {
    "study": ExportColumn(String, "title of the study"),
    "cell": ExportColumn(String, "identity of the cell: a readable name and a hash of what was requested"),
    "variant": ExportColumn(String, "the file system with its options, without its block size"),
    "filesystem": ExportColumn(String, "`ext4`, `xfs`, …"),
    "filesystem_block_size_bytes": ExportColumn(
        Int64, "block size of the file system, read back where none was requested"
    ),
    "block_size_bytes": ExportColumn(Int64, "block size that PostgreSQL was built with"),
    "throttle": ExportColumn(String, "the plan's name of the emulated device; empty without emulation"),
    "latency": ExportColumn(String, "the plan's name of the emulated device with latency; empty without one"),
    "dataset": ExportColumn(String, "identity of what was loaded"),
    "run": ExportColumn(String, "name of the run, e.g. `read-only`"),
    "repetition": ExportColumn(Int64, "from 1; a canary's count is its own"),
    "attempt": ExportColumn(Int64, "which attempt at the visit; empty where there was none"),
    "order": ExportColumn(Int64, "place of the visit in the schedule, from 0"),
    "canary": ExportColumn(Boolean, "true for the visits that come back to show drift"),
    "chosen": ExportColumn(
        Boolean,
        "true where a search chose the visit: its cell was not sampled as the others were (table `search`)",
    ),
    "emulated": ExportColumn(
        Boolean,
        "true where the processors were emulated (QEMU's TCG): the speed is the emulator's. In every table that names a cell",
    ),
    "executor": ExportColumn(
        String,
        "who ran the visit: `local`, `qemu`, `slurm`; `imported` where others made it; empty before it",
    ),
    "kernel": ExportColumn(String, "release of the kernel that the visit ran under"),
    "accelerator": ExportColumn(String, "`kvm` or `tcg` in a guest, else empty"),
    "boot_id": ExportColumn(String, "which boot of the kernel; visits of one boot of a guest share it"),
    "node": ExportColumn(
        String, "the node of a fleet that ran the visit; empty before it, and without a fleet"
    ),
    "started_wall_s": ExportColumn(
        Float64,
        "start of the measured window (of the visit, where there is no window), seconds since 1970 UTC",
    ),
    "outcome": ExportColumn(
        String,
        "`completed`; `failed`, if it began and went wrong; `not_run`, if its visit failed before it or has not come yet",
    ),
    "validity": ExportColumn(
        String, "`valid`, `suspect` or `unknown`, with what became of its visit after the run"
    ),
    "reasons": ExportColumn(
        String,
        "why it failed, did not run, is suspect, or of unknown validity; the failure of its visit after it too; "
        "joined by `; `",
    ),
    "durability_volatile": ExportColumn(
        String,
        "what survives a power cut if the device's cache does not; of the commits that promise least, where a run has "
        "several kinds. Measured, of a device with sectors of 4 KiB; "
        "empty for a run that did not complete",
    ),
    "durability_volatile_512": ExportColumn(
        String, "the same with sectors of 512 bytes; declared classes do not tell them apart"
    ),
    "durability_protected": ExportColumn(String, "the same if the device's cache survives too"),
    "device_sector_bytes": ExportColumn(
        Int64,
        "physical sectors of the study's device, of an image file those of the disk under it: from 4096 on "
        "`durability_volatile` holds on it, else `durability_volatile_512`; empty where nothing tells, which counts as 512",
    ),
    "warmup_s": ExportColumn(Float64, "length of the warm-up, which counts for no figure"),
    "duration_s": ExportColumn(Float64, "length of the measured window"),
}


def run_columns(*names: str) -> dict[str, ExportColumn]:
    """Columns of the runs, for another table."""
    return {name: RUN_COLUMNS[name] for name in names}


# Whether the processors were emulated stands beside every figure, so it is in every table of runs.
KEY_COLUMNS = run_columns("study", "cell", "dataset", "run", "repetition", "attempt", "canary", "emulated")


def run_key(found: Overview, m: Measurement) -> dict[str, Any]:
    """The values of `KEY_COLUMNS`."""
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


FIGURE_COLUMNS: Mapping[str, ExportColumn] = {
    **KEY_COLUMNS,
    "phase": ExportColumn(
        String,
        "`measure` for the whole run; else a part of it, by its workload (docs/STUDY_FORMAT.md, "
        "“What each workload records”)",
    ),
    "item": ExportColumn(
        String,
        "the query, table, test or method that the figure belongs to, by its workload as the phase; empty for the whole",
    ),
    "pass": ExportColumn(Int64, "which pass over the items, from 1"),
    "metric": ExportColumn(String, "name of the metric (docs/method/metrics.md)"),
    "value": ExportColumn(Float64, "the figure in `unit`"),
    "unit": ExportColumn(String, "`1/s`, `ms`, `MiB`, `share` (of one), `1` for counts"),
    "scale": ExportColumn(String, "`ratio`, `proportion`, `count` or `share`; it decides the statistics"),
    "better": ExportColumn(String, "`higher`, `lower` or `neither`"),
    "status": ExportColumn(String, "`measured`, `censored` (only a limit is known) or `absent`"),
    "limit": ExportColumn(Float64, "the limit of a censored figure"),
    "reason": ExportColumn(String, "why a figure is absent"),
    "durability_volatile": ExportColumn(
        String,
        "what survives a power cut of what this figure's commits wrote: of a part of a run its own class where it has one, "
        "`reads only` where it commits nothing; else that of the run",
    ),
    "durability_volatile_512": ExportColumn(String),
    "durability_protected": ExportColumn(String),
}

NODE_COLUMNS: Mapping[str, ExportColumn] = {
    "study": ExportColumn(String, "title of the study"),
    "node": ExportColumn(String, "the node, as Slurm calls it"),
    "hostname": ExportColumn(String, "what it calls itself"),
    "identity": ExportColumn(String, "digest of processors, memory and page size"),
    "architecture": ExportColumn(String, "the machine"),
    "cpu_model": ExportColumn(String),
    "cpu_count": ExportColumn(Int64),
    "memory_bytes": ExportColumn(Int64),
    "page_size_bytes": ExportColumn(Int64),
    "kernel": ExportColumn(String, "what it runs, and in what"),
    "distribution": ExportColumn(String),
    "virtualisation": ExportColumn(String),
    "firmware": ExportColumn(String, "the machine's own"),
    "device_model": ExportColumn(
        String, "the scratch device; empty for an image file, and where it does not tell"
    ),
    "device_firmware": ExportColumn(String),
    "device_size_bytes": ExportColumn(Int64),
    "journal_device_model": ExportColumn(String, "the device of external journals, where there is one"),
    "journal_device_firmware": ExportColumn(String),
    "tools": ExportColumn(String, "versions of programs, settings of the kernel: an object each, as JSON"),
    "tunables": ExportColumn(String),
}

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
