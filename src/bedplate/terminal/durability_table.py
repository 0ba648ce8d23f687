"""The table of durability: how often fsync flushed which device, and what survives a power cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from bedplate.analysis.flush_rates import COUNTED, rate_text
from bedplate.analysis.wording import block_words, durability_words
from bedplate.terminal.table_parts import plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bedplate.analysis.overview import CellFacts, Overview

_WORDS = (
    "Flushes that reached a device per fsync, of an appended and of an overwritten 8 kB block; – none was "
    "counted, or no such device. What is not flushed is lost with a volatile cache."
)


def durability_table(found: Overview) -> RenderableType | None:
    """One row per variant, or per cell where those of a variant differ; None where no visit counted flushes."""
    if not any(cell.flushes for cell in found.cells.values()):
        return None
    table = plain_table()
    table.add_column("cell", min_width=14, max_width=34)
    for device, pattern in COUNTED:
        table.add_column(f"{device}\n{pattern}", justify="right", no_wrap=True)
    table.add_column("after a\npower cut", max_width=12)
    for name, texts in _rows(found):
        table.add_row(name, *map(Text, texts))
    title = Text("Flushes per fsync", style="bold")
    return Group(title, table, Text(_WORDS, style="dim"))


def _rows(found: Overview) -> list[tuple[Text, tuple[str, ...]]]:
    """Names and texts; cells of a variant that say the same are one row under its name alone."""
    variants: dict[str, dict[tuple[str, ...], list[CellFacts]]] = {}
    for cell in found.cells.values():
        texts = (
            *(rate_text(cell.flushes, device, pattern) for device, pattern in COUNTED),
            durability_words(cell.durability).replace(" / ", " /\n").replace("; ", ";\n"),
        )
        variants.setdefault(cell.label.panel, {}).setdefault(texts, []).append(cell)
    rows = []
    for panel, alike in variants.items():
        for texts, cells in alike.items():
            name = Text(panel)
            if len(alike) > 1:
                name.append("".join(f"\n{block_words(cell.label)}" for cell in cells), style="dim")
            rows.append((name, texts))
    return rows
