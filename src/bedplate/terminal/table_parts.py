"""What the tables of the terminal are put together from: footnotes, names of cells, heads, reasons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import NamedTuple

from rich.text import Text

from bedplate.analysis.labels import CellLabel
from bedplate.analysis.overview import CellFacts, Measurement, Overview
from bedplate.analysis.wording import (
    FAILED_MARK,
    MISSING_MARK,
    SAME_IN_FORCE,
    SUSPECT_MARK,
    UNKNOWN_MARK,
    VALID_MARK,
    Told,
    block_words,
    capital,
    mark,
    number_words,
    one_sentence,
    shape,
    told_of,
)
from bedplate.model.course import filled
from bedplate.statistics.comparison import EstimateKind
from bedplate.terminal.fitting_table import FittingTable

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

# So many stand in one bracket: a column is that wide.
_MARKS_TOGETHER = 3

# More notes than that nobody reads: of one cell or figure, and of one table.
_MOST_AT_A_PLACE, _MOST_NOTES = 30, 250

BAR_CELLS = 7

_EIGHTHS = " ▏▎▍▌▋▊▉█"


class Notes:
    """Footnotes in the order in which they come up, each sentence once.

    Their marks are letters in brackets: a digit behind a figure is read as part of it, raised or not.
    """

    def __init__(self) -> None:
        self._sentences: dict[tuple[str, ...], list[Told]] = {}
        self._marks: dict[tuple[str, ...], str] = {}
        self._left_out: set[tuple[str, ...]] = set()

    def marks(self, *sentences: str, before: str = " ") -> str:
        """The marks of sentences, ` [a,b]`, with what stands `before` each bracket; nothing of none."""
        return self.marks_of(map(Told, sentences), before=before)

    def marks_of(self, told: Iterable[Told], *, before: str = " ") -> str:
        """Those of what is told of runs. Sentences on doubted runs become one where only their numbers differ.

        A damaged study may have a hundred thousand: what is too much at one place or in all stands in no note, and is counted below them.
        """
        letters: dict[str, None] = {}
        is_left_out = False
        for each in told:
            letter = self._letter(each, has_room=len(letters) < _MOST_AT_A_PLACE)
            is_left_out |= letter is None
            if letter is not None:
                letters[letter] = None
        shown = [*letters, *(("…",) if is_left_out else ())]
        together = (shown[at : at + _MARKS_TOGETHER] for at in range(0, len(shown), _MARKS_TOGETHER))
        return "".join(f"{before}[{','.join(some)}]" for some in together)

    def _letter(self, told: Told, *, has_room: bool) -> str | None:
        key = shape(told)
        if key not in self._sentences:
            if not has_room or len(self._sentences) >= _MOST_NOTES:
                self._left_out.add(key)
                return None
            self._marks[key] = _letters(len(self._sentences))
        self._sentences.setdefault(key, []).append(told)
        return self._marks[key]

    def lines(self) -> list[Text]:
        """The notes as they stand below the table."""
        found = [
            Text(f"[{letter}] {one_sentence(self._sentences[key])}", style="dim")
            for key, letter in self._marks.items()
        ]
        more = len(self._left_out - self._sentences.keys())
        if more:
            found.append(Text(f"[…] {more:,} more; the same command with --json has each.", style="dim"))
        return found


def _letters(place: int) -> str:
    """From a to z, then aa, ab and so on, as a spreadsheet counts its columns."""
    more, last = divmod(place, len(ascii_lowercase))
    return (_letters(more - 1) if more else "") + ascii_lowercase[last]


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
    return [Text(f"{capital(words)}.", style="yellow") for words in found.marks]


def label_name(label: CellLabel) -> Text:
    """What a cell is called, its blocks below."""
    name = Text(label.panel)
    name.append(f"\n{block_words(label)}", style="dim")
    return name


def cell_name(found: Overview, cell: CellFacts, notes: Notes) -> Text:
    """A cell in the first column of a table, with footnotes for what is to be known of it."""
    name = label_name(cell.label)
    same = (filled(SAME_IN_FORCE, cells=found.cells[other].label.full) for other in cell.identical_to)
    name.append(notes.marks(*same, *(note.sentence for note in cell.notes)), style="dim")
    return name


def state_text(counts: Iterable[int], measurements: Sequence[Measurement], notes: Notes) -> Text:
    """The last column: how many values stand behind the figures, the mark, and why it is what it is."""
    sign = mark(measurements)
    state = Text("/".join(str(count) for count in dict.fromkeys(counts)))
    state.append(f" {sign}", style=_STYLES[sign])
    # Lines of their own: rich would cut off what does not fit behind the mark.
    state.append(notes.marks_of(told_of(measurements), before="\n"), style="dim")
    return state


def shortened(text: str, columns: int = 26) -> str:
    """The head of a column: what is longer stands in full in the legend."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


