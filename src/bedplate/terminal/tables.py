"""Tables of a study for the terminal, readable at 80 columns, and the same as plain records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import Any, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from bedplate import registry
from bedplate.analysis.comparison import best_first, best_of_classes, selected_overviews
from bedplate.analysis.labels import level_text, short_name
from bedplate.analysis.overview import COUNTED, WHOLE, CellFacts, Overview, rate_text
from bedplate.analysis.part_summaries import RankedSummary, ranked
from bedplate.analysis.run_heads import (
    TRANSACTIONS,
    cells_due,
    has_speeds,
    is_meant,
    makes_transactions,
    run_type,
    view_of,
    writes,
)
from bedplate.analysis.search import (
    Searched,
    chance_words,
    factors_that_matter,
    left_out_words,
    predicted_words,
    progress_words,
    search_of,
    shown_first,
)
from bedplate.analysis.wording import (
    BASIS_MARKS,
    VALUES,
    block_words,
    capital,
    centre_words,
    device_sectors,
    durability_words,
    ends_words,
    figure,
    mark,
    number_words,
    ratio_figure,
    recording_words,
    repetitions_sentence,
    span,
    told_of,
    unit_words,
)
from bedplate.cuts.points import FINDINGS, GOOD, OK, CutCounts
from bedplate.cuts.records import DEVICE_UNIT
from bedplate.cuts.runs import CutRun, bound_words, disagreement, told_apart, upper_share
from bedplate.cuts.verdict import CacheCuts, TriedStates
from bedplate.errors import PlanError
from bedplate.model.cell import RunSpec
from bedplate.model.codec import json_fields, to_json
from bedplate.model.device_cache import CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512, sectors_told
from bedplate.model.figure import Better
from bedplate.model.metrics import METRICS, unknown_metric
from bedplate.model.plan import pruned_lines
from bedplate.model.reason import sentences
from bedplate.near_names import unknown_run
from bedplate.statistics.comparison import EstimateKind
from bedplate.statistics.summary import Summary, SummaryKey
from bedplate.terminal.fitting_table import FittingTable
from bedplate.terminal.table_parts import (
    BAR_CELLS,
    MARKS,
    Notes,
    bar,
    cell_name,
    label_name,
    mark_lines,
    plain_table,
    shortened,
    state_text,
)
from bedplate.units import format_count, format_size

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
        unit = f", {unit}" if (unit := unit_words(METRICS[metric])) else ""
        head = Text(f"{shortened(run)}{where}\n{metric}{unit}")
        if all_emulated:
            head.append("\n(emulated)", style="yellow")
        table.add_column(head, justify="right", min_width=13)
    table.add_column("", no_wrap=True, width=BAR_CELLS)
    table.add_column("p99\nms", justify="right", no_wrap=True, min_width=5, is_there=with_latency)
    table.add_column("n", no_wrap=True, min_width=5)
    last = _drawn(found, runs)
    largest = max(
        (_ranked(found, cell, last, metric).summary.centre or 0.0 for cell in found.cells), default=0.0
    )
    for cell in cells or found.cells.values():
        table.add_row(*_row(found, cell, runs, metric=metric, largest=largest, notes=notes))
    legend = _legend(last, metric, with_latency=with_latency)
    return Group(table, legend, *notes.lines())


def _drawn(found: Overview, runs: Sequence[Run]) -> Run:
    """The run that the bar is of: the last that writes, as cells stand by it."""
    return next((run for run in reversed(runs) if writes(found, run)), runs[-1])


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
        text = Text(f"> {number_words(shown.limit)}" if stopped else figure(summary).mean)
        if shown.limit is not None:
            text.append(notes.marks(_stopped_words(summary)), style="dim")
        text.append(f"\n{span(summary)}", style="dim")
        figures.append(text)
    last = _drawn(found, runs)
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


def _legend(drawn: Run, metric: str, *, with_latency: bool) -> Text:
    words = f"Geometric mean of n repetitions, range below it. Bar{' and p99' if with_latency else ''}: {drawn[1]}."
    return Text(f"{words}\n{MARKS} {metric}: {METRICS[metric].definition}.", style="dim")


CELLS_SHOWN = 15

_COLUMNS = 79

# As long as the longest name of a factor, `preallocation=`: a word is to be read in one piece.
_HEAD_COLUMNS = 14

_GAP = 2

_MARKS = "> stopped at that limit; + some runs were: their median, with those above every time; – no figure."


@dataclass(frozen=True)
class PartEntry:
    """One square: the figure that it is ranked by, which is a limit where it is `over`, and its text."""

    value: float
    over: bool
    text: Text


def part_table(found: Overview, run: tuple[str, str], metric: str) -> RenderableType | None:
    """The means of one metric in every phase and item of a run; None where no part has it."""
    keys = [key for key in found.summaries if (key.dataset, key.run, key.metric) == (*run, metric)]
    parts = dict.fromkeys((key.phase, key.item) for key in keys if (key.phase, key.item) != (WHOLE, ""))
    phases = list(dict.fromkeys(phase for phase, _ in parts))
    rows: dict[str, dict[str, PartEntry]] = {}
    for part in sorted(parts, key=lambda part: (phases.index(part[0]), _order(part[1]))):
        entries = {
            cell: _entry(
                ranked(found, SummaryKey(cell, *run, metric, *part), found.summary(cell, run, metric, *part))
            )
            for cell in found.cells
        }
        rows[_label(found.spec(run), *part)] = {
            cell: entry for cell, entry in entries.items() if entry is not None
        }
    if not rows:
        return None
    known = METRICS[metric]
    several = sum(name == run[1] for _, name in found.runs) > 1
    where = f" ({found.dataset_words(run[0])})" if several else ""
    unit = f", {unit}" if (unit := unit_words(known)) else ""
    title = Text(f"{run[1]}{where}: {metric}{unit}", style="bold")
    words = f"{capital(centre_words(known))}s over the repetitions. {_MARKS}\n{metric}: {known.definition}."
    tables = entry_tables(found, rows, head="part", higher=known.better is Better.HIGHER)
    return Group(Text(), title, *tables, Text(words, style="dim"))


def _label(spec: RunSpec | None, phase: str, item: str) -> str:
    words = view_of(spec.workload).item_words(phase, item) if spec else None
    if words is not None:
        return words
    return f"{phase}: {item}" if item else phase


def _order(item: str) -> int:
    """Queries by their numbers; whatever else stays in the order in which it ran."""
    return int(item) if item.isdecimal() else 0


def _entry(shown: RankedSummary) -> PartEntry | None:
    summary, limit = shown.summary, shown.limit
    if summary.centre is not None:
        mark = "+" if summary.censored else ""
        return PartEntry(summary.centre, False, Text(number_words(summary.centre) + mark))
    return None if limit is None else PartEntry(limit, True, Text(f"> {number_words(limit)}"))


def entry_tables(
    found: Overview, rows: Mapping[str, Mapping[str, PartEntry]], *, head: str, higher: bool = False
) -> list[RenderableType]:
    """Tables of a few cells beside each other, or one of the extremes where there are too many cells.

    The best of each row stands out: the least, or with `higher` the greatest.
    """
    cells = [cell for cell in found.cells if any(cell in entries for entries in rows.values())]
    if len(cells) > CELLS_SHOWN:
        return [_extremes(found, rows, head=head, cells=len(cells))]
    best = max if higher else min
    return [_table(found, rows, beside, head=head, best=best) for beside in _beside(found, rows, cells, head)]


def _beside(
    found: Overview, rows: Mapping[str, Mapping[str, PartEntry]], cells: Sequence[str], head: str
) -> list[list[str]]:
    """The cells of each table: as many beside each other as fit, and about as many in each."""
    first = 1 + max(cell_len(label) for label in (head, *rows)) + _GAP
    widths = {
        cell: _width(found, cell, [row[cell] for row in rows.values() if cell in row]) for cell in cells
    }

    def filled(most: int) -> list[list[str]]:
        tables: list[list[str]] = []
        room = 0
        for cell in cells:
            if not tables or widths[cell] > room or len(tables[-1]) == most:
                tables.append([])
                room = _COLUMNS - first
            tables[-1].append(cell)
            room -= widths[cell]
        return tables

    count = len(filled(len(cells)))
    even = filled(math.ceil(len(cells) / max(count, 1)))
    return even if len(even) == count else filled(len(cells))


def _width(found: Overview, cell: str, entries: Sequence[PartEntry]) -> int:
    facts = found.cells[cell]
    words = (*_head(facts).split(), *block_words(facts.label).split(" · "))
    longest = max(min(cell_len(word), _HEAD_COLUMNS) for word in words)
    return max(longest, *(cell_len(entry.text.plain) for entry in entries)) + _GAP


def _head(facts: CellFacts) -> str:
    """The words of a cell, those that are too long for a column broken behind the name of their factor."""
    words = facts.label.panel.split()
    return " ".join(w.replace("=", "=\n", 1) if cell_len(w) > _HEAD_COLUMNS else w for w in words)


def _table(
    found: Overview,
    rows: Mapping[str, Mapping[str, PartEntry]],
    cells: Sequence[str],
    *,
    head: str,
    best: Callable[[Iterable[float]], float],
) -> RenderableType:
    table = plain_table()
    table.add_column(head, max_width=20)
    for cell in cells:
        facts = found.cells[cell]
        name = Text(f"{_head(facts)}\n")
        name.append(block_words(facts.label).replace(" · ", "\n"), style="dim")
        # As wide as it was taken for when the cells were laid out: rich would give a head on one line more.
        width = _width(found, cell, [row[cell] for row in rows.values() if cell in row]) - _GAP
        table.add_column(name, justify="right", max_width=width)
    for label, entries in rows.items():
        ended = [entry.value for entry in entries.values() if not entry.over]
        standing_out = best(ended) if ended else None
        texts = []
        for cell in cells:
            entry = entries.get(cell)
            text = Text("–") if entry is None else entry.text.copy()
            if entry is not None and not entry.over and entry.value == standing_out:
                text.stylize("bold")
            texts.append(text)
        table.add_row(label, *texts)
    return table


def _extremes(
    found: Overview, rows: Mapping[str, Mapping[str, PartEntry]], *, head: str, cells: int
) -> RenderableType:
    table = plain_table()
    table.add_column(head, max_width=16)
    table.add_column("smallest", justify="right", no_wrap=True)
    table.add_column("in", max_width=18)
    table.add_column(f"median of\n{cells} cells", justify="right", no_wrap=True)
    table.add_column("largest", justify="right", no_wrap=True)
    table.add_column("in", max_width=18)
    for label, entries in rows.items():
        if not entries:
            table.add_row(label, *["–"] * 5)
            continue
        ranked = sorted(entries.items(), key=lambda item: (item[1].over, item[1].value))
        middle = median(math.inf if entry.over else entry.value for entry in entries.values())
        (first, least), (last, most) = ranked[0], ranked[-1]
        table.add_row(
            label,
            least.text,
            _where(found, first),
            number_words(middle) if math.isfinite(middle) else "over",
            most.text,
            _where(found, last),
        )
    return table


def _where(found: Overview, cell: str) -> Text:
    facts = found.cells[cell]
    return Text(f"{facts.label.panel}\n{block_words(facts.label)}")


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
        broken = (
            range_ if len(range_) <= _RANGE_COLUMNS else range_.replace("–", "–\n").replace(VALUES, " ·\n")
        )
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


_WORDS = (
    "Flushes that reached a device per fsync, of an appended and of an overwritten 8 kB block; – none was "
    "counted, or no such device. What is not flushed is lost with a volatile cache."
)


def durability_table(found: Overview) -> RenderableType | None:
    """One row per variant, or per cell where those of a variant differ; None where no visit counted flushes."""
    if not any(cell.flushes for cell in found.cells.values()):
        return None
    table = plain_table()
    table.add_column("cell", min_width=14, max_width=34)
    for device, pattern in COUNTED:
        table.add_column(f"{device}\n{pattern}", justify="right", no_wrap=True)
    table.add_column("after a\npower cut", max_width=12)
    for name, texts in _rows(found):
        table.add_row(name, *map(Text, texts))
    title = Text("Flushes per fsync", style="bold")
    return Group(title, table, Text(_WORDS, style="dim"))


def _rows(found: Overview) -> list[tuple[Text, tuple[str, ...]]]:
    """Names and texts; cells of a variant that say the same are one row under its name alone."""
    variants: dict[str, dict[tuple[str, ...], list[CellFacts]]] = {}
    for cell in found.cells.values():
        texts = (
            *(rate_text(cell.flushes, device, pattern) for device, pattern in COUNTED),
            durability_words(cell.durability).replace(" / ", " /\n").replace("; ", ";\n"),
        )
        variants.setdefault(cell.label.panel, {}).setdefault(texts, []).append(cell)
    rows = []
    for panel, alike in variants.items():
        for texts, cells in alike.items():
            name = Text(panel)
            if len(alike) > 1:
                name.append("".join(f"\n{block_words(cell.label)}" for cell in cells), style="dim")
            rows.append((name, texts))
    return rows


# The rest have no chance worth a line; the page and the export have all.
_SHOWN = 20

_WITHOUT = "-"


def searched_tables(found: Searched) -> list[RenderableType]:
    """The cells of the last proof, then those with the best chances, and a line on those that are left out."""
    ordered = shown_first(found)
    metric = found.metric
    table = plain_table()
    table.add_column("cell")
    for head in ("visits", metric.name, "by the model", "proved", "best"):
        table.add_column(head, justify="right")
    for cell in ordered[:_SHOWN]:
        proved = None if cell.proved is None else figure(cell.proved)
        measured = figure(cell.measured)
        table.add_row(
            label_name(cell.label),
            str(cell.visits),
            f"{measured.mean}{_doubt(cell.measured)}" if cell.measured.n else _WITHOUT,
            "\n".join(predicted_words(cell.predicted)),
            _WITHOUT if proved is None else f"{proved.mean}\n{proved.between('–')}".rstrip(),
            chance_words(cell.best) if cell.predicted is not None else _WITHOUT,
        )
    lines = [
        (
            f"{metric.name} of {' and '.join(found.record.runs)}. By the model: its median, 95 % of its draws below; it holds the cells together by their "
            "factors. Proved: fresh runs that took no part in the choice. Best: the model's chance to be the best of all."
        ),
        *(
            (
                f"{len(ordered) - _SHOWN} more cells have less chance; the page and the table `search` of an export have them.",
            )
            if len(ordered) > _SHOWN
            else ()
        ),
        *left_out_words(found),
    ]
    return [Text("\nThe search", style="bold"), table, Text("\n".join(lines))]


def _doubt(summary: Summary) -> str:
    """Behind the mean of runs that are not believed, the mark that they have in every table."""
    mark = BASIS_MARKS.get(summary.basis or "")
    return f" {mark}" if mark else ""


def searched_document(found: Searched) -> dict[str, Any]:
    """The same for a program, with every cell."""
    return {
        **json_fields(found, "best=record.best dataset=record.dataset runs=record.runs budget_s spent_s"),
        "ending": None if found.end is None else str(found.end.ending),
        "named": [] if found.end is None else [found.id_of(number) for number in found.end.cells],
        "cells": [
            json_fields(
                cell,
                "cell=id label=label.full visits believed measured proved predicted chance_near_best=near "
                "chance_best=best left_out=closed",
            )
            for cell in found.cells
        ],
    }


def modelled_effects(found: Searched) -> list[RenderableType]:
    """`bedplate show STUDY --effects` of a search: what each factor matters by the model."""
    title = Text(found.overview.study.facts.title, style="bold")
    matters = factors_that_matter(found)
    if not matters:
        return [title, *mark_lines(found.overview), Text(progress_words(found))]
    table = plain_table()
    for head in ("factor", "best / worst level"):
        table.add_column(head)
    for head in ("ratio", "95 % of draws"):
        table.add_column(head, justify="right")
    for each in matters:
        better, worse = (level_text(each.factor, level) for level in (each.better, each.worse))
        table.add_row(
            short_name(each.factor),
            f"{better} / {worse}",
            ratio_figure(each.ratio),
            ends_words(EstimateKind.RATIO, each.low, each.high, ratio_figure, "–"),
        )
    metric = METRICS[found.record.best]
    lines = (
        f"{metric.name} of {' and '.join(found.record.runs)}, how many times better the first level is: matched cells, all else alike, by the model of "
        "the search. It holds for the cells that may be named. A factor that was hardly visited has a wide interval, and no share of the variation "
        "is given: the cells were chosen."
    )
    return [title, *mark_lines(found.overview), table, Text(lines)]


def modelled_effects_document(found: Searched) -> dict[str, Any]:
    """The same for a program."""
    return {
        "study": str(found.overview.study.directory),
        "title": found.overview.study.facts.title,
        "marks": list(found.overview.marks),
        "by": "model of the search",
        **json_fields(found.record, "metric=best dataset runs"),
        "factors": [to_json(each) for each in factors_that_matter(found)],
    }


_REFUSED = "refused"

_NOT_MADE = "not made"

# More columns than any table has.
_ENDLESS_PAGES = 1000

_CUT_WORDS = (
    "Cache: a volatile one in a device with sectors of 4 KiB, which it writes whole, one with sectors of 512 bytes, and a "
    "protected one. Drawn: bad cuts of those that chance placed, after which something acknowledged was missing or damaged, and "
    "how many in a hundred that may be (exact 95 % interval of k of n). Beneath is "
    "what was found. Lost: the most acknowledged transactions that one cut took and left the rest whole; – where each that took some broke "
    "the rest. Back after: median time until the engine answered, in memory. After a power cut: the class with that cache."
)

_SOUGHT_WORDS = (
    " Sought: the same of cuts that were placed where something can happen: where metadata of the file system waited that a cut can tear, and "
    "where the order of what the engine does shows. They show what can happen, and not how often."
)

_LATE_WORDS = " With late completions, behind flushes that met writes on their way, too."

_RECUT_WORDS = (
    "What some cuts left was recorded while file system and engine recovered, and that recording was cut again between its flushes. Shown are bad cuts "
    "of all such, and how many in a hundred that may be, at the most. Recoveries: those that were recorded, of those asked for; a cut that was bad itself has none. One "
    "bad cut lowers the class above."
)

_EVERY_WORDS = (
    " At every write: cuts behind each write of recoveries that are short, and of recoveries from second cuts there; they show what can "
    "happen, and not how often."
)

# Of a recording that nothing cut: it has one row, which says why.
_NOT_CUT = "not cut"

_SHORT: Mapping[str, str] = {
    VOLATILE_4K: "4 KiB",
    VOLATILE_512: "512 B",
    PROTECTED: "protected",
    _NOT_CUT: "–",
}

# A cell of the table keeps its lines beside those of its neighbours, so they are broken here and not by the terminal.
_DRAWN_WIDTH, _NARROW_DRAWN_WIDTH, _CLASS_WIDTH = 17, 10, 8


def power_cut_table(found: Overview) -> RenderableType | None:
    """One row per recording; None where no power was cut."""
    runs = [(cell, run) for cell in found.cells.values() for run in cell.cuts]
    if not runs:
        return None
    notes = Notes()
    # Made here, both, as the notes below are in the order of the rows.
    table = _Fitting(
        _cut_table(runs, notes, narrow=False),
        _cut_table(runs, notes, narrow=True),
        _table_of_caches(runs, notes),
    )
    windows = {run.verdict.window_bytes for _, run in runs}
    sizes = ", ".join(format_size(size) for size in sorted(windows))
    sectors = sectors_told(device_sectors(found))
    words = Text(
        f"{_CUT_WORDS}{_sought_words(runs)} At risk are the last {sizes} of writes{_disks(runs)}. Of this machine: {sectors}.",
        style="dim",
    )
    again = _table_of_recoveries(runs)
    return Group(Text("Power cuts", style="bold"), table, words, *notes.lines(), *([again] if again else []))


def power_cut_document(cell: CellFacts) -> list[dict[str, Any]]:
    """The recordings of a cell as JSON: verdict, tallies with their bounds, what was lost, recovery."""
    return [_document(run) for run in cell.cuts]


def _disks(runs: Sequence[tuple[CellFacts, CutRun]]) -> str:
    sizes = sorted({run.verdict.image_bytes for _, run in runs if run.verdict.image_bytes is not None})
    return f", recorded on disks of {', '.join(map(format_size, sizes))}" if sizes else ""


@dataclass(frozen=True)
class _Fitting:
    """The wide table where the terminal holds it with no cell broken, else the narrow one, else a row for each cache.

    A cell has a line for each cache in several columns, which a table of lines would not keep beside each other.
    """

    wide: FittingTable
    narrow: FittingTable
    by_cache: FittingTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        endless = options.update(width=_ENDLESS_PAGES)
        if console.measure(self.wide, options=endless).maximum <= options.max_width:
            yield self.wide
        elif self.narrow.fits(console, options.max_width):
            yield self.narrow
        else:
            yield self.by_cache


def _cut_table(runs: Sequence[tuple[CellFacts, CutRun]], notes: Notes, *, narrow: bool) -> FittingTable:
    """Narrow tallies have the bound on a line of its own, which leaves the cell's settings the room they need."""
    table = plain_table()
    table.add_column("cell", min_width=12, max_width=26)
    table.add_column("cache", no_wrap=True)
    table.add_column("drawn,\nbad", no_wrap=True)
    table.add_column("sought,\nbad", no_wrap=True, is_there=_has_sought(runs))
    table.add_column("after a\npower\ncut", no_wrap=True)
    table.add_column("lost", justify="right", no_wrap=True)
    table.add_column("back\nafter,\ns" if narrow else "back\nafter, s", justify="right", no_wrap=True)
    for cell, run in runs:
        table.add_row(*_cut_row(cell, run, notes, narrow=narrow))
    return table


