"""Tables of bonnie++ and fio for the terminal: throughput and what it took of the processor, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.text import Text

from bedplate.model.metrics import METRICS
from bedplate.model.raw import BONNIE, FIO, FIO_JOB, is_pg_test_fsync
from bedplate.report.part_tables import part_table
from bedplate.report.parts import WHOLE
from bedplate.report.table_parts import MARKS, Notes, bar, cell_name, plain_table, state_text
from bedplate.report.wording import number, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from bedplate.report.overview import CellFacts, Overview

Run = tuple[str, str]

WORKLOADS = (BONNIE, FIO)
_MIB_PER_S, _OPERATIONS, _CPU = "throughput_mib_per_s", "operations_per_s", "cpu_s_per_gib"
_BAR_CELLS = 7
_RANGE_COLUMNS = 9


class _Column(NamedTuple):
    """A figure of a part of a run; what stands `beneath` is its CPU per GiB, where it has one."""

    head: str
    metric: str
    phase: str = WHOLE
    item: str = ""
    beneath: str | None = None
    with_bar: bool = False


_FILE = (
    _Column("putc\nMiB/s", _MIB_PER_S, "putc", beneath=_CPU, with_bar=True),
    _Column("getc\nMiB/s", _MIB_PER_S, "getc", beneath=_CPU, with_bar=True),
    _Column("write\nMiB/s", _MIB_PER_S, "put_block", beneath=_CPU, with_bar=True),
    _Column("rewrite\nMiB/s", _MIB_PER_S, "rewrite", beneath=_CPU, with_bar=True),
    _Column("read\nMiB/s", _MIB_PER_S, "get_block", beneath=_CPU, with_bar=True),
    _Column("seeks\n1/s", _OPERATIONS, "seeks", with_bar=True),
)
_SMALL = (
    _Column("create\nin order", _OPERATIONS, "seq_create"),
    _Column("stat\nin order", _OPERATIONS, "seq_stat"),
    _Column("delete\nin order", _OPERATIONS, "seq_del"),
    _Column("create\nrandom", _OPERATIONS, "ran_create"),
    _Column("stat\nrandom", _OPERATIONS, "ran_stat"),
    _Column("delete\nrandom", _OPERATIONS, "ran_del"),
)
_JOB = (
    _Column("\nMiB/s", _MIB_PER_S, with_bar=True),
    _Column("CPU\ns/GiB", _CPU, with_bar=True),
    _Column("\n1/s", _OPERATIONS),
    _Column("p99\nms", "latency_ms_p99"),
    _Column("p99 of\na sync", "latency_ms_p99", FIO_JOB, "sync"),
)
_BONNIE_WORDS = (
    "Medians of n repetitions, range below. The last line of a throughput is its CPU seconds per GiB: "
    f"{METRICS[_CPU].definition}. – not measurable, or not run. {MARKS}"
)
_FIO_WORDS = f"Medians of n repetitions, range below. CPU: {METRICS[_CPU].definition}. {MARKS}"


def raw_tables(found: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """Every table of these runs of a study, in the order of the plan."""
    shown: list[RenderableType] = []
    said: dict[str, None] = {}
    for run in runs:
        spec = found.spec(run)
        if spec is not None and is_pg_test_fsync(spec):
            table = part_table(found, run, _OPERATIONS)
            shown += [] if table is None else [table]
        elif spec is not None and spec.workload == BONNIE:
            shown.append(_table(found, run, _FILE, "its file"))
            # `files = 0` leaves the small files out, and with them their table.
            shown += [] if spec.levels.integer("files") == 0 else [_table(found, run, _SMALL, "files, 1/s")]
            said[_BONNIE_WORDS] = None
        else:
            shown.append(_table(found, run, _JOB, "fio"))
            said[_FIO_WORDS] = None
    return [*shown, *(Text(words, style="dim") for words in said)]


def _table(found: Overview, run: Run, asked: Sequence[_Column], words: str) -> RenderableType:
    notes = Notes()
    # What no cell has a value of would be a column of dashes: `sync` of a job that does not sync, say.
    columns = [column for column in asked if _largest(found, run, column) is not None]
    table = plain_table()
    table.add_column("cell", min_width=12, max_width=30)
    for column in columns:
        table.add_column(column.head, justify="right", no_wrap=True)
    table.add_column("n", no_wrap=True, min_width=5)
    for cell in found.cells.values():
        measurements = found.of(cell.id, run)
        if not measurements:
            continue
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
    found: Overview, run: Run, asked: Sequence[_Column], columns: Sequence[_Column]
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


def _text(found: Overview, cell: CellFacts, run: Run, column: _Column) -> Text:
    summary = found.summary(cell.id, run, column.metric, column.phase, column.item)
    text = Text(number(summary.median))
    if column.with_bar:
        text.append(f"\n{bar(summary.median, _largest(found, run, column) or 0.0, cells=_BAR_CELLS)}", "cyan")
    range_ = span(summary)
    if range_:
        broken = range_ if len(range_) <= _RANGE_COLUMNS else range_.replace("–", "–\n")
        text.append(f"\n{broken}", style="dim")
    if column.beneath is not None:
        cpu = found.summary(cell.id, run, column.beneath, column.phase, column.item)
        text.append("" if cpu.median is None else f"\n{number(cpu.median)}", style="yellow")
    return text


def _largest(found: Overview, run: Run, column: _Column) -> float | None:
    medians = [
        found.summary(cell, run, column.metric, column.phase, column.item).median for cell in found.cells
    ]
    return max((value for value in medians if value is not None), default=None)
