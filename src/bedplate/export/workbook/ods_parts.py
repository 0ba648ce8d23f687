"""The parts of an ODS file that are not its tables: styles, settings, properties, and the list of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from bedplate import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.export.workbook.model import Sheet, Workbook

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