def _table_of_caches(runs: Sequence[tuple[CellFacts, CutRun]], notes: Notes) -> FittingTable:
    """A row for each recording and cache; what holds of the recording stands in the first of them."""
    table = plain_table()
    heads = ["cell", "cache", "drawn, bad", "sought, bad", "after a power cut", "lost", "back after, s"]
    for head in heads:
        table.add_column(head)
    for cell, run in runs:
        marks = _marks(cell, run, notes)
        name, lost, again = _name(cell, run), _lost(run), _again(run)
        for cache in _caches(run):
            found = run.verdict.cuts(cache)
            first = cache == _caches(run)[0]
            table.add_row(
                name.copy(),
                Text(_SHORT[cache]),
                _tally_in_a_line(found),
                Text(_share(found.sought), style=_style(found.sought)) if found.sought.cuts else Text(),
                _class(run, cache, marks if first else ""),
                lost if first else Text(),
                again if first else Text(),
            )
    return table


def _sought_words(runs: Sequence[tuple[CellFacts, CutRun]]) -> str:
    if not _has_sought(runs):
        return ""
    is_late = any(run.verdict.cuts(cache).is_late for _, run in runs for cache in CACHES)
    return _SOUGHT_WORDS + (_LATE_WORDS if is_late else "")


def _table_of_recoveries(runs: Sequence[tuple[CellFacts, CutRun]]) -> RenderableType | None:
    """A row for each recording of which recoveries were cut again; None without any."""
    asked = [(cell, run, again) for cell, run in runs if (again := run.verdict.recoveries) is not None]
    if not asked:
        return None
    table = plain_table()
    for head in ("cell", "recoveries", "cuts, bad"):
        table.add_column(head)
    has_every = any(run.verdict.exhaustive.cuts for _, run, _ in asked)
    table.add_column("at every\nwrite, bad", is_there=has_every)
    table.add_column("found")
    for cell, run, again in asked:
        tally, every = run.verdict.recut, run.verdict.exhaustive
        without = _NOT_MADE if again.not_made is not None else _REFUSED if again.refused else ""
        bad = Text(without or bound_words(tally), style=_style(tally))
        why = again.refused if again.not_made is None else (again.not_made,)
        found = sentences(why) or [said for each in (tally, every) for said, _ in _found(each, "")]
        every_bad = Text(f"{every.bad:,} of {every.cuts:,}" if every.cuts else "–", style=_style(every))
        recoveries = f"{again.recorded} of {again.asked}"
        table.add_row(_name(cell, run), recoveries, bad, every_bad, "; ".join(found))
    every_words = _EVERY_WORDS if has_every else ""
    return Group(
        Text("\nCuts in recovery", style="bold"), table, Text(f"{_RECUT_WORDS}{every_words}", style="dim")
    )


