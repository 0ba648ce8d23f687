"""What the tables of the terminal are put together from: footnotes, names of cells, heads, reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from bedplate.analysis.reason_ranges import Told, one_sentence, shape
from bedplate.analysis.wording import (
    FAILED_MARK,
    MISSING_MARK,
    SAME_IN_FORCE,
    SUSPECT_MARK,
    UNKNOWN_MARK,
    VALID_MARK,
    block_words,
    mark,
    told_of,
)
from bedplate.model.template import filled
from bedplate.terminal.fitting_table import FittingTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.analysis.overview import CellFacts, Measurement, Overview

MARKS = (
    f"{VALID_MARK} valid, {SUSPECT_MARK} suspect, {UNKNOWN_MARK} validity unknown, {FAILED_MARK} failed, "
    f"{MISSING_MARK} incomplete."
)
_STYLES = {
    VALID_MARK: "green",
    SUSPECT_MARK: "yellow",
    UNKNOWN_MARK: "yellow",
    FAILED_MARK: "red",
    MISSING_MARK: "dim",
}
_NUMBERS_IN_A_LINE = 3
BAR_CELLS = 7
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class Notes:
    """Footnotes in the order in which they come up, each sentence once."""

    def __init__(self) -> None:
        self._sentences: dict[tuple[str, ...], list[Told]] = {}

    def number(self, sentence: str) -> str:
        """The superscript of a sentence."""
        return self.of_told(Told(sentence))

    def of_told(self, told: Told) -> str:
        """The superscript of what is told of runs. Sentences on doubted runs become one where only their numbers differ."""
        key = shape(told)
        self._sentences.setdefault(key, []).append(told)
        found = list(self._sentences).index(key) + 1
        return str(found).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))

    def lines(self) -> list[Text]:
        """The notes as they stand below the table."""
        return [
            Text(f"{number} {one_sentence(alike)}", style="dim")
            for number, alike in enumerate(self._sentences.values(), start=1)
        ]


def bar(value: float | None, largest: float, *, cells: int = BAR_CELLS) -> str:
    """A bar of block characters, `cells` long for the largest value; empty without a value."""
    if value is None or largest <= 0 or value <= 0:
        return ""
    eighths = max(1, round(value / largest * cells * 8))
    whole, rest = divmod(min(eighths, cells * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def plain_table() -> FittingTable:
    """A table with a line below its head and nothing else, which breaks no number."""
    return FittingTable()


def mark_lines(found: Overview) -> list[Text]:
    """What stands beside every figure of a study, one sentence a line."""
    return [Text(f"{words[:1].upper()}{words[1:]}.", style="yellow") for words in found.marks]


def cell_name(found: Overview, cell: CellFacts, notes: Notes) -> Text:
    """A cell in the first column of a table, with footnotes for what is to be known of it."""
    name = Text(cell.label.panel)
    name.append(f"\n{block_words(cell)}", style="dim")
    for other in cell.identical_to:
        name.append(notes.number(filled(SAME_IN_FORCE, cells=found.cells[other].label.full)), style="dim")
    for note in cell.notes:
        name.append(notes.number(note.sentence), style="dim")
    return name


def state_text(counts: Iterable[int], measurements: Sequence[Measurement], notes: Notes) -> Text:
    """The last column: how many values stand behind the figures, the mark, and why it is what it is."""
    sign = mark(measurements)
    state = Text("/".join(str(count) for count in dict.fromkeys(counts)))
    state.append(f" {sign}", style=_STYLES[sign])
    # A line of their own: rich would cut off what does not fit behind the mark.
    numbers = list(dict.fromkeys(notes.of_told(told) for told in told_of(measurements)))
    lines = [numbers[i : i + _NUMBERS_IN_A_LINE] for i in range(0, len(numbers), _NUMBERS_IN_A_LINE)]
    state.append("".join(f"\n{','.join(line)}" for line in lines), style="dim")
    return state


def shortened(text: str, columns: int = 26) -> str:
    """The head of a column: what is longer stands in full in the legend."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"
