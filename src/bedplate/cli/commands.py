"""How a command is reached: the views of one, names that it had before, and the one walk over all that are listed.

Why a reading command has views: docs/decisions/0128-twenty-commands.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from copy import copy
from functools import wraps
from typing import Any

import click


class Viewed(click.Command):
    """A command with views, each with arguments, options and help of its own: `show STUDY --effects`.

    The flag of a view may be anywhere among the words. An option of another view is refused, and not ignored.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.views: dict[str, click.Command] = {}

    def add_view(self, flag: str, view: click.Command) -> None:
        """List it among the options, where a person and a shell's completion look for it."""
        self.views[flag] = view
        summary = view.get_short_help_str(limit=200).removesuffix(".")
        words = f"instead: {summary[:1].lower()}{summary[1:]}"
        self.params.append(click.Option([flag], is_flag=True, expose_value=False, help=words))

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """That of the view which the words name."""
        options = args[: args.index("--")] if "--" in args else args
        flags = [word for word in options if word in self.views]
        if not flags:
            return super().make_context(info_name, args, parent, **extra)
        if len(flags) > 1:
            raise click.UsageError(
                f"{' and '.join(flags)} are views of their own; give one at a time", parent
            )
        others = list(args)
        others.remove(flags[0])
        return self.views[flags[0]].make_context(f"{info_name} {flags[0]}", others, parent, **extra)


def add_former(group: click.Group, name: str, command: click.Command, today: str) -> None:
    """A name of earlier versions, which is not listed: it does what it did, and names the one of `today` on standard error."""
    former = copy(command)
    former.name, former.hidden = name, True
    act: Callable[..., Any] | None = command.callback
    if act is not None:

        @wraps(act)
        def noted(*arguments: Any, **options: Any) -> Any:
            print(f"note: this is `bedplate {today}` now", file=sys.stderr)
            return act(*arguments, **options)

        former.callback = noted
    group.add_command(former, name)


def root_context(group: click.Group) -> click.Context:
    """That of a call without words, with the settings of the whole program."""
    return click.Context(group, info_name="bedplate", **group.context_settings)


def every_command(
    group: click.Group, above: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Each one that is listed by its words, views behind their command and the commands of a group behind it, in the order of the help."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        views = command.views if isinstance(command, Viewed) else {}
        for words, listed in {
            name: command,
            **{f"{name} {flag}": view for flag, view in views.items()},
        }.items():
            context = click.Context(listed, parent=above, info_name=words)
            yield context.command_path.partition(" ")[2], listed, context
            if isinstance(listed, click.Group):
                yield from every_command(listed, context)