def _has_sought(runs: Sequence[tuple[CellFacts, CutRun]]) -> bool:
    return any(run.verdict.cuts(cache).sought.cuts for _, run in runs for cache in CACHES)


def _cut_row(cell: CellFacts, run: CutRun, notes: Notes, *, narrow: bool) -> list[Text]:
    columns = [Text(), Text(), Text(), Text()]
    caches = _caches(run)
    marks = _marks(cell, run, notes)
    for cache in caches:
        found = run.verdict.cuts(cache)
        lines = [
            Text(_SHORT[cache]),
            _tally(found, narrow=narrow),
            Text(_share(found.sought), style=_style(found.sought)),
            _class(run, cache, marks if cache == caches[0] else ""),
        ]
        height = max(len(text.split("\n", allow_blank=True)) for text in lines)
        for column, text in zip(columns, lines, strict=True):
            missing = height - len(text.split("\n", allow_blank=True)) + (cache != caches[-1])
            column.append_text(text)
            column.append("\n" * missing)
    return [_name(cell, run), *columns, _lost(run), _again(run)]


def _name(cell: CellFacts, run: CutRun) -> Text:
    name = Text(cell.label.panel)
    aside = [block_words(cell.label), *told_apart(run, cell.cuts)]
    name.append("".join(f"\n{words}" for words in aside), style="dim")
    return name


