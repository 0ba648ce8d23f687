"""Writes docs/COMMANDS.md from the commands themselves: `python -m bedplate.cli.reference > docs/COMMANDS.md`."""

from __future__ import annotations

import click

from bedplate.cli.app import program

_HEAD = """\
# Commands

What `bedplate COMMAND --help` prints, for reading in one place. A test holds this page to the program;
`PYTHONPATH=src python -m bedplate.cli.reference > docs/COMMANDS.md` renews it.

Measuring needs root, as it formats and mounts, or a guest (`--executor qemu`). `plan`, `doctor`, `status`,
`show`, `compare`, `effects`, `advise`, `claims`, `report` and `export` need neither. Exit codes: 0 done, 1 some runs failed, 2 the
plan or the call is wrong, 3 a requirement is missing (a tool, a right, the kernel of the next visit), 130
interrupted. `compare --fail-if` has those that `git bisect run` understands: 0 the condition does not hold, 1 it
holds of some comparison, 125 it cannot be told, whatever the reason. 2 is left for options that there are not.

Environment: `BEDPLATE_CACHE` is where builds and the virtual environment are kept (default
`/var/cache/bedplate` for root, `~/.cache/bedplate` else); `BEDPLATE_STATE` where ledgers, locks and mount
points are (default `/run/bedplate` for root); `BEDPLATE_PYTHON` the interpreter to use.
"""


def reference() -> str:
    """The page: the head, then every command that is not internal, in the order of the help."""
    above = program.make_context("bedplate", [], resilient_parsing=True, terminal_width=80)
    parts = [_HEAD]
    for name, command in program.commands.items():
        context = click.Context(command, parent=above, info_name=name)
        parts.append(_section(name, command, context))
        if isinstance(command, click.Group):
            parts += [
                _section(f"{name} {own}", inner, click.Context(inner, parent=context, info_name=own))
                for own, inner in command.commands.items()
            ]
    return "\n".join(parts)


def _section(name: str, command: click.Command, context: click.Context) -> str:
    return f"## {name}\n\n```\n{command.get_help(context).strip()}\n```\n"


if __name__ == "__main__":
    print(reference(), end="")
