"""The manual page, made of the commands: `./check --documents` writes docs/bedplate.1, `man ./docs/bedplate.1` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bedplate import __version__
from bedplate.cli.app import EXIT_CODES, program
from bedplate.cli.documents.examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "bedplate.1"


def manual_page() -> str:
    """The page in roff, as man(7) has it."""
    lines = [
        '.\\" Written by `./check --documents` from the commands; do not edit.',
        f'.TH BEDPLATE 1 "" "bedplate {__version__}" "User Commands"',
        ".SH NAME",
        "bedplate \\- measures databases across Linux file systems",
        ".SH SYNOPSIS",
        ".B bedplate",
        ".I COMMAND",
        ".RI [ OPTIONS ]",
        ".SH DESCRIPTION",
        _text(program.help or ""),
        ".SH COMMANDS",
    ]
    above = click.Context(program, info_name="bedplate")
    for words, command, context in _commands(program, above):
        lines += _section(words, command, context)
    lines += [
        ".SH EXIT STATUS",
        *(line for code, words in EXIT_CODES for line in (".TP", f".B {code}", _text(words))),
    ]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, above: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name, command in group.commands.items():
        context = click.Context(command, parent=above, info_name=name)
        yield context.command_path.partition(" ")[2], command, context
        if isinstance(command, click.Group):
            yield from _commands(command, context)


def _section(words: str, command: click.Command, context: click.Context) -> list[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS {_text(f'{words} {usage}')}", *_paragraphs(command.help or "")]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            lines += [".TP", f".B {_text(record[0])}", _text(record[1])]
    if words in EXAMPLES:
        lines += [".PP", "Examples:", ".PP", ".nf", ".RS", *map(_text, EXAMPLES[words]), ".RE", ".fi"]
    return lines


def _paragraphs(help_text: str) -> Iterator[str]:
    for paragraph in help_text.split("\n\n"):
        yield from (".PP", _text(" ".join(paragraph.split())))


def _text(words: str) -> str:
    """Text that roff shows as it is."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("’", "'")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
