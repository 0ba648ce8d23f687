"""`bedplate inspect`: what a server stands on.

As in `app.py`, only click and the standard library are imported before the command is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bedplate.cli.options import AS_JSON, PATH
from bedplate.errors import EXIT_DONE, PlanError
from bedplate.host.ownership import first_made, give_to_caller
from bedplate.units import format_size

if TYPE_CHECKING:
    from bedplate.campaign.inspection import Inspected
    from bedplate.filesystem.standing import MountedPlace


# A server's directory is closed to others, and what lies below it can be told all the same.
_ANY_PATH = click.Path(path_type=Path, readable=False)


@click.command()
@click.argument("target", metavar="DATADIR|DEVICE|MOUNTPOINT", type=_ANY_PATH, help="what is looked at")
@click.option("--plan", metavar="FILE", type=PATH, help="write the plan that measures it to this file")
@AS_JSON
def inspect(target: Path, *, plan: Path | None, as_json: bool) -> int:
    """What a server runs on: file system, options, the device's cache, settings, durability class. Changes nothing.

    It reads the kernel's tables and the server's files, and starts nothing; without root it says what it could not read.
    """
    from bedplate.campaign.inspection import inspect as look  # noqa: PLC0415
    from bedplate.campaign.questions import own_question  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    machine = read_machine()
    found = look(target, virtualisation=machine.virtualisation)
    question = own_question(machine, found, beside=True)
    if plan is not None:
        if question is None:
            raise PlanError(f"no plan can measure this: {found.standing.type or 'nothing that is mounted'}")
        _write(plan, question.text)
    if as_json:
        from bedplate.cli.printing import print_json  # noqa: PLC0415
        from bedplate.model.codec import to_json  # noqa: PLC0415

        print_json(
            {**to_json(found), "class": found.fitting, "plan": None if question is None else question.text}
        )
        return EXIT_DONE
    say_inspected(found)
    if plan is not None:
        print(f"plan: {plan}")
    elif question is not None:
        print(
            f"\nThe plan that measures it beside its neighbours (--plan FILE writes it):\n\n{question.text}",
            end="",
        )
    return EXIT_DONE


def say_inspected(found: Inspected) -> None:
    """A line for each thing that decides, and what is not known."""
    from bedplate.cli.printing import say  # noqa: PLC0415
    from bedplate.model.engine import engine_model  # noqa: PLC0415
    from bedplate.model.levels import as_in_a_plan  # noqa: PLC0415
    from bedplate.model.reason import sentences  # noqa: PLC0415

    directory = found.directory
    what = (
        f"{engine_model(directory.engine).label} {directory.version}".rstrip()
        if directory
        else "no engine's files that are known"
    )
    say(f"{found.path}: {what}")
    for place, standing in found.places.items():
        _say_standing("file system" if place == "data" else place, standing)
    say(f"  cache        {found.cache.kind}: {found.cache.why}")
    if directory is not None and directory.settings:
        words = [
            f"{name} = {value}" if name in directory.said_by else f"{name} = {value} (default)"
            for name, value in directory.settings.items()
            if directory.knows_settings or name in directory.said_by
        ]
        if not directory.knows_settings:
            silent = [name for name in directory.settings if name not in directory.said_by]
            words += [f"{', '.join(silent)} not known"] if silent else []
        say(f"  settings     {', '.join(words)}")
    if directory is not None and directory.made_with:
        say(
            f"  made with    {', '.join(f'{name} = {as_in_a_plan(value)}' for name, value in directory.made_with.items())}"
        )
    if directory is not None and directory.more:
        say(f"  also set     {', '.join(f'{name} = {value}' for name, value in directory.more.items())}")
    said = found.durability
    if found.fitting is not None:
        say(f"  power cut    {found.fitting} (declared)")
    else:
        say(
            f"  power cut    {said.volatile_cache} with a volatile cache, {said.protected_cache} with a protected one (declared)"
        )
    for sentence in sentences(said.reasons):
        say(f"               {sentence}")
    for sentence in (*found.unknown, *(directory.untold if directory else ())):
        say(f"  not known    {sentence}")
    for sentence in directory.left_out if directory else ():
        say(f"  not in plan  {sentence}")


def _say_standing(what: str, standing: MountedPlace) -> None:
    from bedplate.cli.printing import say  # noqa: PLC0415

    blocks = f", blocks of {format_size(standing.block_bytes)}" if standing.block_bytes else ""
    journal = f", journal {standing.journal}" if standing.journal else ""
    say(
        f"  {what:<12} {standing.type or 'not mounted'}{f' on {standing.target}' if standing.target else ''}{blocks}{journal}"
    )
    if standing.shown:
        say(f"  {'options':<12} {','.join(standing.shown)}")
    for layer in standing.layers:
        indent = "  " * layer.depth
        told = [layer.kind, format_size(layer.size_bytes), layer.model]
        if layer.sector_bytes:
            told.append(f"sectors of {layer.sector_bytes} bytes")
        if layer.write_cache:
            told.append(f"write cache {layer.write_cache}")
        if layer.file:
            told.append(f"file {layer.file}")
        say(f"  {'device':<12} {indent}{layer.name}: {', '.join(each for each in told if each)}")


def _write(plan: Path, text: str) -> None:
    made = first_made(plan)
    try:
        with plan.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise PlanError(f"{plan} cannot be written: {error.strerror or error}") from error
    give_to_caller(made)
