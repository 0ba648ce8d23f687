"""What every command prints its findings with: tables for a person, one JSON document for a program."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

from bedplate.campaign.terminal_edge import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence


# `  time             about 9 min`: what follows the name of a line stands in a column of its own.
_NAME = re.compile(r"\s*\S+(?: \S+)*? {2,}")
# What is not parted at the end of a line: a number and its unit, a setting and its value.
_HELD = re.compile(r"(?<=\d) (?=%|(?:ms|s|min|h|B|kB|MB|GB|KiB|MiB|GiB)\b)|(?<=\w) (?== )|(?<= =) (?=\S)")
# A command is copied: whole where a line has room for it.
_COMMAND = re.compile(r"`[^`]+`")
_NO_BREAK = "\N{NO-BREAK SPACE}"

_COLUMNS_WITHOUT_TERMINAL = 80


def say(line: str = "") -> None:
    """One line of text; on a terminal broken between words, and continued below where its text begins.

    A terminal breaks a line wherever it ends, within a number too. What is read by a program stays one line.
    """
    width = _columns()
    if width is None or len(line) <= width:
        print(line)
        return
    name = _NAME.match(line)
    begin = len(name.group()) if name else len(line) - len(line.lstrip()) + 2
    indent = begin if begin <= width // 2 else 4
    filled = textwrap.fill(
        _held(line, width - indent),
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    print(filled.replace(_NO_BREAK, " "))


def _held(line: str, room: int) -> str:
    """The line with no-break spaces where it is not to be parted."""
    whole = _COMMAND.sub(
        lambda found: found.group().replace(" ", _NO_BREAK) if len(found.group()) <= room else found.group(),
        line,
    )
    return _HELD.sub(_NO_BREAK, whole)


def _columns() -> int | None:
    """How wide the terminal is, or `COLUMNS` says; None where neither is known."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(shutil.get_terminal_size().columns, 20)
    return None


def columns() -> int:
    """How many columns a line may have: as many as the terminal has, 80 where there is none."""
    return _columns() or _COLUMNS_WITHOUT_TERMINAL


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    print(json_text(document))


def print_tables(tables: Sequence[object]) -> None:
    """Tables as wide as the terminal, through a pager too; `COLUMNS`, or 80 columns, where there is none."""
    from bedplate.campaign.terminal_console import TerminalConsole  # noqa: PLC0415

    console = TerminalConsole()
    for table in tables:
        console.print(table)
