"""A column for every factor of a study's plan: named by the plan's key, with the plan's value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from bedplate.analysis.factors import plan_levels
from bedplate.model.levels import as_in_a_plan
from bedplate.model.workload import model_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.analysis.overview import Overview
    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.levels import Scalar

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
