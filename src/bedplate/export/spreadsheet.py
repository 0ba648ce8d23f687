"""A study as a spreadsheet, ODS or XLSX: a sheet to look through the results with, and all of them (docs/EXPORT.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.export.factor_columns import factors_of
from bedplate.export.workbook.look import choices_sheet, look_sheet, results_sheet
from bedplate.export.workbook.model import ROWS_MAX, Workbook, cell_text
from bedplate.export.workbook.results import choices_of, results_of
from bedplate.export.workbook.sheets import (
    about_sheet,
    cells_sheet,
    effective_sheet,
    runs_sheet,
    search_sheets,
    wide_sheets,
)

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.analysis.overview import Overview


def write_spreadsheet(found: Overview, output: Path) -> None:
    """Write the workbook of a study to `output`, whole or not at all; its suffix, ods or xlsx, is its format.

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
    # Each writer with its library only where it is asked for.
    if output.suffix == ".ods":
        from bedplate.export.workbook.ods import write_ods  # noqa: PLC0415

        write_ods(book, temporary)
    else:
        from bedplate.export.workbook.xlsx import write_xlsx  # noqa: PLC0415

        write_xlsx(book, temporary)
    temporary.replace(output)


def workbook_of(found: Overview) -> Workbook:
    """All sheets of a study, the one to look with first."""
    choices = choices_of(found)
    results = list(results_of(found, choices))
    factors = factors_of(found)
    return Workbook(
        title=cell_text(found.study.facts.title, longest=200),
        created=found.study.facts.created,
        sheets=(
            look_sheet(found, choices, results),
            results_sheet(choices, results, factors),
            *wide_sheets(choices, results, factors),
            cells_sheet(found, factors),
            effective_sheet(found),
            runs_sheet(found, factors),
            *search_sheets(found),
            about_sheet(found),
            choices_sheet(choices),
        ),
    )
