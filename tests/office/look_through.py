"""Opens a spreadsheet in LibreOffice as a person would, and tells what stands in it. Run by LibreOffice's Python.

`python3 look_through.py PIPE FILE [STEP...]`: PIPE is the one that a LibreOffice listens to; each step is `choose TEXT` for
the cell with the list, or `sort` for the sheet Results by its mean, downwards. One JSON document on standard output: the
names of the sheets, what the list offers, what the chart draws at the end, and after the opening and after each step the
cells of `Look`, each a number, a text, or {"error": code}, and of its second column the width beside the one
that fits its texts.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from pathlib import Path
from typing import Any

import uno

_TRIES = 1200
_CHOSEN = (0, 1)
# What the program gives for a square without a value: the smallest of all doubles.
_NOTHING = 1e-300


def main(pipe: str, file: str, *steps: str) -> None:
    """See the module."""
    desktop = _desktop(pipe)
    hidden = uno.createUnoStruct("com.sun.star.beans.PropertyValue")
    hidden.Name, hidden.Value = "Hidden", True
    document = desktop.loadComponentFromURL(Path(file).as_uri(), "_blank", 0, (hidden,))
    print(json.dumps(_look_through(document, steps)))
    document.close(True)


def _desktop(pipe: str) -> Any:
    """The program's desktop, as soon as it answers."""
    here = uno.getComponentContext()
    resolver = here.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", here)
    pause = threading.Event()
    for _ in range(_TRIES):
        try:
            there = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
        except uno.getClass("com.sun.star.connection.NoConnectException"):
            pause.wait(0.2)
        else:
            return there.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", there)
    sys.exit("soffice did not answer within four minutes")


def _look_through(document: Any, steps: tuple[str, ...]) -> dict[str, Any]:
    look = document.Sheets.getByName("Look")
    seen, widths = [_cells(look)], [_width(look)]
    for step in steps:
        if step == "sort":
            _sort(document.Sheets.getByName("Results"))
        else:
            look.getCellByPosition(*_CHOSEN).String = step.removeprefix("choose ")
        seen.append(_cells(look))
        widths.append(_width(look))
    validation = look.getCellByPosition(*_CHOSEN).Validation
    return {
        "sheets": list(document.Sheets.ElementNames),
        "validation": {
            "kind": validation.Type.value,
            "formula": validation.getFormula1(),
            "shown": validation.ShowList,
        },
        "choices": [row[0] for row in _cells(document.Sheets.getByName("Choices"))[1:]],
        "bars": [_bars(look.Charts.getByIndex(place)) for place in range(look.Charts.Count)],
        "errors": _errors(document),
        "widths": widths,
        "seen": seen,
    }


def _cells(sheet: Any) -> list[list[Any]]:
    """Every cell of a sheet. All at once: to ask the program for each takes it half a millisecond."""
    cursor = sheet.createCursor()
    cursor.gotoEndOfUsedArea(False)
    end = cursor.RangeAddress
    used = sheet.getCellRangeByPosition(0, 0, end.EndColumn, end.EndRow)
    found = [list(row) for row in used.getDataArray()]
    for column, row in _erroneous(sheet):
        found[row][column] = {"error": sheet.getCellByPosition(column, row).getError()}
    return found


def _width(sheet: Any) -> list[int]:
    """Of what survives a power cut: the column's width and the one that fits all its texts, in 1/100 mm."""
    column = sheet.Columns.getByIndex(1)
    width = column.Width
    column.OptimalWidth = True
    found = [width, column.Width]
    column.Width = width
    return found


def _bars(chart: Any) -> dict[str, Any]:
    """What the chart draws now: labels, colours by name, and a row of values for each label; NaN is None."""
    data = chart.EmbeddedObject.Data
    return {
        "labels": list(data.RowDescriptions),
        "colours": list(data.ColumnDescriptions),
        "values": [
            [None if 0 < value < _NOTHING or math.isnan(value) else value for value in row]
            for row in data.Data
        ],
    }


def _errors(document: Any) -> list[str]:
    """The places of all formulas that come to an error, in every sheet."""
    return [
        f"{sheet.Name}: row {row}, column {column}"
        for sheet in document.Sheets
        for column, row in _erroneous(sheet)
    ]


def _erroneous(sheet: Any) -> list[tuple[int, int]]:
    """Column and row of each formula that comes to an error."""
    # Of the kinds of results (com.sun.star.sheet.FormulaResult) 4 is an error.
    return [
        (column, row)
        for one in sheet.queryFormulaCells(4).RangeAddresses
        for column in range(one.StartColumn, one.EndColumn + 1)
        for row in range(one.StartRow, one.EndRow + 1)
    ]


def _sort(sheet: Any) -> None:
    cursor = sheet.createCursor()
    cursor.gotoEndOfUsedArea(False)
    end = cursor.RangeAddress
    heads = [sheet.getCellByPosition(column, 0).String for column in range(end.EndColumn + 1)]
    key = uno.createUnoStruct("com.sun.star.table.TableSortField")
    key.Field, key.IsAscending = heads.index("mean"), False
    descriptor = []
    for name, value in (
        ("SortFields", uno.Any("[]com.sun.star.table.TableSortField", (key,))),
        ("ContainsHeader", True),
    ):
        one = uno.createUnoStruct("com.sun.star.beans.PropertyValue")
        one.Name, one.Value = name, value
        descriptor.append(one)
    sheet.getCellRangeByPosition(0, 0, end.EndColumn, end.EndRow).sort(tuple(descriptor))


if __name__ == "__main__":
    main(*sys.argv[1:])
