"""The table `search` of a study that is a search: a row for each cell of the plan, visited or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polars import Boolean, Float64, Int64, String

from bedplate.analysis.search.searched import search_of
from bedplate.export.columns import ExportColumn, ExportTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.analysis.overview import Overview
    from bedplate.analysis.search.searched import Searched, SearchedCell

SEARCH_COLUMNS: Mapping[str, ExportColumn] = {
    "study": ExportColumn(String, "title of the study"),
    "cell": ExportColumn(String, "identity of the cell"),
    "label": ExportColumn(String, "what it is called"),
    "metric": ExportColumn(String, "the figure whose best cell was looked for"),
    "unit": ExportColumn(String, "its unit"),
    "dataset": ExportColumn(String, "identity of what was loaded"),
    "run": ExportColumn(String, "the runs that it is a figure of; joined by `, `"),
    "visits": ExportColumn(Int64, "visits of the search and its proofs"),
    "believed": ExportColumn(Int64, "those with a trusted figure"),
    "measured": ExportColumn(
        Float64,
        "mean of what was measured; of few visits it is no fair sample, as the cell was chosen for them",
    ),
    "predicted": ExportColumn(
        Float64,
        "what the model expects of the cell, from all figures and the factors that cells share; empty before the first",
    ),
    "predicted_low": ExportColumn(Float64, "95 % of the model's draws lie between them"),
    "predicted_high": ExportColumn(Float64),
    "proved": ExportColumn(
        Float64, "mean of the fresh runs of the last proof; empty of a cell that took no part"
    ),
    "proved_low": ExportColumn(Float64, "its 95 % interval; empty below three repetitions"),
    "proved_high": ExportColumn(Float64),
    "proved_n": ExportColumn(Int64, "how many repetitions it is made of"),
    "chance_near_best": ExportColumn(
        Float64, "the model's chance that the cell is within the margin of the best; a share"
    ),
    "chance_best": ExportColumn(Float64, "that it is the best; a share"),
    "named": ExportColumn(Boolean, "whether the search names it in the end; empty before the end"),
    "left_out": ExportColumn(String, "why it is not visited any more, or never was"),
}


def searched_rows(found: Overview) -> Iterator[dict[str, Any]]:
    """One row per cell, candidates first; none of a study that is no search, or of a selection of cells."""
    search = search_of(found)
    if search is not None:
        yield from (_row(search, cell) for cell in search.cells)


def _row(search: Searched, cell: SearchedCell) -> dict[str, Any]:
    end, predicted, proved = search.end, cell.predicted, cell.proved
    return {
        "study": search.overview.study.facts.title,
        "cell": cell.id,
        "label": cell.label.full,
        "metric": search.metric.name,
        "unit": search.metric.unit,
        "dataset": search.record.dataset,
        "run": ", ".join(search.record.runs),
        "visits": cell.visits,
        "believed": cell.believed,
        "measured": cell.measured.centre,
        "predicted": None if predicted is None else predicted.value,
        "predicted_low": None if predicted is None else predicted.low,
        "predicted_high": None if predicted is None else predicted.high,
        "proved": None if proved is None else proved.centre,
        "proved_low": None if proved is None else proved.low,
        "proved_high": None if proved is None else proved.high,
        "proved_n": None if proved is None else proved.n,
        "chance_near_best": None if predicted is None else cell.near,
        "chance_best": None if predicted is None else cell.best,
        "named": None if end is None else cell.id in {search.id_of(number) for number in end.cells},
        "left_out": None if cell.closed is None else cell.closed.sentence,
    }


SEARCH = "search"
SEARCH_TABLE = ExportTable(SEARCH_COLUMNS, searched_rows)
