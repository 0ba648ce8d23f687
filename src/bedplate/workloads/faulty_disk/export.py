"""Faults of the disk as a table for other tools: every try (docs/EXPORT.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bedplate.cuts.faults import FaultRecord
from bedplate.export.columns import KEY_COLUMNS, RunRow, Table, WorkloadExport, field_columns
from bedplate.workloads.faulty_disk.reading import fault_runs

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview


def _tries(overview: Overview) -> Iterator[RunRow[FaultRecord]]:
    """The controls first."""
    for m, tries in fault_runs(overview):
        for record in (*tries.controls, *tries.tried):
            yield RunRow(overview, m, record)


_FAULTS: Table[RunRow[FaultRecord]] = Table(
    (
        *KEY_COLUMNS,
        *field_columns(
            FaultRecord,
            lambda row: row.record,
            "number fault seed hits seen writable came_back verdict detected acknowledged lost_transactions left "
            "hit_at hit_bytes hit_journal kernel_heard said found no_result false_failures",
        ),
    ),
    _tries,
)

EXPORT = WorkloadExport({"disk_faults": _FAULTS}, lambda overview: any(True for _ in fault_runs(overview)))