_EQUAL = "│"

_POINT = "●"

_LINE = "─"

# Beyond this factor a row is an arrow: one wild cell would press all others into the middle.
_RATIO_MAX = 10.0

_RATIO_MIN = 1.05


class Span(NamedTuple):
    """An estimate with its bounds; one bound is None where that side is open, both where there is no interval."""

    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BarScale:
    """Half of a bar's width on the scale of the arithmetic: natural logarithms for ratios."""

    kind: EstimateKind
    half: float

    @property
    def words(self) -> str:
        """What the ends of a bar are: `1/1.5 to 1.5`."""
        if self.kind is EstimateKind.RATIO:
            return f"1/{math.exp(self.half):.3g} to {math.exp(self.half):.3g}"
        end = f"{self.half:.3g}" if self.half < 999.5 else number_words(self.half)
        return f"-{end} to {end}"


def bar_scale(kind: EstimateKind, spans: Iterable[Span]) -> BarScale | None:
    """The smallest scale that holds every estimate and bound, up to a factor of 10; None where there is none."""
    found = [span for span in spans if span.estimate is not None]
    if not found:
        return None
    ends = [abs(moved) for span in found for value in span if (moved := _moved(kind, value)) is not None]
    largest = max(ends, default=0.0)
    if kind is EstimateKind.RATIO:
        return BarScale(
            kind,
            math.log(_rounded_up(math.exp(min(max(largest, math.log(_RATIO_MIN)), math.log(_RATIO_MAX))))),
        )
    return BarScale(kind, largest or 1.0)


def interval_bar(span: Span, scale: BarScale, *, columns: int) -> str:
    """`   ──●─│    `: as many characters as `columns`, an odd number; arrows for what lies beyond the scale."""
    middle = columns // 2
    text = [" "] * columns
    text[middle] = _EQUAL
    point = _moved(scale.kind, span.estimate)
    if point is None:
        return "".join(text)
    low, high = (_moved(scale.kind, bound) for bound in (span.low, span.high))
    if low is not None or high is not None:
        first = -scale.half if low is None else low
        last = scale.half if high is None else high
        for at in range(_column(first, scale, middle), _column(last, scale, middle) + 1):
            text[at] = "┼" if at == middle else _LINE
    text[_column(point, scale, middle)] = _POINT
    if point < -scale.half or (low is not None and low < -scale.half * 1.001):
        text[0] = "◂"
    if point > scale.half or (high is not None and high > scale.half * 1.001):
        text[-1] = "▸"
    return "".join(text)


def _moved(kind: EstimateKind, value: float | None) -> float | None:
    if value is None or kind is EstimateKind.DIFFERENCE:
        return value
    return math.log(value) if value > 0 else None


def _column(value: float, scale: BarScale, middle: int) -> int:
    share = min(1.0, max(-1.0, value / scale.half))
    return middle + round(share * middle)


def _rounded_up(ratio: float) -> float:
    """The next ratio that reads well: 1.1, 1.25, 1.5, 2, 3, 5, 10."""
    return next((end for end in (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0) if ratio <= end), _RATIO_MAX)
