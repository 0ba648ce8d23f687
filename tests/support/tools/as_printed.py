"""What a terminal shows of tables, without colours."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType


def as_printed(tables: Iterable[RenderableType], width: int = 80) -> str:
    """The text, at a width in columns."""
    text = StringIO()
    console = Console(file=text, width=width, color_system=None, highlight=False)
    for table in tables:
        console.print(table)
    return text.getvalue()
