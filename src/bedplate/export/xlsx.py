"""A workbook as XLSX, by xlsxwriter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from bedplate.analysis.overview import Overview
from bedplate.errors import PlanError
from bedplate.export.workbook import (
    Area,
    BarChart,
    Formula,
    Sheet,
    Value,
    Workbook,
    looks_like_formula,
    workbook_of,
)

_NUMBER = "[>=1000]#,##0;[>=0.1]0.000;0.0######"

_FORMATS = {
    "plain": {},
    "number": {"num_format": _NUMBER},
    # Text that stays text when its cell is edited.
    "quoted": {"quote_prefix": True},
    "title": {"bold": True, "font_size": 14},
    "head": {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"},
    "chosen": {"bold": True, "bg_color": "#fff3c4", "border": 1},
}

_BAR_PIXELS = 22

# Of a sheet, in Excel and in LibreOffice.
ROWS_MAX = 1_048_576


def write_spreadsheet(found: Overview, output: Path) -> None:
    """Write the workbook of a study to `output`, whole or not at all; as XLSX.

    PlanError where a sheet would have more rows than a spreadsheet takes.
    """
    book = workbook_of(found)
    for sheet in book.sheets:
        if sheet.last_row >= ROWS_MAX:
            raise PlanError(
                f"the sheet {sheet.name} would have {sheet.last_row + 1:,} rows; a spreadsheet takes {ROWS_MAX:,}. "
                "Export to .parquet or .csv instead"
            )
    temporary = output.with_name(f".{output.name}.part")
    # Others may have put a link there.
    temporary.unlink(missing_ok=True)
    _write_book(book, temporary)
    temporary.replace(output)


def _write_book(book: Workbook, path: Path) -> None:
    """Write the workbook to `path`; the same workbook makes the same bytes."""
    # The name is given as a text: xlsxwriter asks for nothing else of a path.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(str(path), options) as made:
        made.set_properties({"title": book.title, "created": _time(book.created)})
        formats = {name: made.add_format(found) for name, found in _FORMATS.items()}
        for sheet in book.sheets:
            _write_sheet(made, _Page(made.add_worksheet(sheet.name), formats), sheet)


def _time(created: str) -> datetime:
    """The study's time without its zone, which XLSX takes for UTC; the epoch of ZIP for one that is none."""
    try:
        return datetime.fromisoformat(created).astimezone(UTC).replace(tzinfo=None)
    except ValueError:
        return datetime(1980, 1, 1)  # noqa: DTZ001 -- the format has no zone


@dataclass(frozen=True)
class _Page:
    """A worksheet with the formats that its cells may have."""

    sheet: Worksheet
    formats: Mapping[str, Format]

    def write(self, row: int, column: int, value: Value, style: str | None = None) -> None:
        """One cell; without a `style` the one that its value asks for."""
        if value is None:
            return
        if isinstance(value, Formula):
            shown = "" if value.value is None else value.value
            named = style or ("plain" if isinstance(shown, int) else "number")
            self.sheet.write_formula(row, column, _formula(value), self.formats[named], shown)
        elif isinstance(value, str):
            named = style or ("quoted" if looks_like_formula(value) else "plain")
            self.sheet.write_string(row, column, value, self.formats[named])
        else:
            named = style or ("plain" if isinstance(value, int) else "number")
            self.sheet.write_number(row, column, value, self.formats[named])


def _write_sheet(made: xlsxwriter.Workbook, page: _Page, sheet: Sheet) -> None:
    to = page.sheet
    for column, found in enumerate(sheet.columns):
        to.set_column(column, column, found.width, None, {"hidden": found.hidden})
    for row, line in enumerate(sheet.lead):
        for column, value in enumerate(line):
            page.write(row, column, value, "title" if row == column == 0 else None)
    for column, found in enumerate(sheet.columns):
        page.write(sheet.head_row, column, found.head, "head")
    for row, line in enumerate(sheet.rows, start=sheet.head_row + 1):
        for column, value in enumerate(line):
            page.write(row, column, value)
    to.freeze_panes(sheet.head_row + 1, 1)
    to.set_landscape()
    to.set_paper(9)
    to.fit_to_pages(1, 0)
    to.repeat_rows(sheet.head_row)
    if sheet.filtered and sheet.rows:
        to.autofilter(sheet.head_row, 0, sheet.last_row, len(sheet.columns) - 1)
    if sheet.choice is not None:
        row, column = sheet.choice.row, sheet.choice.column
        page.write(row, column, sheet.lead[row][column], "chosen")
        to.data_validation(
            row,
            column,
            row,
            column,
            {
                "validate": "list",
                "source": f"={_address(sheet.choice.source)}",
                "ignore_blank": False,
                "error_title": "Not in the list",
                "error_message": "Take one of the list.",
            },
        )
    if sheet.chart is not None:
        chart = _chart(made, sheet.chart, len(sheet.rows))
        to.insert_chart(sheet.head_row, len(sheet.columns), chart, {"x_offset": 15, "y_offset": 5})


def _formula(formula: Formula) -> str:
    parts = (_address(part) if isinstance(part, Area) else part for part in formula.parts)
    return f"={''.join(parts)}"


def _address(area: Area) -> str:
    """`'Results'!$A$2:$A$9`; every address is absolute."""
    name = area.sheet.replace("'", "''")
    column = xlsxwriter.utility.xl_col_to_name(area.column)
    last = "" if area.last_row is None else f":${column}${area.last_row + 1}"
    return f"'{name}'!${column}${area.row + 1}{last}"


def _chart(made: xlsxwriter.Workbook, found: BarChart, bars: int) -> Any:
    chart = made.add_chart({"type": "bar", "subtype": "clustered"})
    for series in found.series:
        chart.add_series(
            {
                "name": f"={_address(series.name)}",
                "categories": f"={_address(found.labels)}",
                "values": f"={_address(series.values)}",
                "fill": {"color": series.colour},
                "gap": 40,
                # A label has a value in one series only, so the bars of all stand at the same place.
                "overlap": 100,
            }
        )
    chart.set_title({"name": found.title, "name_font": {"size": 11}})
    chart.set_y_axis({"reverse": True, "interval_unit": 1, "num_font": {"size": 8}})
    chart.set_x_axis({"num_format": "General", "num_font": {"size": 8}, "label_position": "high"})
    chart.set_legend({"position": "top"})
    chart.show_hidden_data()
    chart.set_size({"width": 820, "height": 130 + _BAR_PIXELS * bars})
    return chart
