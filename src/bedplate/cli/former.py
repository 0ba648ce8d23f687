"""Command names of 0.9 and before, which keep working until 1.0. They are not listed, and what they do is what today's command does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bedplate.cli.ask import ask_kernel
from bedplate.cli.commands import Viewed, add_former
from bedplate.cli.options import (
    AS_JSON,
    ERASE,
    ERASE_FOREIGN,
    EXECUTOR,
    PATH,
    REPETITIONS_IN_ALL,
    RETRY_FAILED,
    STUDY_DIRECTORY,
    YES,
)
from bedplate.cli.read import write_index

# By the name of the view's command before: the flag that `show` has it by, or `doctor`.
_OF_SHOW = {
    "advise": "--advice",
    "effects": "--effects",
    "claims": "--claims",
    "summary": "--mail",
    "status": "--status",
}


def add_former_names(commands: click.Group) -> None:
    """To a program that has all its commands of today."""
    show, doctor, ask = (commands.commands[name] for name in ("show", "doctor", "ask"))
    if not (isinstance(show, Viewed) and isinstance(doctor, Viewed) and isinstance(ask, click.Group)):
        raise TypeError(f"{show}, {doctor} or {ask} has no views or no commands")
    for name, flag in _OF_SHOW.items():
        add_former(commands, name, show.views[flag], f"show STUDY {flag}")
    add_former(ask, "kernel", ask_kernel, "ab --kernel OLD NEW")
    add_former(commands, "extend", _extend, "run STUDY --repetitions N")
    add_former(commands, "cancel", _cancel, "release STUDY")
    add_former(commands, "index", _index, "report DIRECTORY")
    add_former(commands, "setup", doctor.views["--install"], "doctor PLAN --install")
    add_former(commands, "inspect", _inspect, "doctor TARGET")
    devices = click.Group("device", hidden=True, help="How long a disk takes to answer.")
    add_former(devices, "measure", doctor.views["--measure"], "doctor DEVICE --measure")
    commands.add_command(devices)


def _as_today(context: click.Context, name: str, **options: Any) -> int:
    program = context.find_root().command
    if not isinstance(program, click.Group):
        raise TypeError(program)
    status: int = context.invoke(program.commands[name], **options)
    return status


@click.command()
@STUDY_DIRECTORY
@REPETITIONS_IN_ALL
@click.option("--plan", "add", metavar="PLAN", type=PATH, help="a plan that adds cells or repetitions")
@EXECUTOR
@ERASE
@ERASE_FOREIGN
@RETRY_FAILED
@YES
@click.pass_context
def _extend(context: click.Context, /, study: Path, **options: Any) -> int:
    """Add repetitions or cells to a study, and run them."""
    if options["repetitions"] is None and options["add"] is None:
        raise click.UsageError("say what is to be added: --repetitions N or --plan PLAN", context)
    return _as_today(context, "run", plan=study, **options)


@click.command()
@STUDY_DIRECTORY
@click.pass_context
def _cancel(context: click.Context, study: Path) -> int:
    """End a study's jobs on a Slurm cluster."""
    return _as_today(context, "release", study=study)


@click.command()
@click.argument("directory", type=PATH, help="a folder that holds studies, at any of four levels")
@click.option(
    "-o", "--output", metavar="FILE", type=PATH, help="the page to write; default: index.html in the folder"
)
def _index(directory: Path, *, output: Path | None) -> None:
    """Write one page over many studies."""
    write_index(directory, output)


@click.command()
@click.argument(
    "target", metavar="TARGET", type=click.Path(path_type=Path, readable=False), help="what is looked at"
)
@click.option(
    "--plan", "output", metavar="FILE", type=PATH, help="write the plan that measures it to this file"
)
@AS_JSON
@click.pass_context
def _inspect(context: click.Context, /, **options: Any) -> int:
    """What a server runs on: file system, options, device, settings."""
    return _as_today(context, "doctor", **options)
