"""What the tables of the terminal are put together from: footnotes, names of cells, heads, reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from bedplate.report.alike_reasons import one_sentence, shape
from bedplate.report.fitting_table import FittingTable
from bedplate.report.overview import Trouble
from bedplate.report.wording import FAILED_MARK, MISSING_MARK, SUSPECT_MARK, UNKNOWN_MARK, VALID_MARK, mark
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.report.overview import CellFacts, Measurement, Overview

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
        self._sentences: dict[tuple[str, ...], list[str]] = {}

    def number(self, sentence: str) -> str:
        """The superscript of a sentence."""
        return self._number((sentence,), sentence)

    def of_reason(self, reason: str) -> str:
        """The superscript of a reason; those of runs in doubt that differ in numbers alone share it."""
        return self._number(shape(reason), reason)

    def _number(self, key: tuple[str, ...], sentence: str) -> str:
        self._sentences.setdefault(key, []).append(sentence)
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


def block_words(cell: CellFacts) -> str:
    """The block sizes of a cell in few columns: `fs 4k · db 8k`; an engine may have none."""
    label = cell.label
    database = f" · db {_size(label.database_block_bytes)}" if label.database_block else ""
    return f"fs {_size(label.filesystem_block_bytes)}{database}"


def cell_name(found: Overview, cell: CellFacts, notes: Notes) -> Text:
    """A cell in the first column of a table, with footnotes for what is to be known of it."""
    name = Text(cell.label.panel)
    name.append(f"\n{block_words(cell)}", style="dim")
    for other in cell.identical_to:
        name.append(notes.number(f"in force is the same as in {found.cells[other].label.full}"), style="dim")
    for note in cell.notes:
        name.append(notes.number(note), style="dim")
    return name


def state_text(counts: Iterable[int], measurements: Sequence[Measurement], notes: Notes) -> Text:
    """The last column: how many values stand behind the figures, the mark, and why it is what it is."""
    sign = mark(measurements)
    state = Text("/".join(str(count) for count in dict.fromkeys(counts)))
    state.append(f" {sign}", style=_STYLES[sign])
    # A line of their own: rich would cut off what does not fit behind the mark.
    numbers = list(dict.fromkeys(notes.of_reason(reason) for reason in reasons_of(measurements)))
    lines = [numbers[i : i + _NUMBERS_IN_A_LINE] for i in range(0, len(numbers), _NUMBERS_IN_A_LINE)]
    state.append("".join(f"\n{','.join(line)}" for line in lines), style="dim")
    return state


def reasons_of(measurements: Sequence[Measurement]) -> list[str]:
    """What is to be said of a cell's runs; what is said of several (a failure, a kernel warning) stands once."""
    found: dict[tuple[Trouble, str], dict[str, None]] = {}
    for m in measurements:
        if m.trouble is None:
            continue
        for reason in m.reasons or ("no reason was recorded",):
            runs = found.setdefault((m.trouble, reason), {})
            if m.figures:
                runs[m.run] = None
    told = []
    for (trouble, reason), runs in found.items():
        where = f" ({', '.join(runs)})" if runs else ""
        head = "unknown validity" if trouble is Trouble.UNKNOWN else trouble.value
        told.append(reason if trouble is Trouble.NOT_RUN else f"{head}{where}: {reason}")
    return told


def shortened(text: str, columns: int = 26) -> str:
    """The head of a column: what is longer stands in full in the legend."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


def _size(size_bytes: int | None) -> str:
    """A block size in few columns: `4k`; `default` where nothing was asked for and nothing read back."""
    if size_bytes is None:
        return "default"
    return format_size(size_bytes).replace(" KiB", "k").replace(" MiB", "M").replace(" B", "")
