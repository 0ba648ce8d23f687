"""A workbook as ODS (OpenDocument 1.3, parts 2 to 4), written as the XML that it is.

By the standard library, since no package would do: odfpy has no wheel, and the launcher installs nothing else;
odfdo knows neither lists of choices nor charts, and took half a millisecond for a cell where a study may have a
million.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from bedplate import __version__
from bedplate.export.workbook import Area, BarChart, Column, Formula, Sheet, Value, Workbook

SPREADSHEET_TYPE = "application/vnd.oasis.opendocument.spreadsheet"

_CHART_TYPE = "application/vnd.oasis.opendocument.chart"

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

_OASIS = "urn:oasis:names:tc:opendocument:xmlns"

_NAMESPACES = {
    "office": f"{_OASIS}:office:1.0",
    "style": f"{_OASIS}:style:1.0",
    "text": f"{_OASIS}:text:1.0",
    "table": f"{_OASIS}:table:1.0",
    "draw": f"{_OASIS}:drawing:1.0",
    "fo": f"{_OASIS}:xsl-fo-compatible:1.0",
    "number": f"{_OASIS}:datastyle:1.0",
    "svg": f"{_OASIS}:svg-compatible:1.0",
    "chart": f"{_OASIS}:chart:1.0",
    "config": f"{_OASIS}:config:1.0",
    "meta": f"{_OASIS}:meta:1.0",
    "of": f"{_OASIS}:of:1.2",
    "dc": "http://purl.org/dc/elements/1.1/",
    "xlink": "http://www.w3.org/1999/xlink",
    "ooo": "http://openoffice.org/2004/office",
}

# Large numbers whole, middling ones with three decimals, small ones with up to seven.
_STYLES = """\
<number:number-style style:name="large"><number:number number:decimal-places="0" number:min-integer-digits="1" \
number:grouping="true"/></number:number-style>
<number:number-style style:name="middling"><number:number number:decimal-places="3" \
number:min-decimal-places="3" number:min-integer-digits="1"/></number:number-style>
<number:number-style style:name="any"><number:number number:decimal-places="7" \
number:min-decimal-places="1" number:min-integer-digits="1"/>\
<style:map style:condition="value()&gt;=1000" style:apply-style-name="large"/>\
<style:map style:condition="value()&gt;=0.1" style:apply-style-name="middling"/></number:number-style>
<style:style style:name="plain" style:family="table-cell"/>
<style:style style:name="number" style:family="table-cell" style:data-style-name="any"/>
<style:style style:name="title" style:family="table-cell">\
<style:text-properties fo:font-weight="bold" fo:font-size="14pt"/></style:style>
<style:style style:name="head" style:family="table-cell">\
<style:table-cell-properties fo:border-bottom="0.5pt solid #000000" fo:wrap-option="wrap" \
style:vertical-align="top"/><style:text-properties fo:font-weight="bold"/></style:style>
<style:style style:name="chosen" style:family="table-cell">\
<style:table-cell-properties fo:background-color="#fff3c4" fo:border="0.5pt solid #000000"/>\
<style:text-properties fo:font-weight="bold"/></style:style>
<style:style style:name="sheet" style:family="table" style:master-page-name="wide">\
<style:table-properties table:display="true"/></style:style>
<style:style style:name="frame" style:family="graphic">\
<style:graphic-properties draw:fill="none" draw:stroke="none"/></style:style>
<style:style style:name="row" style:family="table-row">\
<style:table-row-properties style:use-optimal-row-height="true"/></style:style>
"""

_PAGE = """\
<office:automatic-styles><style:page-layout style:name="landscape"><style:page-layout-properties \
fo:page-width="297mm" fo:page-height="210mm" style:print-orientation="landscape" fo:margin="10mm" \
style:scale-to-X="1" style:scale-to-Y="0"/></style:page-layout></office:automatic-styles>
<office:master-styles><style:master-page style:name="wide" style:page-layout-name="landscape"/>\
</office:master-styles>
"""


def document(kind: str, body: str) -> str:
    """One part: the root element `office:KIND` of OpenDocument 1.3 with every namespace, around `body`."""
    return f"{document_head(kind)}{body}</office:{kind}>"


def document_head(kind: str) -> str:
    """The beginning of a part, up to the content of its root element."""
    names = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in _NAMESPACES.items())
    return f'{_DECLARATION}<office:{kind} {names} office:version="1.3">'


def cell_styles() -> str:
    """The styles that cells, rows and tables are given by name."""
    return _STYLES


def styles_xml() -> str:
    """`styles.xml`: pages in landscape, as wide as a sheet."""
    return document("document-styles", _PAGE)


def meta_xml(book: Workbook) -> str:
    """`meta.xml`: title, time and maker."""
    return document(
        "document-meta",
        f"<office:meta><meta:generator>bedplate/{escape(__version__)}</meta:generator>"
        f"<dc:title>{escape(book.title)}</dc:title>"
        f"<meta:creation-date>{escape(book.created)}</meta:creation-date></office:meta>",
    )


def settings_xml(book: Workbook) -> str:
    """`settings.xml`: in every sheet the heads and the first column stay in sight."""
    tables = "".join(_view(sheet) for sheet in book.sheets)
    first = escape(book.sheets[0].name)
    return document(
        "document-settings",
        '<office:settings><config:config-item-set config:name="ooo:view-settings">'
        '<config:config-item-map-indexed config:name="Views"><config:config-item-map-entry>'
        '<config:config-item config:name="ViewId" config:type="string">view1</config:config-item>'
        f'<config:config-item-map-named config:name="Tables">{tables}</config:config-item-map-named>'
        f'<config:config-item config:name="ActiveTable" config:type="string">{first}</config:config-item>'
        "</config:config-item-map-entry></config:config-item-map-indexed></config:config-item-set>"
        "</office:settings>",
    )


def _view(sheet: Sheet) -> str:
    # Mode 2 is frozen; the lower right pane is the one that scrolls.
    rows = sheet.head_row + 1
    items = (
        *(("HorizontalSplitMode", "short", 2), ("VerticalSplitMode", "short", 2)),
        *(("HorizontalSplitPosition", "int", 1), ("VerticalSplitPosition", "int", rows)),
        *(("ActiveSplitRange", "short", 3), ("PositionLeft", "int", 0)),
        *(("PositionRight", "int", 1), ("PositionTop", "int", 0), ("PositionBottom", "int", rows)),
    )
    found = "".join(
        f'<config:config-item config:name="{name}" config:type="{kind}">{value}</config:config-item>'
        for name, kind, value in items
    )
    return f"<config:config-item-map-entry config:name={quoteattr(sheet.name)}>{found}</config:config-item-map-entry>"


def manifest_xml(charts: Iterable[str]) -> str:
    """`META-INF/manifest.xml`: every part with its type; `charts` are the folders of charts."""
    parts = {
        "/": SPREADSHEET_TYPE,
        **dict.fromkeys(("content.xml", "styles.xml", "meta.xml", "settings.xml"), "text/xml"),
    }
    for chart in charts:
        parts |= {f"{chart}/": _CHART_TYPE, f"{chart}/content.xml": "text/xml"}
    entries = "".join(
        f'<manifest:file-entry manifest:full-path={quoteattr(name)} manifest:media-type="{kind}"/>'
        for name, kind in parts.items()
    )
    return (
        f'{_DECLARATION}<manifest:manifest xmlns:manifest="{_OASIS}:manifest:1.0" '
        f'manifest:version="1.3">{entries}</manifest:manifest>'
    )


# `chart:vertical` turns columns into bars; the first category stands on top, where the axis is reversed.
# A label has a value in one series only, so the bars of all series stand at the same place (`overlap`).
_CHART_STYLES = """\
<style:style style:name="page" style:family="chart"><style:graphic-properties draw:fill="solid" \
draw:fill-color="#ffffff" draw:stroke="solid" svg:stroke-color="#d0d0d0"/></style:style>
<style:style style:name="wall" style:family="chart"><style:graphic-properties draw:fill="none" \
draw:stroke="none"/></style:style>
<style:style style:name="title" style:family="chart"><style:text-properties fo:font-size="11pt"/></style:style>
<style:style style:name="small" style:family="chart"><style:graphic-properties draw:fill="none" \
draw:stroke="none"/><style:text-properties fo:font-size="8pt"/></style:style>
<style:style style:name="plot" style:family="chart"><style:chart-properties chart:vertical="true" \
chart:include-hidden-cells="true" chart:treat-empty-cells="leave-gap" chart:auto-position="true"/></style:style>
<style:style style:name="labels" style:family="chart"><style:chart-properties chart:display-label="true" \
chart:reverse-direction="true" chart:gap-width="40" chart:overlap="100" chart:text-overlap="true" \
text:line-break="false"/><style:text-properties fo:font-size="8pt"/></style:style>
<number:number-style style:name="any"><number:number number:min-integer-digits="1"/></number:number-style>
<style:style style:name="figures" style:family="chart" style:data-style-name="any">\
<style:chart-properties chart:display-label="true" chart:link-data-style-to-source="false" \
chart:gap-width="40" chart:overlap="100" chart:logarithmic="false" chart:axis-position="end"/>\
<style:text-properties fo:font-size="8pt"/></style:style>
<style:style style:name="grid" style:family="chart"><style:graphic-properties svg:stroke-color="#d0d0d0"/>\
</style:style>
"""


def chart_xml(chart: BarChart) -> str:
    """`content.xml` of the chart; its ranges are cells of the document around it."""
    series = "".join(
        f'<chart:series chart:style-name="series{place}" chart:class="chart:bar" '
        f"chart:values-cell-range-address={quoteattr(range_address(one.values))} "
        f"chart:label-cell-address={quoteattr(range_address(one.name))}/>"
        for place, one in enumerate(chart.series)
    )
    colours = "".join(
        f'<style:style style:name="series{place}" style:family="chart"><style:graphic-properties '
        f'draw:fill="solid" draw:fill-color="{one.colour}" draw:stroke="none"/></style:style>'
        for place, one in enumerate(chart.series)
    )
    return document(
        "document-content",
        f"<office:automatic-styles>{_CHART_STYLES}{colours}</office:automatic-styles>"
        '<office:body><office:chart><chart:chart chart:class="chart:bar" chart:style-name="page">'
        f'<chart:title chart:style-name="title"><text:p>{escape(chart.title)}</text:p></chart:title>'
        '<chart:legend chart:legend-position="top" chart:style-name="small"/>'
        '<chart:plot-area chart:style-name="plot" chart:data-source-has-labels="both">'
        '<chart:axis chart:dimension="x" chart:name="primary-x" chart:style-name="labels">'
        f"<chart:categories table:cell-range-address={quoteattr(range_address(chart.labels))}/></chart:axis>"
        '<chart:axis chart:dimension="y" chart:name="primary-y" chart:style-name="figures">'
        '<chart:grid chart:class="major" chart:style-name="grid"/></chart:axis>'
        f'{series}<chart:wall chart:style-name="wall"/></chart:plot-area></chart:chart></office:chart></office:body>',
    )


def range_address(area: Area) -> str:
    """`$'Asked and effective'.$A$2:.$A$9` as charts, lists and filters name cells."""
    name = area.sheet.replace("'", "''")
    column = column_name(area.column)
    last = "" if area.last_row is None else f":.${column}${area.last_row + 1}"
    return f"$'{name}'.${column}${area.row + 1}{last}"


def column_name(column: int) -> str:
    """0 is `A`, 25 is `Z`, 26 is `AA`."""
    before, place = divmod(column, 26)
    return (column_name(before - 1) if before else "") + chr(ord("A") + place)


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