def _caches(run: CutRun) -> list[str]:
    """Those that power was cut with; never empty."""
    found = [
        cache for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED) if run.verdict.cuts(cache).all_cuts.cuts
    ]
    return found or [_NOT_CUT]


def _lost(run: CutRun) -> Text:
    lost = run.verdict.loss.transactions_max
    return Text("–" if lost is None else f"{lost:,}")


def _again(run: CutRun) -> Text:
    again = run.recovery_s
    return Text(f"{median(again):.2f}" if again else "–")


def _share(tally: CutCounts) -> str:
    return f"{tally.bad} of {tally.cuts}" if tally.cuts else "–"


def _style(tally: CutCounts) -> str:
    if not tally.cuts:
        return "dim"
    return "red" if tally.bad else "green"


def _tally(found: CacheCuts, *, narrow: bool) -> Text:
    width = _NARROW_DRAWN_WIDTH if narrow else _DRAWN_WIDTH
    words = bound_words(found.drawn)
    # Left to the terminal the line would break between the sign and its figure.
    text = Text(words.replace(", <", ",\n<") if narrow else words, style=_style(found.drawn))
    for said, style in _findings(found):
        for line in wrap(said, width):
            text.append(f"\n{line}", style=style)
    return text


def _tally_in_a_line(found: CacheCuts) -> Text:
    text = Text(bound_words(found.drawn), style=_style(found.drawn))
    for said, style in _findings(found):
        text.append("; ").append(said, style=style)
    return text


