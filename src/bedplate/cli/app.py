"""All commands, each a few lines: the work stands in the rooms below."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedplate.cli.ownership import first_made, give_to_caller

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG = (
    "Exit codes: 0 done; 1 some runs failed; 2 the plan or the call is wrong; 3 a requirement is missing; "
    "130 interrupted. A study that was interrupted goes on when the same command is given again."
)

app = typer.Typer(
    name="bedplate",
    help="Measures databases across Linux file systems. IT ERASES THE SCRATCH DEVICE THAT A PLAN NAMES.",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="a plan, TOML (docs/PLANS.md)")]
StudyDirectory = Annotated[Path, typer.Argument(metavar="STUDY", help="a study's directory")]
StudyDirectories = Annotated[list[Path], typer.Argument(metavar="STUDY...", help="studies' directories")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document instead")]
Yes = Annotated[bool, typer.Option("--yes", help="install missing system packages without asking")]
Erase = Annotated[
    list[str] | None,
    typer.Option("--erase", metavar="NAME", help="the scratch device once more: it will be erased"),
]
EraseForeign = Annotated[
    bool,
    typer.Option("--erase-foreign", help="also if the device bears a signature that is not bedplate's"),
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="do failed visits again, as new attempts")]


@app.command()
def quickstart(
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="where the study and the report go")
    ] = Path("bedplate-study"),
    yes: Yes = False,  # noqa: FBT002
) -> None:
    """From nothing to a first report: packages, PostgreSQL, plans/quick.toml on an image file."""
    from bedplate.cli.quickstart import quickstart as begin  # noqa: PLC0415

    raise typer.Exit(begin(directory, yes=yes))


@app.command()
def setup(
    plan: Annotated[
        Path | None, typer.Argument(metavar="[PLAN]", help="prepare what this plan needs; default: quick")
    ] = None,
    yes: Yes = False,  # noqa: FBT002
    tarball: Annotated[
        Path | None, typer.Option("--tarball", help="a PostgreSQL source tarball, instead of a download")
    ] = None,
) -> None:
    """Install what is missing and build every PostgreSQL that a plan needs."""
    from bedplate.cli.prepare import setup as prepare  # noqa: PLC0415

    prepare(plan, yes=yes, tarball=tarball)


@app.command()
def doctor(as_json: AsJson = False) -> None:  # noqa: FBT002
    """What this machine can run, what is missing, and the fix."""
    from bedplate.cli.doctor import doctor as examine  # noqa: PLC0415

    raise typer.Exit(examine(as_json=as_json))


@app.command()
def plan(plan: PlanFile, as_json: AsJson = False) -> None:  # noqa: FBT002
    """Show what a plan would do: cells, the pruned ones with reasons, order, disk space, time."""
    from bedplate.cli.plans import show_plan  # noqa: PLC0415

    show_plan(plan, as_json=as_json)


@app.command()
def run(
    plan: PlanFile,
    study: Annotated[Path, typer.Option("--study", metavar="DIR", help="the study, made or gone on with")],
    erase: Erase = None,
    erase_foreign: EraseForeign = False,  # noqa: FBT002
    retry_failed: RetryFailed = False,  # noqa: FBT002
) -> None:
    """Run a plan, or go on where it stopped."""
    from bedplate.cli.running import Leave  # noqa: PLC0415
    from bedplate.cli.running import run as measure  # noqa: PLC0415

    leave = Leave(tuple(erase or ()), erase_foreign)
    raise typer.Exit(measure(plan, study, leave=leave, retry_failed=retry_failed))


@app.command()
def extend(  # noqa: PLR0917 -- typer passes them by name
    study: StudyDirectory,
    repetitions: Annotated[
        int | None, typer.Option("--repetitions", min=1, help="how many there shall be in all")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="a plan that adds cells or repetitions to the study's")
    ] = None,
    erase: Erase = None,
    erase_foreign: EraseForeign = False,  # noqa: FBT002
    retry_failed: RetryFailed = False,  # noqa: FBT002
) -> None:
    """Add repetitions or cells to a study, and run them; the study keeps a note of it."""
    from bedplate.cli.running import Leave  # noqa: PLC0415
    from bedplate.cli.running import extend as enlarge  # noqa: PLC0415

    leave = Leave(tuple(erase or ()), erase_foreign)
    raise typer.Exit(
        enlarge(study, repetitions=repetitions, plan=plan, leave=leave, retry_failed=retry_failed)
    )


@app.command()
def status(study: StudyDirectory, as_json: AsJson = False) -> None:  # noqa: FBT002
    """How far a study is, what failed and why, and how well it uses its time."""
    from bedplate.cli.status import status as tell  # noqa: PLC0415

    tell(study, as_json=as_json)


@app.command()
def show(
    studies: StudyDirectories,
    workload: Annotated[str | None, typer.Option("--workload", help="only this workload's runs")] = None,
    metric: Annotated[str, typer.Option("--metric", help="the metric to show (docs/METHOD.md)")] = "tps",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Tables of a study's results."""
    from bedplate.report import tables  # noqa: PLC0415

    if as_json:
        print_json(tables.show_document(studies, workload=workload, metric=metric))
        return
    print_tables(tables.show_tables(studies, workload=workload, metric=metric))


@app.command()
def report(
    studies: StudyDirectories,
    output: Annotated[Path, typer.Option("-o", "--output", help="the page to write")] = Path("report.html"),
) -> None:
    """Write one self-contained HTML page."""
    from bedplate.report.build import build_report  # noqa: PLC0415

    made = first_made(output)
    build_report(studies, output)
    give_to_caller(made)
    print(output)


@app.command()
def export(
    study: StudyDirectory,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="a directory, or a .csv, .parquet or .json file")
    ],
) -> None:
    """Write a study's figures as CSV, Parquet or JSON."""
    from bedplate.report.export import export as write  # noqa: PLC0415

    made = first_made(output)
    for path in write(study, output):
        print(path)
    give_to_caller(made)


@app.command()
def release() -> None:
    """Free mounts, loop devices, servers and control groups that a killed start left behind."""
    from bedplate.cli.release import release as give_back  # noqa: PLC0415

    raise typer.Exit(give_back())


@app.command("run-visit", hidden=True)
def run_visit() -> None:
    """Internal: live through one visit (handled before this program is loaded)."""


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    print()


def print_tables(tables: Sequence[object]) -> None:
    """Tables for a terminal; 80 columns where there is none."""
    from rich.console import Console  # noqa: PLC0415

    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    for table in tables:
        console.print(table)
