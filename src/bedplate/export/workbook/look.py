"""The sheet to look through results with, one choice at a time, and the two that its formulas read.

`Look` holds formulas only, beside the cell with the drop-down list. Each of its rows finds the row of `Results` whose
`key` is (number of the choice, number of the cell): sorting or filtering `Results` changes nothing here. The
number of the choice is found by EXACT, since MATCH on texts takes `*`, `?` and, in LibreOffice, regular
expressions for patterns, and both programs ignore case in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.analysis.parts import WHOLE
from bedplate.analysis.run_heads import promised
from bedplate.analysis.wording import AFTER_POWER_CUT, capital, durability_class, durability_words
from bedplate.export.workbook.model import (
    Area,
    BarChart,
    ChartSeries,
    Column,
    DropDown,
    Formula,
    Sheet,
    cell_value,
    cells,
)
from bedplate.export.workbook.results import factor_cells, factor_columns, promise_width
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, ONLY_READS, UNKNOWN, UNSAFE
from bedplate.statistics.summary import SUSPECT, TRUSTED, UNKNOWN_BASIS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.overview import Overview
    from bedplate.export.factor_columns import Factors
    from bedplate.export.workbook.model import Plain, Value
    from bedplate.export.workbook.results import Result, SheetChoice
    from bedplate.model.visit import Durability

LOOK, RESULTS, CHOICES = "Look", "Results", "Choices"
# So many cells may a study have before two keys are the same: more than a sheet has rows.
_CELLS_MAX = 10_000_000
# With an intact palette for those who see red and green alike, and told apart in grey.
_COLOURS = {
    DURABLE: "#2f6f9f",
    BOUNDED_LOSS: "#e0a030",
    UNSAFE: "#b03a2e",
    UNKNOWN: "#8a8a8a",
    ONLY_READS: "#7fb3d5",
}
_VOLATILE = "with a volatile cache"
_PROMISE = AFTER_POWER_CUT
_OF_A_CHOICE = (
    Column("choice", 44),
    Column("workload", 10),
    Column("dataset", 24),
    Column("run", 16),
    Column("phase", 12),
    Column("item", 12),
    Column("metric", 26),
    Column("unit", 9),
    Column("better", 9),
)
_CHOICE_COLUMNS = (*_OF_A_CHOICE, Column("definition", 80), Column("number", 9))
_RESULT_COLUMNS = (
    *_OF_A_CHOICE,
    Column("cell", 44),
    Column("cell id", 30),
    Column(_PROMISE, 18),
    Column(_VOLATILE, 18),
    Column("mean"),
    Column("low"),
    Column("high"),
    Column("smallest"),
    Column("largest"),
    Column("n", 5),
    Column("basis", 9),
    Column("validity", 11),
    Column("suspect", 9),
    Column("unknown", 10),
    Column("failed", 8),
    Column("not run", 9),
    Column("absent", 8),
    Column("censored", 10),
    Column("limit", 9),
    Column("emulated", 10),
    Column("remarks", 80),
    Column("key", 12),
)
_AT = {column.head: place for place, column in enumerate(_RESULT_COLUMNS)}
_CHOICE_AT = {column.head: place for place, column in enumerate(_CHOICE_COLUMNS)}
# In `Look`, below its title: the drop-down list, then what was chosen.
_CHOSEN_ROW = 1
# The smallest and the largest width of the column of names.
_NAME_WIDTHS = (50.0, 80.0)
# Columns of `Look` that show one column of `Results` each, behind the name of the cell.
_SHOWN = (_PROMISE, "mean", "low", "high", "n", "unit", "remarks")
_WIDTHS = {"n": 5.0, "unit": 9.0, "remarks": 40.0}


def choices_sheet(choices: Sequence[SheetChoice]) -> Sheet:
    """What the drop-down list offers, with the meaning of each."""
    rows = tuple(
        cells(*_of_choice(choice), choice.metric.definition, number)
        for number, choice in enumerate(choices, start=1)
    )
    return Sheet(CHOICES, _CHOICE_COLUMNS, rows, filtered=True)


def results_sheet(choices: Sequence[SheetChoice], results: Sequence[Result], factors: Factors) -> Sheet:
    """Every cell in every choice, a row each; `results` in the order of `results_of`. Behind them the factors."""
    numbers = {choice.label: number for number, choice in enumerate(choices, start=1)}
    count = len(results) // len(choices) if choices else 0
    rows = tuple(
        (
            *_result_row(result, _key(numbers[result.choice.label], place % count)),
            *factor_cells(factors, factors.names, result),
        )
        for place, result in enumerate(results)
    )
    width = promise_width(map(_durability, results))
    columns = tuple(
        replace(column, width=width) if column.head == _PROMISE else column for column in _RESULT_COLUMNS
    )
    return Sheet(RESULTS, (*columns, *factor_columns(factors.names)), rows, filtered=True)


def _of_choice(choice: SheetChoice) -> tuple[str, ...]:
    whole = (choice.part.phase, choice.part.item) == (WHOLE, "")
    part = ("", "") if whole else (choice.part.phase, choice.part.item)
    known = choice.metric
    return (choice.label, choice.workload, *choice.run, *part, known.name, known.unit, known.better.value)


def _result_row(result: Result, key: int) -> tuple[Plain, ...]:
    summary, durability = result.summary, _durability(result)
    return cells(
        *_of_choice(result.choice),
        result.name,
        result.cell.id,
        durability_words(durability),
        durability_class(durability, result.cell.cache),
        summary.centre,
        summary.low,
        summary.high,
        summary.minimum,
        summary.maximum,
        summary.n,
        summary.basis,
        result.validity,
        summary.suspect,
        summary.unknown,
        summary.failed,
        summary.not_run,
        summary.absent,
        summary.censored,
        result.limit,
        result.cell.emulated,
        result.remarks,
        key,
    )


def _durability(result: Result) -> Durability | None:
    choice = result.choice
    return promised(choice.spec, result.cell.durability, choice.part.phase, choice.part.item)


def _key(choice: int, cell: int) -> int:
    """The number of a choice from 1 and that of a cell from 0, as one number."""
    return choice * _CELLS_MAX + cell


def look_sheet(found: Overview, choices: Sequence[SheetChoice], results: Sequence[Result]) -> Sheet:
    """The first choice chosen; without any choice a sheet that says so."""
    title = cells(f"{found.study.facts.title}: one figure at a time")
    marks = [cells(f"{capital(words)}.") for words in found.marks]
    if not choices or not found.cells:
        return Sheet(
            LOOK, (Column("cell", 44),), (), (title, cells("Nothing has been measured yet."), *marks)
        )
    look = _Look(choices, results, len(found.cells), head_row=3 + len(marks))
    lead = (title, look.chosen(), look.meaning(), *marks)
    return Sheet(
        LOOK,
        look.columns(),
        (*(look.row(place) for place in range(len(found.cells))), look.zero()),
        lead,
        choice=DropDown(_CHOSEN_ROW, 0, look.labels),
        chart=look.chart(),
    )


class _Look:
    """The formulas of the sheet, with what they come to for the first choice, of the first `count` results."""

    def __init__(
        self, choices: Sequence[SheetChoice], results: Sequence[Result], count: int, *, head_row: int
    ) -> None:
        self._choice = choices[0]
        self._first = [_result_row(result, 0) for result in results[:count]]
        self._head_row = head_row
        self._results_end = len(results)
        self._chosen = Area(LOOK, 0, _CHOSEN_ROW)
        self._number = Area(LOOK, 3, _CHOSEN_ROW)
        self._choices_end = len(choices)
        self.labels = self._of_choices("choice")
        # A cell has another class in another choice: a part of a run may have its own.
        held = {durability_class(_durability(result), result.cell.cache) for result in results}
        longest = max(len(result.name) for result in results[:count])
        self._name_width = min(max(_NAME_WIDTHS[0], longest + 1.0), _NAME_WIDTHS[1])
        # Wide enough for whatever is chosen.
        self._widths = {**_WIDTHS, _PROMISE: promise_width(map(_durability, results))}
        self._classes = [known for known in _COLOURS if known in held]

    def chosen(self) -> tuple[Value, ...]:
        """The choice, and behind it its number, 0 for a text that is no choice."""
        numbers = self._of_choices("number")
        number = Formula(("SUMPRODUCT(EXACT(", self.labels, ";", self._chosen, ")*", numbers, ")"), 1)
        return (cell_value(self._choice.label), "◂ choose from its list", "number", number)

    def meaning(self) -> tuple[Value, ...]:
        """What the chosen metric is, and which way is better."""
        place = (";MATCH(", self._number, ";", self._of_choices("number"), ";0))")
        known = self._choice.metric
        sentence = Formula(
            (
                *("IF(", self._number, '=0;"not in the list: take one from it";'),
                *("INDEX(", self._of_choices("definition"), *place, '&" (better: "&'),
                *("INDEX(", self._of_choices("better"), *place, '&")")'),
            ),
            f"{known.definition} (better: {known.better.value})",
        )
        return (sentence,)

    def _of_choices(self, head: str) -> Area:
        return Area(CHOICES, _CHOICE_AT[head], 1, self._choices_end)

    def columns(self) -> tuple[Column, ...]:
        """The name, what is shown of the results, and what only formulas and the chart need."""
        return (
            Column("cell", self._name_width),
            *(Column(head, self._widths.get(head, 12.0)) for head in _SHOWN),
            Column("row in Results", 16, hidden=True),
            Column("bar", 9, hidden=True),
            *(
                Column(known if known == ONLY_READS else f"{known} {_VOLATILE}", 32, hidden=True)
                for known in self._classes
            ),
        )

    def row(self, place: int) -> tuple[Value, ...]:
        """The row of one cell, by its place among the cells."""
        values = self._first[place]
        here = self._head_row + 1 + place
        row_of = Area(LOOK, 1 + len(_SHOWN), here)
        key = (self._number, f"*{_CELLS_MAX}+{place}")
        found = Formula(
            ("IF(", self._number, '=0;"";MATCH(', *key, ";", self._of_results("key"), ";0))"), place + 1
        )
        mean = values[_AT["mean"]]
        name, basis = values[_AT["cell"]], values[_AT["basis"]]
        doubt = f" ({basis})" if basis in (SUSPECT, UNKNOWN_BASIS) else ""
        state = " (no value)" if mean is None else doubt
        bar = _where_found(
            row_of,
            (
                *(Area(LOOK, 0, here), "&IF(", Area(LOOK, 1 + _SHOWN.index("mean"), here)),
                *('="";" (no value)";IF(INDEX(', self._of_results("basis"), ";", row_of),
                f')="{TRUSTED}";"";" ("&INDEX(',
                *(self._of_results("basis"), ";", row_of, ')&")"))'),
            ),
            f"{name}{state}",
        )
        return (
            self._taken("cell", row_of, name),
            *(self._taken(head, row_of, values[_AT[head]]) for head in _SHOWN),
            found,
            bar,
            *(self._of_class(known, row_of, here, values) for known in self._classes),
        )

    def zero(self) -> tuple[Plain, ...]:
        """A row for the chart alone: an axis that is scaled to the values starts at 0 where 0 is one of them."""
        others = (None,) * (len(self._classes) - 1)
        return (None,) * (2 + len(_SHOWN)) + (" ", 0, *others)

    def _of_results(self, head: str) -> Area:
        return Area(RESULTS, _AT[head], 1, self._results_end)

    def _taken(self, head: str, row_of: Area, value: Plain) -> Formula:
        """One column of `Results`; what is empty there stays empty, where INDEX alone would make it 0."""
        one = ("INDEX(", self._of_results(head), ";", row_of, ")")
        return _where_found(row_of, ("IF(", *one, '="";"";', *one, ")"), "" if value is None else value)

    def _of_class(self, known: str, row_of: Area, here: int, values: Sequence[Plain]) -> Formula:
        """The mean where the cell is of this class, else nothing: each class is a colour of the chart."""
        mean = Area(LOOK, 1 + _SHOWN.index("mean"), here)
        mine = values[_AT[_VOLATILE]] == known
        shown = values[_AT["mean"]] if mine else None
        return _where_found(
            row_of,
            ("IF(INDEX(", self._of_results(_VOLATILE), ";", row_of, f')="{known}";', mean, ';"")'),
            "" if shown is None else shown,
        )

    def chart(self) -> BarChart:
        """A bar for each cell, coloured by what a power cut leaves with a volatile cache."""
        first, last = self._head_row + 1, self._head_row + len(self._first) + 1
        bar = 2 + len(_SHOWN)
        return BarChart(
            "Means of what is chosen; colours: what survives a power cut",
            Area(LOOK, bar, first, last),
            tuple(
                ChartSeries(
                    Area(LOOK, bar + 1 + place, self._head_row),
                    Area(LOOK, bar + 1 + place, first, last),
                    _COLOURS[known],
                )
                for place, known in enumerate(self._classes)
            ),
        )


def _where_found(row_of: Area, parts: tuple[str | Area, ...], shown: Plain) -> Formula:
    """The formula that the parts make; an empty text where the choice has no row."""
    return Formula(("IF(ISNUMBER(", row_of, ");", *parts, ';"")'), shown)