def _findings(found: CacheCuts) -> Iterator[tuple[str, str]]:
    """What the cuts found that is not `ok`, each with its style."""
    for kind, tally in (
        ("", found.drawn),
        ("sought: ", found.sought),
        ("enumerated: ", found.enumerated),
        ("in recovery: ", found.recut),
        ("at every write of recoveries: ", found.exhaustive),
        ("of other devices: ", found.weaker),
    ):
        yield from _found(tally, kind)


def _found(tally: CutCounts, kind: str) -> Iterator[tuple[str, str]]:
    for name in reversed(FINDINGS):
        if name != OK and tally.of(name):
            yield f"{kind}{tally.of(name)} {name}", "dim" if name in GOOD else ""


def _class(run: CutRun, cache: str, marks: str) -> Text:
    if run.verdict.refused:
        text = Text(_REFUSED, style="yellow")
    elif cache == _NOT_CUT:
        text = Text("–")
    else:
        text = Text("\n".join(wrap(run.words_with(cache), _CLASS_WIDTH)))
    text.append(marks, style="dim")
    return text


def _marks(cell: CellFacts, run: CutRun, notes: Notes) -> str:
    """The marks of the notes that hold for all of a recording."""
    if run.verdict.refused:
        return notes.marks(*(f"refused: {reason}" for reason in run.verdict.refused), before="\n")
    differs = disagreement(run.declared, run.shown_class)
    findings = [str(each) for each in (run.verdict.without_cut, run.verdict.never_synced) if each is not None]
    asides = [*findings, *([differs] if differs else []), *recording_words(run)]
    if not run.verdict.of_the_cell and run.spec.levels.get(DEVICE_UNIT) is None:
        asides.append(
            "the journal in RAM was kept, as if it were on a device of its own: no class of the cell as it is"
        )
    if cell.cuts and run.verdict.journal_lost:
        asides.append("the journal was in memory and gone after each cut")
    return notes.marks(*asides, before="\n")


