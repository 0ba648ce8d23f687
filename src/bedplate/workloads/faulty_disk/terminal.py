"""Disks that fail in the terminal: a row for each fault of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from bedplate.analysis.overview import Overview
from bedplate.cuts.faults import FaultVerdict
from bedplate.terminal.table_parts import plain_table
from bedplate.workloads.faulty_disk.reading import fault_rows

if TYPE_CHECKING:
    from bedplate.terminal.tables import WorkloadTables

_STYLES = {
    FaultVerdict.LOST_SILENT: "red",
    FaultVerdict.LOST_DETECTED: "yellow",
    FaultVerdict.BOUNDED: "yellow",
    FaultVerdict.NO_TRACE: "dim",
    FaultVerdict.NOT_HIT: "dim",
}
_WORDS = (
    "The disk fails while clients write, each time on a file system of its own; then it works again, and the file system is mounted "
    "anew. Said by: who said that something was wrong, then or afterwards. Lost, silent: something acknowledged is gone, and the engine "
    "works on what is left without a word. Two are no result. Not hit: nothing met the fault. No trace: what the disk lost or changed in silence was "
    "written again, never read, or replaced by a copy."
)


def fault_tables(overview: Overview, runs: Sequence[tuple[str, str]]) -> list[RenderableType]:
    """What came of each fault in each cell."""
    wanted = {dataset for dataset, _ in runs}
    rows = [row for row in fault_rows(overview) if row.dataset in wanted]
    if not rows:
        return []
    table = plain_table()
    for name, width in (("cell", 24), ("the disk", 26), ("what came of it", 22), ("said by", 12)):
        table.add_column(name, max_width=width)
    for row in rows:
        for number, square in enumerate(row.squares):
            style = "yellow" if row.doubts else _STYLES.get(square.worst, "green")
            table.add_row(
                row.cell.label.full if number == 0 else "",
                square.words,
                Text(square.verdicts, style=style),
                square.detected,
            )
    doubts = [Text(f"{row.cell.label.full}: {doubt}", style="yellow") for row in rows for doubt in row.doubts]
    return [Group(Text("Faulty disks", style="bold"), table, *doubts, Text(_WORDS, style="dim"))]


TERMINAL: WorkloadTables = fault_tables
