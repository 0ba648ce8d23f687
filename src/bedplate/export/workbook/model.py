"""A workbook as plain records: sheets, columns, cells, formulas, one drop-down list, one chart.

It is what both writers (`workbook_xlsx`, `workbook_ods`) are given, so that the two files say the same. Rows and
columns count from 0. A cell is a number, a text, None for an empty one, or a `Formula`; whatever text comes
from outside is text in both files, also where it begins as a formula does.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# What stands between the arguments of a formula's functions; a formula's own texts must not contain it.
SEPARATOR = ";"
# A cell of Excel takes 32,767 characters. Nobody reads a tenth of it in a table.
TEXT_MAX = 2000
NAME_MAX = 80
# Both limits are those of Excel and of LibreOffice; older releases of the latter have 1,024 columns.
ROWS_MAX = 1_048_576
COLUMNS_MAX = 1024
_SHEET_NAME_MAX = 31
_TRIMMED = "' "
# Excel keeps this name for itself, in any spelling.
_RESERVED = ("history",)
_NOT_IN_SHEET_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
# What XML 1.0 has no way to write; half of a surrogate pair has no encoding either.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Area:
    """Cells of one column of a sheet, from `row` to `last_row`; one cell where that is None."""

    sheet: str
    column: int
    row: int
    last_row: int | None = None


Plain: TypeAlias = str | int | float | None


@dataclass(frozen=True)
class Formula:
    """Text in the words that both programs share, areas in between; `value` is what it comes to as written.

    Arguments are separated by `SEPARATOR`. A program that does not calculate shows `value`.
    """

    parts: tuple[str | Area, ...]
    value: Plain = None


Value: TypeAlias = Plain | Formula


@dataclass(frozen=True)
class Column:
    """The head of a column and its width in characters; a `hidden` one is there for formulas."""

    head: Value
    width: float = 12
    hidden: bool = False


@dataclass(frozen=True)
class DropDown:
    """The cell that takes one of the texts of `source`; in the lead of its sheet."""

    row: int
    column: int
    source: Area


@dataclass(frozen=True)
class ChartSeries:
    """One colour of a chart: its `name` and its `values` are cells; `colour` is `#rrggbb`."""

    name: Area
    values: Area
    colour: str


@dataclass(frozen=True)
class BarChart:
    """Horizontal bars, one for each of `labels`, the first on top; a label has a value in one series only."""

    title: str
    labels: Area
    series: tuple[ChartSeries, ...]


@dataclass(frozen=True)
class Sheet:
    """Lead lines, the heads of the columns, and the rows below them.

    Lead and heads stay in sight while the rows scroll. The first lead line is the sheet's title. `chart` stands
    to the right of the rows. `filtered` puts a filter at every head.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    lead: tuple[tuple[Value, ...], ...] = ()
    filtered: bool = False
    choice: DropDown | None = None
    chart: BarChart | None = None

    @property
    def head_row(self) -> int:
        """The row of the heads."""
        return len(self.lead)

    @property
    def last_row(self) -> int:
        """The last row with anything in it."""
        return self.head_row + len(self.rows)


@dataclass(frozen=True)
class Workbook:
    """All sheets, the first one in sight. `created` is ISO 8601, UTC: that of the study."""

    title: str
    created: str
    sheets: tuple[Sheet, ...]


def cell_text(found: str, *, longest: int = TEXT_MAX) -> str:
    """What a cell may hold: `\ufffd` for what no XML can say, and a visible cut behind `longest` characters."""
    known = _NOT_IN_XML.sub("\ufffd", found)
    if len(known) <= longest:
        return known
    return f"{known[:longest]}… ({len(known):,} characters)"


def short_name(found: str) -> str:
    """A text for one line: runs of blanks and line ends are one blank, and long names are cut early."""
    return cell_text(" ".join(found.split()), longest=NAME_MAX)


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """The names, those that came before with a number behind them."""
    found: dict[str, None] = {}
    for wanted in names:
        number, tried = 1, wanted
        while tried in found:
            number += 1
            tried = f"{wanted} ({number})"
        found[tried] = None
    return tuple(found)


def cell_value(found: object) -> Plain:
    """Anything as a cell: yes and no for booleans, an empty cell for None and for what is no finite number."""
    if found is None:
        return None
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, float) and not math.isfinite(found):
        return None
    # A spreadsheet's numbers are doubles: a longer integer is exact as text only.
    if isinstance(found, int | float) and abs(found) <= 2**53:
        return found
    return found if isinstance(found, float) else (cell_text(str(found)) or None)


def cells(*found: object) -> tuple[Plain, ...]:
    """A row of cells of anything."""
    return tuple(cell_value(one) for one in found)


def looks_like_formula(found: str) -> bool:
    """Whether a program may take the text for a formula when it is edited or read from CSV."""
    return found.startswith(_FORMULA_BEGINNINGS)


def sheet_names(wanted: Sequence[str], taken: Sequence[str] = ()) -> tuple[str, ...]:
    r"""Names of sheets that both programs take, in the order of `wanted`; none is among `taken`.

    At most 31 characters, without `[]:*?/\`, no apostrophe at an end, unique whatever the case.
    """
    found: list[str] = []
    used = {*_RESERVED, *(one.casefold() for one in taken)}
    for one in wanted:
        plain = _NOT_IN_SHEET_NAMES.sub("-", _NOT_IN_XML.sub("-", " ".join(one.split())))
        number, tried = 1, _cut(plain, "")
        while tried.casefold() in used:
            number += 1
            tried = _cut(plain, f" ({number})")
        used.add(tried.casefold())
        found.append(tried)
    return tuple(found)


def _cut(plain: str, end: str) -> str:
    # UTF-16 units, as Excel counts: a character beyond the basic plane is two.
    room = _SHEET_NAME_MAX - len(end)
    kept = plain.strip(_TRIMMED)
    if _units(kept) > room:
        while _units(kept) > room - 1:
            kept = kept[:-1]
        kept = f"{kept.rstrip(_TRIMMED)}…"
    return f"{kept or 'sheet'}{end}"


def _units(found: str) -> int:
    return len(found.encode("utf-16-le", errors="surrogatepass")) // 2
