"""Completion for bash, zsh and fish: what a shell is given, and what it is answered.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import os

import click

_VARIABLE = "_BEDPLATE_COMPLETE"
_PROGRAM = "bedplate"


class OneOf(click.Choice[str]):
    """One of some words; of a wrong one the message names what was meant, behind all that there are."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """As click has it, and `did you mean zsh?`."""
        from bedplate.near_names import did_you_mean  # noqa: PLC0415 -- of a wrong word alone

        listed = super().get_invalid_choice_message(value, ctx)
        hint = did_you_mean(str(value), self.choices)
        return f"{listed} {hint[0].upper()}{hint[1:]}" if hint else listed


@click.command()
@click.argument(
    "shell",
    metavar="SHELL",
    type=OneOf(["bash", "zsh", "fish"]),
    help="bash, zsh or fish",
)
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what completes commands, options and metrics in a shell: `eval "$(bedplate completion bash)"`."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    of_shell = get_completion_class(shell)
    if of_shell is not None:
        print(of_shell(context.find_root().command, {}, _PROGRAM, _VARIABLE).source())


def completed(program: click.Command) -> int | None:
    """Answer a shell that asks how a line goes on; the exit code, or None where none asks."""
    asked = os.environ.get(_VARIABLE)
    if asked is None:
        return None
    from click.shell_completion import shell_complete  # noqa: PLC0415

    return shell_complete(program, {}, _PROGRAM, _VARIABLE, asked)


class MetricName(click.ParamType[str]):
    """A metric by its name, a short one, or one that it had before."""

    name = "metric"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 -- click's
        """Its name of today; whether there is such a metric is said where it is looked for."""
        from bedplate.model.metrics import metric_today  # noqa: PLC0415

        return metric_today(value)


METRIC_NAME = MetricName()


def metric_names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Metrics that begin so."""
    from bedplate.model.metrics import METRICS, SHORT_NAMES  # noqa: PLC0415

    return [name for name in (*METRICS, *SHORT_NAMES) if name.startswith(begun)]


def plan_names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Ready plans, plans beside, and folders that begin so."""
    from pathlib import Path  # noqa: PLC0415

    from bedplate.campaign.planning import own_plans  # noqa: PLC0415

    # What stands before the last slash stays as it was typed.
    folder = begun[: begun.rfind("/") + 1]
    try:
        entries = sorted(Path(folder or ".").iterdir())
    except OSError:
        entries = []
    files = [f"{folder}{each.name}" for each in entries if each.suffix == ".toml" or each.is_dir()]
    ready = sorted(plan.stem for plan in own_plans().glob("*.toml"))
    return [name for name in (*ready, *files) if name.startswith(begun)]