def _document(run: CutRun) -> dict[str, Any]:
    verdict = run.verdict
    again = run.recovery_s
    return {
        **json_fields(run, "dataset=key.dataset run=spec.name repetition=key.repetition"),
        "volatile_cache": verdict.cuts(VOLATILE_4K).shown,
        "volatile_cache_512": verdict.cuts(VOLATILE_512).shown,
        "protected_cache": verdict.cuts(PROTECTED).shown,
        "pages": None if (ground := run.ground(VOLATILE_4K)) is None else ground.verdict,
        **json_fields(verdict, "refused of_the_cell image_bytes foreign_syncs"),
        "declared": to_json(run.declared, in_words=True),
        "disagreement": disagreement(run.declared, run.shown_class),
        "window_bytes": verdict.window_bytes,
        "volatile": _cache(verdict.cuts(VOLATILE_4K)),
        "volatile_512": _cache(verdict.cuts(VOLATILE_512)),
        "protected": _cache(verdict.cuts(PROTECTED)),
        "waiting": to_json(verdict.waiting),
        "states": None if verdict.states is None else _states(verdict.states),
        "controls": _counts(verdict.controls),
        "recovery": _recovery(run),
        "profiles": {name: _counts(tally) for name, tally in verdict.profiles.items()},
        "loss": to_json(verdict.loss),
        "recovery_s_median": median(again) if again else None,
        "recovery_s_max": max(again, default=None),
    }


