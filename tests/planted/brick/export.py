from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polars import Float64, Int64

from bedplate.analysis.overview import Overview
from bedplate.analysis.run_heads import runs_of
from bedplate.export.columns import KEY_COLUMNS, ExportColumn, ExportTable, WorkloadExport, run_key


def rows(found: Overview) -> Iterator[dict[str, Any]]:
    for m in found.measurements:
        levels = found.study.schedule.datasets[m.dataset].levels
        laid = {"bricks": levels.integer("bricks"), "bricks_per_s": m.value("operations_per_s")}
        yield {**run_key(found, m), **laid}


COLUMNS = {
    **KEY_COLUMNS,
    "bricks": ExportColumn(Int64, "how many were laid"),
    "bricks_per_s": ExportColumn(Float64, "how fast"),
}
EXPORT = WorkloadExport({"walls": ExportTable(COLUMNS, rows)}, lambda found: bool(runs_of(found, "brick")))
