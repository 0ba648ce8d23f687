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
    print(
        textwrap.fill(
            line,
            width,
            subsequent_indent=" " * (begin if begin <= width // 2 else 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


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