def _recovery(run: CutRun) -> dict[str, Any] | None:
    """The cuts in recovery, by cache too; None where none was asked for."""
    recoveries = run.verdict.recoveries
    if recoveries is None:
        return None
    return {
        **_counts(run.verdict.recut),
        "caches": {cache: _counts(run.verdict.cuts(cache).recut) for cache in CACHES},
        "exhaustive": {
            **json_fields(run.verdict.exhaustive, _COUNTS),
            "caches": {cache: json_fields(run.verdict.cuts(cache).exhaustive, _COUNTS) for cache in CACHES},
            **json_fields(
                recoveries, "recoveries=exhausted writes=exhausted_writes third left_out left_out_writes"
            ),
        },
        **json_fields(recoveries, "recoveries_asked=asked recoveries=recorded refused not_made"),
    }


def _cache(found: CacheCuts) -> dict[str, Any]:
    """The drawn cuts, and those that were sought without a share, which they have not."""
    return {**_counts(found.drawn), "idle": found.idle, "sought": json_fields(found.sought, _COUNTS)}


def _states(tried: TriedStates) -> dict[str, Any]:
    return {
        "small_states": tried.small_states,
        "small": json_fields(tried.small, _COUNTS),
        "large": json_fields(tried.large, _COUNTS),
    }


# Of cuts that were sought or tried no share is a share of anything.
_COUNTS = "cuts bad findings"


def _counts(tally: CutCounts) -> dict[str, Any]:
    return {
        **json_fields(tally, "cuts bad"),
        "bad_share_high": upper_share(tally),
        "findings": dict(tally.findings),
    }


class Order(NamedTuple):
    """The metric that cells are sorted by, the best first, and how many of them are shown; all for None."""

    metric: str
    top: int | None = None


def show_tables(
    study_paths: Sequence[Path],
    *,
    workload: str | None = None,
    metric: str | None = None,
    cells: Sequence[str] = (),
    order: Order | None = None,
    all_cells: bool = False,
) -> list[RenderableType]:
    """Every study's tables, each with its footnotes.

    `workload` is the name of a run or a type of workload, `cells` are filters of cells. Without a `metric` each type shows what it is about:
    tps, or TPC-H's load, scores and queries; with one, a table of that metric for each pair of runs and for
    the parts of each run. The last of a study's tables is that of its durability; below it stands what time did
    to the study. Cells stand by what a power cut leaves and then the best first, of many the best of each class unless `all_cells` are
    wanted; with an `order` in that one. PlanError where no study has the run, nothing knows the metric or a filter selects nothing.
    """
    _require_metric(metric, order)
    shown: list[RenderableType] = []
    names: list[str] = []
    for found in selected_overviews(study_paths, cells):
        names += [run for _, run in found.runs]
        runs = _chosen(found, workload)
        if not runs:
            continue
        search = search_of(found)
        ordered = (
            best_of_classes(found, runs, metric, all_cells=all_cells)
            if order is None
            else best_first(found, runs, *order)
        )
        found = ordered  # noqa: PLW2901 -- the same study in another order
        title = Text(found.study.facts.title, style="bold")
        shown.append(Group(title, *mark_lines(found)))
        shown += _metric_tables(found, runs, metric) if metric else _default_tables(found, runs)
        cuts = power_cut_table(found)
        if cuts is not None:
            shown.append(cuts)
        if search is not None:
            shown += searched_tables(search)
        durability = durability_table(found)
        if durability is not None:
            shown.append(durability)
        if found.pruned:
            shown.append(Text("\n".join(("", *pruned_lines(found.study.schedule.pruned)))))
        health = found.health.sentences(runs)
        if health:
            shown.append(Text("\n".join(("", *health))))
    if workload is not None and not shown:
        raise PlanError(unknown_run(workload, names))
    return shown


