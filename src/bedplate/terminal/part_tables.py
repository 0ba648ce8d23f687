"""Tables of what a run timed or counted apart, a row for each phase or item and a column for each cell.

Columns are dear on a terminal. Cells beyond `CELLS_SHOWN` are summed up instead: the smallest and the largest
figure of each row, and where they were found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from bedplate.analysis.part_summaries import ranked
from bedplate.analysis.parts import WHOLE
from bedplate.analysis.wording import block_words, capital, centre_words, number
from bedplate.analysis.workload_view import view_of
from bedplate.model.figure import Better
from bedplate.model.metrics import METRICS
from bedplate.statistics.summary import SummaryKey
from bedplate.terminal.table_parts import plain_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import RenderableType

    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.analysis.part_summaries import RankedSummary
    from bedplate.model.cell import RunSpec

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
    title = Text(f"{run[1]}{where}: {metric}, {known.unit}", style="bold")
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
        return PartEntry(summary.centre, False, Text(number(summary.centre) + mark))
    return None if limit is None else PartEntry(limit, True, Text(f"> {number(limit)}"))


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
            number(middle) if math.isfinite(middle) else "over",
            most.text,
            _where(found, last),
        )
    return table


def _where(found: Overview, cell: str) -> Text:
    facts = found.cells[cell]
    return Text(f"{facts.label.panel}\n{block_words(facts.label)}")
