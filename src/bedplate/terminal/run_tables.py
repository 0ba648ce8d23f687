"""A metric of whole runs in the terminal, and the role `terminal` of workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rich.console import Group
from rich.text import Text

from bedplate import registry
from bedplate.analysis.part_summaries import ranked
from bedplate.analysis.run_heads import TRANSACTIONS, cells_due, makes_transactions
from bedplate.analysis.wording import durability_words, figure, number, span
from bedplate.model.metrics import METRICS
from bedplate.model.reason import sentences
from bedplate.statistics.summary import SummaryKey
from bedplate.terminal.table_parts import (
    BAR_CELLS,
    MARKS,
    Notes,
    bar,
    cell_name,
    plain_table,
    shortened,
    state_text,
)
from bedplate.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.analysis.part_summaries import RankedSummary
    from bedplate.statistics.summary import Summary

Run = tuple[str, str]
# The role `terminal` of a workload: what is shown of its runs where no metric is asked for, and what stands below it.
WorkloadTables: TypeAlias = "Callable[[Overview, Sequence[Run]], list[RenderableType]]"
# Two runs fit beside each other in 80 columns.
_RUNS_IN_A_TABLE = 2


def tables_of(workload: str) -> WorkloadTables:
    """That of a type; PlanError lists the known ones."""
    tables: WorkloadTables = registry.part(workload, "terminal")
    return tables


def run_tables(found: Overview, runs: Sequence[Run], metric: str) -> list[RenderableType]:
    """A metric of whole runs in every cell, two runs beside each other."""
    return [
        _run_table(found, runs[start : start + _RUNS_IN_A_TABLE], metric)
        for start in range(0, len(runs), _RUNS_IN_A_TABLE)
    ]


def transaction_tables(found: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """The tps of runs that make transactions: the role itself of their workloads."""
    return run_tables(found, runs, TRANSACTIONS.first)


def _run_table(found: Overview, runs: Sequence[Run], metric: str) -> RenderableType:
    notes = Notes()
    # Where only some are, the footnote at their names says it.
    cells = cells_due(found, runs)
    all_emulated = any(cell.emulated for cell in cells)
    with_latency = _has_latency(found, runs)
    table = plain_table()
    table.add_column("cell", min_width=14, max_width=36)
    table.add_column("after a\npower cut", max_width=12)
    for dataset, run in runs:
        # Whole, on lines of its own: two datasets may differ in their last number alone.
        several = sum(name == run for _, name in found.runs) > 1
        where = f"\n({found.dataset_words(dataset)})" if several else ""
        unit = METRICS[metric].unit
        head = Text(f"{shortened(run)}{where}\n{metric}" + ("" if unit in {"1", "1/s"} else f", {unit}"))
        if all_emulated:
            head.append("\n(emulated)", style="yellow")
        table.add_column(head, justify="right", min_width=13)
    table.add_column("", no_wrap=True, width=BAR_CELLS)
    if with_latency:
        table.add_column("p99\nms", justify="right", no_wrap=True, min_width=5)
    table.add_column("n", no_wrap=True, min_width=5)
    last = runs[-1]
    largest = max(
        (_ranked(found, cell, last, metric).summary.centre or 0.0 for cell in found.cells), default=0.0
    )
    for cell in cells or found.cells.values():
        row = _row(found, cell, runs, metric=metric, largest=largest, notes=notes)
        table.add_row(*(row if with_latency else [*row[:-2], row[-1]]))
    legend = _legend(runs, metric, with_latency=with_latency)
    return Group(table, legend, *notes.lines())


def _has_latency(found: Overview, runs: Sequence[Run]) -> bool:
    """Queries of a data warehouse are no transactions, nor are stages of a benchmark of files; they have no percentiles."""
    return any(makes_transactions(found, run) for run in runs)


def _row(
    found: Overview, cell: CellFacts, runs: Sequence[Run], *, metric: str, largest: float, notes: Notes
) -> list[Text]:
    survives = Text(
        durability_words(cell.durability)
        .replace(" / ", " /\n")
        .replace("; ", ";\n")
        .replace(" loss", "\nloss")
    )
    if cell.durability is not None and cell.durability.basis == "measured":
        survives.append("\nmeasured", style="dim")
    if cell.durability is not None:
        survives.append(notes.marks(*sentences(cell.durability.reasons)), style="dim")
    figures: list[Text] = []
    for run in runs:
        # A run that was stopped somewhere took longer than its sum: that is no time, and no dash either.
        shown = _ranked(found, cell.id, run, metric)
        summary = shown.summary
        stopped = summary.centre is None and shown.limit is not None
        text = Text(f"> {number(shown.limit)}" if stopped else figure(summary).mean)
        if shown.limit is not None:
            text.append(notes.marks(_stopped_words(summary)), style="dim")
        text.append(f"\n{span(summary)}", style="dim")
        figures.append(text)
    last = runs[-1]
    latencies = found.summary(cell.id, last, "latency_ms_p99")
    counts = [found.summary(cell.id, run, metric).n for run in runs]
    name = cell_name(found, cell, notes)
    return [
        name,
        survives,
        *figures,
        Text(bar(_ranked(found, cell.id, last, metric).summary.centre, largest), style="cyan"),
        Text(figure(latencies).mean),
        state_text(counts, [m for run in runs for m in found.of(cell.id, run)], notes),
    ]


def _ranked(found: Overview, cell: str, run: Run, metric: str) -> RankedSummary:
    return ranked(found, SummaryKey(cell, *run, metric), found.summary(cell, run, metric))


def _stopped_words(summary: Summary) -> str:
    """Of a figure of which some runs only know a limit: no mean stands for them."""
    of = f"{summary.censored} of {format_count(summary.n + summary.censored, 'run')}"
    verb = "was" if summary.censored == 1 else "were"
    return f"{of} {verb} stopped at a limit, {'so that this is the median' if summary.centre is not None else 'and so would the median be'}"


def _legend(runs: Sequence[Run], metric: str, *, with_latency: bool) -> Text:
    words = f"Geometric mean of n repetitions, range below it. Bar{' and p99' if with_latency else ''}: {runs[-1][1]}."
    return Text(f"{words}\n{MARKS} {metric}: {METRICS[metric].definition}.", style="dim")
