"""Tables that break no number, however narrow the terminal is.

Rich makes the columns of a table that is too wide narrower, all of them alike, and then breaks a word wherever the
column ends: `100,300–111,0` and `00` below it. Here a column is never narrower than its longest number. If that does
not fit, bars go first; then each row becomes a few lines of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich import measure
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    Justify: TypeAlias = Literal["left", "right"]

# What stands together: 1,234.5 and 4.2e+06, with its sign; a range may break behind its dash.
_NUMBER = re.compile(r"[+\-<>]?\d[\d.,]*(?:e[+-]?\d+)?%?")

# What a line may end behind: a word, with the sign before its number and the unit behind it.
_WORD = re.compile(r"(?:[<>] )?\S+(?: %)?")

# What a long word is folded behind: full_page_writes= and off.
_SEAMS = "=_/"

# A figure and its range, each on a line of its own.
_FIGURE_BELOW = re.compile(r"[\d%]\n[\d<>]")

# A name in fewer columns than that is not read.
_NAME_COLUMNS = 8

_INDENT = 2

_ENDLESS = 10_000


@dataclass(frozen=True)
class _Column:
    """A column as it is asked for; one of a fixed width and without a head is a bar, the picture of another column."""

    head: Text
    justify: Justify
    no_wrap: bool
    min_width: int | None
    max_width: int | None
    width: int | None
    cells: list[Text] = field(default_factory=list)

    @property
    def is_bar(self) -> bool:
        return self.width is not None and not self.head.plain

    def need(self, console: Console, *, whole_words: bool) -> tuple[int, int]:
        """The narrowest width that breaks nothing, and the widest that is of use."""
        if self.width is not None:
            return self.width, self.width
        texts = [self.head, *self.cells]
        endless = console.options.update(width=_ENDLESS)
        found = [measure.Measurement.get(console, endless, text) for text in texts]
        widest = max(each.maximum for each in found)
        if self.no_wrap:
            return widest, widest
        narrowest = max(each.minimum for each in found)
        asked = min(self.max_width or widest, widest)
        if not whole_words:
            # A word may be longer than a column is meant to be. It is folded then, and its numbers are not.
            numbers = (len(number) for text in texts for number in _NUMBER.findall(text.plain))
            narrowest = max(max(numbers, default=0), min(narrowest, self.min_width or _NAME_COLUMNS))
        low = max(narrowest, min(self.min_width or 0, asked))
        return low, max(low, asked)


class FittingTable:
    """A table as wide as it needs to be, else without bars, else as lines below the first cell of each row."""

    def __init__(self) -> None:
        self._columns: list[_Column] = []
        self._left_out: list[int] = []

    def add_column(
        self,
        head: Text | str,
        *,
        justify: Justify = "left",
        no_wrap: bool = False,
        min_width: int | None = None,
        max_width: int | None = None,
        width: int | None = None,
        is_there: bool = True,
    ) -> None:
        """One more column, before the first row. What may wrap is folded where no number is.

        Of a column that is not there the cells of every row are left out.
        """
        if not is_there:
            self._left_out.append(len(self._columns) + len(self._left_out))
            return
        self._columns.append(_Column(_as_text(head), justify, no_wrap, min_width, max_width, width))

    def add_row(self, *cells: Text | str) -> None:
        """One more row, with a cell for each column, those that are not there too."""
        there = [cell for at, cell in enumerate(cells) if at not in self._left_out]
        for column, cell in zip(self._columns, there, strict=True):
            column.cells.append(_as_text(cell))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> measure.Measurement:
        """From the width at which no word is broken to the one that it can use."""
        del options
        needs = [column.need(console, whole_words=True) for column in self._columns]
        low, high = (sum(ends) + _frame_columns(len(needs)) for ends in zip(*needs, strict=True))
        return measure.Measurement(low, high)

    def fits(self, console: Console, width: int) -> bool:
        """Whether it is a table at this width, and not lines below the first cell of each row."""
        columns = [column for column in self._columns if not column.is_bar]
        return _widths(console, columns, width, whole_words=False) is not None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The first layout that fits."""
        for columns in (self._columns, [column for column in self._columns if not column.is_bar]):
            for whole_words in (True, False):
                widths = _widths(console, columns, options.max_width, whole_words=whole_words)
                if widths is not None:
                    yield _laid_out(columns, widths)
                    return
        yield from _as_lines(columns, options.max_width)


