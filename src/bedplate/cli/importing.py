"""`bedplate import`: published runs as a study."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from bedplate.cli.options import PATH
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED
from bedplate.units import format_count

if TYPE_CHECKING:
    from pathlib import Path


@click.command("import")
@click.argument("source", type=PATH, help="a folder or file of published results (docs/IMPORT.md)")
@click.option("--study", metavar="DIRECTORY", type=PATH, required=True, help="the study that is made")
@click.option(
    "--format",
    "form",
    metavar="NAME",
    help="of which form the source is (docs/IMPORT.md); default: what it looks like",
)
def import_results(source: Path, *, study: Path, form: str | None) -> int:
    """Make a study of runs that others published: shown, exported and judged as any other, never compared with measured cells.

    Exit code 1 where something of the source was left out; what, and why, is said for each file.
    """
    from bedplate.host.ownership import first_made, give_to_caller  # noqa: PLC0415
    from bedplate.imported.importing import import_source  # noqa: PLC0415

    made = first_made(study)
    found = import_source(source, study, form=form)
    give_to_caller(made)
    told = (*found.problems, *found.failures)
    for each in told:
        print(each, file=sys.stderr)
    print(
        f"{study}: {format_count(len(found.runs), 'run')} of {found.adapter}, {len(found.failures)} without figures, "
        f"{found.doubted} suspect, {format_count(len(found.problems), 'thing')} left out"
    )
    return EXIT_SOME_RUNS_FAILED if told else EXIT_DONE
