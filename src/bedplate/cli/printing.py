"""What every command prints its findings with: tables for a person, one JSON document for a program."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    print()


def print_tables(tables: Sequence[object]) -> None:
    """Tables as wide as the terminal, through a pager too; `COLUMNS`, or 80 columns, where there is none."""
    from bedplate.cli.console import PipedConsole  # noqa: PLC0415

    console = PipedConsole(highlight=False)
    for table in tables:
        console.print(table)