def _frame_columns(columns: int) -> int:
    """What the table takes beside its columns: the two edges, a space between columns and one behind each."""
    return 2 + (columns - 1) + columns


def _widths(
    console: Console, columns: Sequence[_Column], available: int, *, whole_words: bool
) -> list[int] | None:
    """A width for each column; None where they do not fit."""
    needs = [column.need(console, whole_words=whole_words) for column in columns]
    room = available - _frame_columns(len(needs))
    if sum(low for low, _ in needs) > room:
        return None
    widths = [high for _, high in needs]
    while sum(widths) > room:
        # The widest column has most lines' worth of words to move below.
        place = max(range(len(needs)), key=lambda at: (widths[at] > needs[at][0], widths[at]))
        widths[place] -= 1
    return widths


def _laid_out(columns: Sequence[_Column], widths: Sequence[int]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), expand=False)
    for column, width in zip(columns, widths, strict=True):
        head = unbroken(column.head, width)
        table.add_column(head, justify=column.justify, no_wrap=column.no_wrap, overflow="fold", width=width)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(unbroken(cell, width) for cell, width in zip(cells, widths, strict=True)))
    return table


def _as_lines(columns: Sequence[_Column], available: int) -> Iterator[RenderableType]:
    """Each row as its first cell and, for each other column, a line of head and value."""
    for first, *cells in zip(*(column.cells for column in columns), strict=True):
        yield Text()
        name = first.copy()
        name.stylize("bold")
        yield unbroken(name, available)
        for column, cell in zip(columns[1:], cells, strict=True):
            if cell.plain.strip():
                head = _in_one_line(column.head)
                line = Text.assemble(head, ": ", _in_one_line(cell)) if head.plain else _in_one_line(cell)
                yield Padding(unbroken(line, available - _INDENT), (0, 0, 0, _INDENT))
    yield Text()


def unbroken(text: Text, width: int) -> Text:
    """The text with line ends where it is wider than this: between words, and within a word in no number.

    What belongs to a number, the sign before it and the `%` behind it, stays on its line.
    """
    breaks: list[int] = []
    for line in re.finditer(r"[^\n]+", text.plain):
        start, end = line.start(), line.start()
        for word in _WORD.finditer(line.group()):
            at, stop = line.start() + word.start(), line.start() + word.end()
            if cell_len(text.plain[start:stop]) > width and end > start:
                breaks.append(at)
                start = at
            while cell_len(text.plain[start:stop]) > width:
                place = _break(text.plain, start, min(start + max(width, 1), stop))
                if place == stop:
                    break
                breaks.append(place)
                start = place
            end = stop
    return Text("\n").join(text.divide(breaks)) if breaks else text


def _break(plain: str, start: int, end: int) -> int:
    """The last place at or before the end that is in no number, behind a seam of the word where it has one.

    The end itself where a number is as wide as that.
    """
    inside = next(
        (found for found in _NUMBER.finditer(plain, start) if found.start() < end < found.end()), None
    )
    if inside is not None:
        return end if inside.start() <= start else inside.start()
    seam = max(plain.rfind(mark, start, end) for mark in _SEAMS) + 1
    return seam if seam - start > (end - start) // 2 else end


def _as_text(cell: Text | str) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _in_one_line(text: Text) -> Text:
    """The lines of a cell beside each other, a range behind its figure in parentheses."""
    found = Text()
    for line in text.split("\n"):
        if not line.plain.strip():
            continue
        if _FIGURE_BELOW.search(f"{found.plain[-1:]}\n{line.plain[:1]}"):
            found = Text.assemble(found, " (", line, ")")
        else:
            found = Text.assemble(found, " " if found.plain else "", line)
    return found
