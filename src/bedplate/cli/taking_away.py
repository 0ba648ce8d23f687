"""What one takes away from a study: the page, its figures for other tools, and a text for a mail.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bedplate.cli.completion import METRIC_NAME, metric_names
from bedplate.cli.options import CELLS, CLAIMS, PATH, STUDY_DIRECTORIES, STUDY_DIRECTORY, claim_files
from bedplate.cli.studies import require_studies, studies_below
from bedplate.host.ownership import first_made, give_to_caller


@click.command()
@STUDY_DIRECTORIES
@click.option(
    "-o", "--output", metavar="FILE", type=PATH, default=Path("report.html"), help="the page to write"
)
@CELLS
@CLAIMS
def report(
    studies: tuple[Path, ...], *, output: Path, cells: tuple[str, ...], files: tuple[Path, ...]
) -> None:
    """Write one self-contained HTML page."""
    studies = require_studies(studies)
    from bedplate.page.build import build_report  # noqa: PLC0415

    made = first_made(output)
    build_report(studies, output, cells=cells, claims=claim_files(files))
    give_to_caller(made)
    print(output)


@click.command()
@STUDY_DIRECTORY
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=PATH,
    required=True,
    help="a directory, or a .ods, .xlsx, .csv, .parquet or .json file",
)
@CELLS
@click.option(
    "--format",
    "formats",
    metavar="NAME",
    multiple=True,
    help="of a directory: csv, parquet or json; default: all",
)
@click.option(
    "--table",
    "tables",
    metavar="NAME",
    multiple=True,
    help="only this table (docs/EXPORT.md); `plans`, the query plans, are written only so; may be given again",
)
@click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    type=METRIC_NAME,
    shell_complete=metric_names,
    help="only figures of this metric; may be given again",
)
def export(
    study: Path,
    *,
    output: Path,
    cells: tuple[str, ...],
    formats: tuple[str, ...],
    tables: tuple[str, ...],
    metrics: tuple[str, ...],
) -> None:
    """Write a study's figures as a spreadsheet (ODS, XLSX), or as CSV, Parquet or JSON."""
    (study,) = require_studies([study])
    from bedplate.export.tables import export as write  # noqa: PLC0415

    made = first_made(output)
    for path in write(study, output, formats, cells=cells, tables=tables, metrics=metrics):
        print(path)
    give_to_caller(made)


@click.command()
@STUDY_DIRECTORY
@click.option("--markdown", is_flag=True, help="with a table in Markdown; it reads as plain text too")
@CELLS
def summary(study: Path, *, markdown: bool, cells: tuple[str, ...]) -> None:
    """Ten lines and a table for a mail or a ticket: plain text of 72 columns."""
    (study,) = require_studies([study])
    from bedplate.analysis.headline.answered import headline  # noqa: PLC0415
    from bedplate.analysis.headline.mail import mail_text  # noqa: PLC0415
    from bedplate.analysis.selected import selected_overviews  # noqa: PLC0415

    (found,) = selected_overviews([study], cells)
    print(mail_text(headline(found), markdown=markdown), end="")


@click.command()
@click.argument("directory", type=PATH, help="a folder that holds studies, at any of four levels")
@click.option(
    "-o", "--output", metavar="FILE", type=PATH, help="the page to write; default: index.html in the folder"
)
def index(directory: Path, *, output: Path | None) -> None:
    """Write one page over many studies: title, machine, answer and the way to each one's page."""
    studies = studies_below(directory)
    from bedplate.page.index import build_index  # noqa: PLC0415

    written = output or directory / "index.html"
    made = first_made(written)
    entries = build_index(directory, studies, written)
    give_to_caller(made)
    for entry in entries:
        for problem in entry.problems:
            print(f"{entry.place}: {problem}", file=sys.stderr)
    print(written)