def show_document(
    study_paths: Sequence[Path],
    *,
    workload: str | None = None,
    metric: str | None = None,
    cells: Sequence[str] = (),
    order: Order | None = None,
) -> dict[str, Any]:
    """The same as JSON: one entry per study, cell and run. Absent figures are null."""
    _require_metric(metric, order)
    return {
        "studies": [
            _study_document(found, workload=workload, metric=metric, order=order)
            for found in selected_overviews(study_paths, cells)
        ]
    }


def _require_metric(metric: str | None, order: Order | None) -> None:
    asked = (metric, None if order is None else order.metric)
    unknown = [name for name in asked if name is not None and name not in METRICS]
    if unknown:
        raise PlanError(*(unknown_metric(name) for name in unknown))


def _chosen(found: Overview, workload: str | None) -> list[Run]:
    """The runs of that name, and those of that type of workload."""
    return [run for run in found.runs if is_meant(found, run, workload)]


def _default_tables(found: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """Those of each workload, in the order of the registry; a run that no visit has begun stands with the transactions."""
    shown: list[RenderableType] = []
    for workload in registry.WORKLOADS:
        own = [run for run in runs if workload == run_type(found, run)]
        if own:
            shown += tables_of(workload)(found, own)
    unknown = [run for run in runs if found.spec(run) is None]
    return [*run_tables(found, unknown, TRANSACTIONS.first), *shown]


def _metric_tables(found: Overview, runs: Sequence[Run], metric: str) -> list[RenderableType]:
    """The whole runs that have the metric, then the parts of each; a metric that nothing has is shown as such."""
    having = {
        (key.dataset, key.run)
        for key in found.summaries
        if key.metric == metric and (key.phase, key.item) == (WHOLE, "")
    }
    parts = [table for run in runs if (table := part_table(found, run, metric)) is not None]
    whole = [run for run in runs if run in having]
    return [*run_tables(found, whole if whole or parts else runs, metric), *parts]


def _study_document(
    found: Overview, *, workload: str | None, metric: str | None, order: Order | None
) -> dict[str, Any]:
    path = str(found.study.directory)
    runs = _chosen(found, workload)
    search = search_of(found)
    if order is not None and runs:
        found = best_first(found, runs, *order)
    return {
        "study": path,
        **json_fields(found, "title=study.facts.title marks selection repetitions"),
        "sentence": repetitions_sentence(
            found.repetitions,
            study=path,
            executor=found.study.facts.executor,
            has_speeds=has_speeds([found]),
        ),
        "health": list(found.health.sentences(runs)),
        "cells": [_cell_document(found, cell, runs, metric) for cell in found.cells.values()],
        "pruned": [{"cell": label.full, "reasons": list(reasons)} for label, reasons in found.pruned],
        **({} if search is None else {"search": searched_document(search)}),
        **{key: said for of in registry.WORKLOADS for key, said in view_of(of).document(found, runs).items()},
    }


def _cell_document(
    found: Overview, cell: CellFacts, runs: Sequence[Run], metric: str | None
) -> Mapping[str, Any]:
    return {
        **json_fields(
            cell,
            "cell=id label=label.full variant=label.panel filesystem_block_size_bytes=label.filesystem_block_bytes "
            "block_size_bytes=label.database_block_bytes durability device_sector_bytes=sector_bytes device_cache=cache",
        ),
        **(
            {"declared": to_json(cell.declared, in_words=True), "power_cuts": power_cut_document(cell)}
            if cell.cuts
            else {}
        ),
        "flushes": [{**to_json(rate), "per_fsync": rate.per_call} for rate in cell.flushes],
        **json_fields(cell, "emulated incomparable identical_to"),
        "runs": [_run_document(found, cell, run, metric) for run in runs],
    }


def _run_document(found: Overview, cell: CellFacts, run: Run, metric: str | None) -> Mapping[str, Any]:
    document: dict[str, Any] = {
        "dataset": run[0],
        "run": run[1],
        "mark": mark(found.of(cell.id, run)),
        "reasons": [each.sentence for each in told_of(found.of(cell.id, run))],
    }
    if makes_transactions(found, run):
        for name in dict.fromkeys((metric or TRANSACTIONS.first, "latency_ms_p99")):
            document[name] = to_json(found.summary(cell.id, run, name))
        return document
    keys = [key for key in found.summaries_of(cell.id, run) if metric in (None, key.metric)]
    whole = [key for key in keys if (key.phase, key.item) == (WHOLE, "")]
    document["metrics"] = {key.metric: to_json(found.summaries[key]) for key in whole}
    document["parts"] = [
        {"phase": key.phase, "item": key.item, "metric": key.metric, **to_json(found.summaries[key])}
        for key in keys
        if key not in whole
    ]
    return document
