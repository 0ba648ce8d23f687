"""Faults of the disk as a table for other tools: every try (docs/EXPORT.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from polars import Boolean, Int64, String

from bedplate.export.columns import KEY_COLUMNS, ExportColumn, ExportTable, WorkloadExport, run_key
from bedplate.workloads.faulty_disk.reading import fault_runs

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview

_COLUMNS: Mapping[str, ExportColumn] = {
    **KEY_COLUMNS,
    "number": ExportColumn(Int64, "the try (docs/STUDY_FORMAT.md, FaultRecord)"),
    "fault": ExportColumn(String, "its name in a plan; `control-none` and `control-lost` are the controls"),
    "seed": ExportColumn(Int64, "draws what clients write, when the fault comes, and what rots"),
    "hits": ExportColumn(Int64, "requests that met the fault, or changes at rest; 0: no result"),
    "seen": ExportColumn(String, "what the clients saw: `went on`, `stopped`, `hung`"),
    "writable": ExportColumn(Boolean, "whether the file system took a write once the fault was over"),
    "came_back": ExportColumn(
        Boolean, "whether the server answered and wrote a checkpoint then; empty of a library"
    ),
    "verdict": ExportColumn(
        String,
        "`went on, whole`, `stopped, whole`, `read-only, whole`, `hung, whole`, `repaired, whole`, `bounded loss`, `lost, detected`, `lost, silent`, `no trace`, `not hit`",
    ),
    "detected": ExportColumn(
        String, "who said that something was wrong: `file system`, `engine`; joined by `; `, empty: nobody"
    ),
    "acknowledged": ExportColumn(
        Int64, "transactions that were acknowledged, and those of them that are missing"
    ),
    "lost_transactions": ExportColumn(Int64),
    "left": ExportColumn(
        String, "what was found once the file system was mounted anew (docs/STUDY_FORMAT.md, PointOutcome)"
    ),
    "hit_at": ExportColumn(
        Int64, "where on the disk the first hit began, and how long it was; bytes; empty of a flush"
    ),
    "hit_bytes": ExportColumn(Int64),
    "hit_journal": ExportColumn(Boolean, "whether that is on the device of an external journal"),
    "kernel_heard": ExportColumn(
        Boolean, "whether the kernel's log could be read, and no message was lost without another complaint"
    ),
    "said": ExportColumn(String, "what engine and kernel said while the disk failed; joined by `; `"),
    "found": ExportColumn(String, "what was found once the file system was mounted anew; joined by `; `"),
    "no_result": ExportColumn(String, "why it is no result; empty where it is one"),
}


def _rows(found: Overview) -> Iterator[dict[str, Any]]:
    """One per try, the controls first."""
    for m, tries in fault_runs(found):
        for record in (*tries.controls, *tries.tried):
            yield {
                **run_key(found, m),
                **{name: getattr(record, name) for name in _COLUMNS if hasattr(record, name)},
                "seen": record.seen.value,
                "verdict": record.verdict.value,
                "detected": "; ".join(each.value for each in record.detected),
                "left": record.left.value,
                "said": "; ".join(record.said),
                "found": "; ".join(record.found),
            }


EXPORT = WorkloadExport(
    {"disk_faults": ExportTable(_COLUMNS, _rows)}, lambda found: any(True for _ in fault_runs(found))
)
