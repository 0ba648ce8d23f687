"""Tables of tools on the file system itself: throughput and what it took of the processor, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.text import Text

from bedplate.analysis.parts import WHOLE
from bedplate.analysis.run_heads import cells_due
from bedplate.analysis.wording import figure, span
from bedplate.model.metrics import METRICS
from bedplate.terminal.table_parts import Notes, bar, cell_name, plain_table, state_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from bedplate.analysis.overview import CellFacts, Overview

Run = tuple[str, str]

MIB_PER_S, OPERATIONS, CPU = "throughput_mib_per_s", "operations_per_s", "cpu_s_per_gib"
_BAR_CELLS = 7
_RANGE_COLUMNS = 9


class ToolColumn(NamedTuple):
    """A figure of a part of a run; what stands `beneath` is its CPU per GiB, where it has one."""

    head: str
    metric: str
    phase: str = WHOLE
    item: str = ""
    beneath: str | None = None
    with_bar: bool = False


def tool_table(found: Overview, run: Run, asked: Sequence[ToolColumn], words: str) -> RenderableType:
    """A run's figures in every cell, with a title that ends in `words`; a column that no cell has a value of is left out."""
    notes = Notes()
    # What no cell has a value of would be a column of dashes: `sync` of a job that does not sync, say.
    columns = [column for column in asked if _largest(found, run, column) is not None]
    table = plain_table()
    table.add_column("cell", min_width=12, max_width=30)
    for column in columns:
        table.add_column(column.head, justify="right", no_wrap=True)
    table.add_column("n", no_wrap=True, min_width=5)
    for cell in cells_due(found, [run]):
        measurements = found.of(cell.id, run)
        texts = [_text(found, cell, run, column) for column in columns]
        counts = [
            found.summary(cell.id, run, column.metric, column.phase, column.item).n for column in columns
        ]
        state = state_text([max(counts, default=0)], measurements, notes)
        table.add_row(cell_name(found, cell, notes), *texts, state)
    several = sum(name == run[1] for _, name in found.runs) > 1
    title = Text(f"{run[1]}{f' ({found.dataset_words(run[0])})' if several else ''}: {words}", style="bold")
    return Group(Text(), title, table, *notes.lines(), *_not_measurable(found, run, asked, columns))


def _not_measurable(
    found: Overview, run: Run, asked: Sequence[ToolColumn], columns: Sequence[ToolColumn]
) -> list[Text]:
    """A line for the stages that ran and have no figure in any cell; what was not run is not told."""
    heads = [
        column.head.replace("\n", " ").removesuffix(f" {METRICS[column.metric].unit}")
        for column in asked
        if column not in columns
        and column.phase != WHOLE
        and not column.item
        and any(found.summary(cell, run, column.metric, column.phase).absent for cell in found.cells)
    ]
    return [Text(f"In no cell measurable: {', '.join(heads)}.", style="dim")] if heads else []


def _text(found: Overview, cell: CellFacts, run: Run, column: ToolColumn) -> Text:
    summary = found.summary(cell.id, run, column.metric, column.phase, column.item)
    text = Text(figure(summary).mean)
    if column.with_bar:
        text.append(f"\n{bar(summary.centre, _largest(found, run, column) or 0.0, cells=_BAR_CELLS)}", "cyan")
    range_ = span(summary)
    if range_:
        broken = range_ if len(range_) <= _RANGE_COLUMNS else range_.replace("–", "–\n")
        text.append(f"\n{broken}", style="dim")
    if column.beneath is not None:
        cpu = found.summary(cell.id, run, column.beneath, column.phase, column.item)
        text.append("" if cpu.centre is None else f"\n{figure(cpu).mean}", style="yellow")
    return text


def _largest(found: Overview, run: Run, column: ToolColumn) -> float | None:
    figures = [
        found.summary(cell, run, column.metric, column.phase, column.item).centre for cell in found.cells
    ]
    return max((value for value in figures if value is not None), default=None)
