"""Writes docs/COMMANDS.md from the commands themselves: `python -m bedplate.cli.reference > docs/COMMANDS.md`."""

from __future__ import annotations

from typer.main import get_command
from typer.testing import CliRunner

from bedplate.cli.app import app

_HEAD = """\
# Commands

What `bedplate COMMAND --help` prints, for reading in one place. A test holds this page to the program;
`PYTHONPATH=src python -m bedplate.cli.reference > docs/COMMANDS.md` renews it.

Measuring needs root, as it formats and mounts. `plan`, `doctor`, `status`, `show`, `report` and `export`
do not. Exit codes: 0 done, 1 some runs failed, 2 the plan or the call is wrong, 3 a requirement is
missing, 130 interrupted.

Environment: `BEDPLATE_CACHE` is where builds and the virtual environment are kept (default
`/var/cache/bedplate` for root, `~/.cache/bedplate` else); `BEDPLATE_STATE` where ledgers, locks and mount
points are (default `/run/bedplate` for root); `BEDPLATE_PYTHON` the interpreter to use.
"""


def reference() -> str:
    """The page: the head, then every command that is not internal, in the order of the help."""
    runner = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
    parts = [_HEAD]
    commands = getattr(get_command(app), "commands", {})
    for name, command in commands.items():
        if command.hidden:
            continue
        shown = runner.invoke(app, [name, "--help"], prog_name="bedplate").output.strip()
        parts.append(f"## {name}\n\n```\n{shown}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(reference(), end="")
