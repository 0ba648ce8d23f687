from __future__ import annotations

from collections.abc import Iterator

from polars import Float64, Int64

from bedplate.analysis.overview import Overview
from bedplate.analysis.run_heads import runs_of
from bedplate.export.columns import KEY_COLUMNS, Column, RunRow, Table, WorkloadExport
from bedplate.model.levels import Levels


def rows(overview: Overview) -> Iterator[RunRow[Levels]]:
    for m in overview.measurements:
        yield RunRow(overview, m, overview.study.schedule.datasets[m.dataset].levels)


WALLS: Table[RunRow[Levels]] = Table(
    (
        *KEY_COLUMNS,
        Column("bricks", lambda row: row.record.integer("bricks"), "how many were laid", Int64),
        Column("bricks_per_s", lambda row: row.m.value("operations_per_s"), "how fast", Float64),
    ),
    rows,
)
EXPORT = WorkloadExport({"walls": WALLS}, lambda overview: bool(runs_of(overview, "brick")))
