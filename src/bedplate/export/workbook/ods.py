"""A workbook as ODS (OpenDocument 1.3, parts 2 to 4), written as the XML that it is.

By the standard library, since no package would do: odfpy has no wheel, and the launcher installs nothing else;
odfdo knows neither lists of choices nor charts, and took half a millisecond for a cell where a study may have a
million.
"""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from bedplate.export.workbook.model import Area, Formula
from bedplate.export.workbook.ods_chart import chart_xml, column_name, range_address
from bedplate.export.workbook.ods_parts import (
    SPREADSHEET_TYPE,
    cell_styles,
    document_head,
    manifest_xml,
    meta_xml,
    settings_xml,
    styles_xml,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.export.workbook.model import Column, Sheet, Value, Workbook

# Millimetres of a character, of a row and of a bar, as LibreOffice draws them at 10 points.
_CHARACTER_MM = 1.9
_ROW_MM = 4.6
_BAR_MM = 5.5
_BLANKS = re.compile(r"^ | {2,}| $")
# Any time would do; the same workbook makes the same bytes.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_LIST = "choices"
# A regular expression is what a text is taken for where nothing else is said (part 3, 9.4.1).
_CALCULATION = (
    '<table:calculation-settings table:use-regular-expressions="false" table:use-wildcards="false" '
    'table:search-criteria-must-apply-to-whole-cell="true" table:automatic-find-labels="false"/>'
)


def write_ods(book: Workbook, path: Path) -> None:
    """Write the workbook to `path`; the same workbook makes the same bytes."""
    drawn = [sheet for sheet in book.sheets if sheet.chart is not None]
    folders = {sheet.name: f"Object {number}" for number, sheet in enumerate(drawn, start=1)}
    with zipfile.ZipFile(path, "w") as archive:
        # First and not compressed, so that the first bytes of the file tell its format (part 2, 3.3).
        archive.writestr(zipfile.ZipInfo("mimetype", _ZIP_TIME), SPREADSHEET_TYPE)
        _write(archive, "content.xml", _content(book, folders))
        _write(archive, "styles.xml", [styles_xml()])
        _write(archive, "meta.xml", [meta_xml(book)])
        _write(archive, "settings.xml", [settings_xml(book)])
        for sheet in drawn:
            if sheet.chart is not None:
                _write(archive, f"{folders[sheet.name]}/content.xml", [chart_xml(sheet.chart)])
        _write(archive, "META-INF/manifest.xml", [manifest_xml(folders.values())])


def _write(archive: zipfile.ZipFile, name: str, chunks: Iterable[str]) -> None:
    place = zipfile.ZipInfo(name, _ZIP_TIME)
    place.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(place, "w", force_zip64=True) as part:
        for chunk in chunks:
            part.write(chunk.encode("utf-8"))


def _content(book: Workbook, folders: Mapping[str, str]) -> Iterator[str]:
    widths = {column.width for sheet in book.sheets for column in sheet.columns}
    yield document_head("document-content")
    yield f"<office:automatic-styles>{cell_styles()}"
    for width in sorted(widths):
        yield (
            f'<style:style style:name="{_width_name(width)}" style:family="table-column">'
            f'<style:table-column-properties style:column-width="{_mm(width):.1f}mm"/></style:style>'
        )
    yield f"</office:automatic-styles><office:body><office:spreadsheet>{_CALCULATION}"
    yield from _lists(book.sheets)
    for sheet in book.sheets:
        yield from _table(sheet, folders.get(sheet.name))
    yield from _filters(book.sheets)
    yield "</office:spreadsheet></office:body></office:document-content>"


def _width_name(width: float) -> str:
    return f"width-{width:g}"


def _mm(width: float) -> float:
    return width * _CHARACTER_MM


def _lists(sheets: Sequence[Sheet]) -> Iterator[str]:
    chosen = [(sheet, sheet.choice) for sheet in sheets if sheet.choice is not None]
    if not chosen:
        return
    yield "<table:content-validations>"
    for sheet, choice in chosen:
        condition = f"of:cell-content-is-in-list({_address(choice.source)})"
        base = f"'{sheet.name}'.{column_name(choice.column)}{choice.row + 1}"
        yield (
            f'<table:content-validation table:name="{_LIST}" table:condition={quoteattr(condition)} '
            f'table:allow-empty-cell="false" table:display-list="unsorted" '
            f"table:base-cell-address={quoteattr(base)}>"
            '<table:error-message table:title="Not in the list" table:display="true" '
            'table:message-type="stop"><text:p>Take one of the list.</text:p></table:error-message>'
            "</table:content-validation>"
        )
    yield "</table:content-validations>"


def _table(sheet: Sheet, folder: str | None) -> Iterator[str]:
    yield f'<table:table table:name={quoteattr(sheet.name)} table:style-name="sheet">'
    if folder is not None:
        yield _frame(sheet, folder)
    yield from map(_column, sheet.columns)
    for number, line in enumerate(sheet.lead):
        chosen = sheet.choice.column if sheet.choice and sheet.choice.row == number else None
        first = "title" if number == 0 else None
        yield _row(line, ["chosen" if column == chosen else first for column in range(len(line))])
    heads = tuple(column.head for column in sheet.columns)
    yield f"<table:table-header-rows>{_row(heads, ('head',) * len(heads))}</table:table-header-rows>"
    for line in sheet.rows:
        yield _row(line, (None,) * len(line))
    yield "</table:table>"


def _frame(sheet: Sheet, folder: str) -> str:
    """The chart, right of what is shown and below the heads."""
    left = sum(_mm(column.width) for column in sheet.columns if not column.hidden) + 4
    top = (sheet.head_row + 2) * _ROW_MM
    height = 34 + _BAR_MM * len(sheet.rows)
    return (
        f'<table:shapes><draw:frame draw:z-index="0" draw:style-name="frame" svg:x="{left:.1f}mm" svg:y="{top:.1f}mm" svg:width="210mm" '
        f'svg:height="{height:.1f}mm"><draw:object xlink:href={quoteattr(f"./{folder}")} xlink:type="simple" '
        'xlink:show="embed" xlink:actuate="onLoad"/></draw:frame></table:shapes>'
    )


def _column(column: Column) -> str:
    hidden = ' table:visibility="collapse"' if column.hidden else ""
    return f'<table:table-column table:style-name="{_width_name(column.width)}"{hidden}/>'


def _row(line: Sequence[Value], styles: Iterable[str | None]) -> str:
    cells = "".join(_cell(value, style) for value, style in zip(line, styles, strict=True))
    return f'<table:table-row table:style-name="row">{cells}</table:table-row>'


def _cell(value: Value, style: str | None) -> str:
    if value is None:
        return "<table:table-cell/>"
    formula = ""
    shown = value
    if isinstance(value, Formula):
        formula = f" table:formula={quoteattr(_formula(value))}"
        shown = "" if value.value is None else value.value
    named = style or (
        "plain" if isinstance(shown, int) or (isinstance(shown, str) and not formula) else "number"
    )
    listed = f' table:content-validation-name="{_LIST}"' if style == "chosen" else ""
    head = f'<table:table-cell table:style-name="{named}"{listed}{formula}'
    if isinstance(shown, str):
        kept = f" office:string-value={quoteattr(shown)}" if formula else ""
        return f'{head} office:value-type="string"{kept}>{_paragraphs(shown)}</table:table-cell>'
    return f'{head} office:value-type="float" office:value="{shown!r}"><text:p>{shown!r}</text:p></table:table-cell>'


def _paragraphs(shown: str) -> str:
    lines = shown.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(
        f"<text:p>{_BLANKS.sub(_spaces, escape(line)).replace(chr(9), '<text:tab/>')}</text:p>"
        for line in lines
    )


def _spaces(found: re.Match[str]) -> str:
    """Blanks that XML would lose: those at an end, and all of several."""
    return f'<text:s text:c="{len(found[0])}"/>'


def _filters(sheets: Sequence[Sheet]) -> Iterator[str]:
    filtered = [sheet for sheet in sheets if sheet.filtered and sheet.rows]
    if not filtered:
        return
    yield "<table:database-ranges>"
    for number, sheet in enumerate(filtered, start=1):
        name = sheet.name.replace("'", "''")
        last = f"{column_name(len(sheet.columns) - 1)}{sheet.last_row + 1}"
        address = f"'{name}'.A{sheet.head_row + 1}:'{name}'.{last}"
        yield (
            f'<table:database-range table:name="filter{number}" table:display-filter-buttons="true" '
            f"table:target-range-address={quoteattr(address)}/>"
        )
    yield "</table:database-ranges>"


def _formula(formula: Formula) -> str:
    parts = (_address(part) if isinstance(part, Area) else part for part in formula.parts)
    return f"of:={''.join(parts)}"


def _address(area: Area) -> str:
    """`[$'Results'.$A$2:.$A$9]`, as OpenFormula names cells; its arguments are separated by `;` already."""
    return f"[{range_address(area)}]"
