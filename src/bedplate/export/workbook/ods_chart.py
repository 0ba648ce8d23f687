"""The bars of a sheet as the chart that is embedded in an ODS file."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from bedplate.export.workbook.ods_parts import document

if TYPE_CHECKING:
    from bedplate.export.workbook.model import Area, BarChart

# `chart:vertical` turns columns into bars; the first category stands on top, where the axis is reversed.
# A label has a value in one series only, so the bars of all series stand at the same place (`overlap`).
_STYLES = """\
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
        f"<office:automatic-styles>{_STYLES}{colours}</office:automatic-styles>"
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
