"""A spreadsheet as plain records, and what its sheets hold; `xlsx.py` writes it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from bedplate import __version__
from bedplate.analysis.effective import effective_document
from bedplate.analysis.fleet import folded, node_kinds
from bedplate.analysis.labels import CellLabel, stands_on_image
from bedplate.analysis.overview import COUNTED, WHOLE, CellFacts, Measurement, Overview, Trouble, rate_text
from bedplate.analysis.part_summaries import PagePart, page_parts, ranked
from bedplate.analysis.run_heads import has_speeds, promised, run_head, view_of
from bedplate.analysis.search import predicted_words, search_of
from bedplate.analysis.wording import (
    AFTER_POWER_CUT,
    SAME_IN_FORCE,
    capital,
    counted,
    device_sectors,
    durability_class,
    durability_words,
    repetitions_sentence,
    told_of,
)
from bedplate.export.columns import Factors, factors_of
from bedplate.export.tables import SEARCH_TABLE, runs_table, workload_exports
from bedplate.model.cell import RunSpec
from bedplate.model.course import filled
from bedplate.model.device_cache import CACHE_WORDS, PROTECTED, VOLATILE_512, sectors_told
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, ONLY_READS, UNKNOWN, UNSAFE
from bedplate.model.figure import Metric
from bedplate.model.machine import StoredMachine
from bedplate.model.metrics import METRICS
from bedplate.model.reason import sentences
from bedplate.model.visit import Durability
from bedplate.statistics.summary import SUSPECT, TRUSTED, UNKNOWN_BASIS, Summary, SummaryKey

# A cell of Excel takes 32,767 characters. Nobody reads a tenth of it in a table.
TEXT_MAX = 2000

NAME_MAX = 80

# As many as older releases of LibreOffice take.
COLUMNS_MAX = 1024

_SHEET_NAME_MAX = 31

_TRIMMED = "' "

# Excel keeps this name for itself, in any spelling.
_RESERVED = ("history",)

_NOT_IN_SHEET_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")

# What XML 1.0 has no way to write; half of a surrogate pair has no encoding either.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Area:
    """Cells of one column of a sheet, from `row` to `last_row`; one cell where that is None."""

    sheet: str
    column: int
    row: int
    last_row: int | None = None


Plain: TypeAlias = str | int | float | None


@dataclass(frozen=True)
class Formula:
    """Text in the words that Excel and LibreOffice share, areas in between; `value` is what it comes to as written.

    A program that does not calculate shows `value`.
    """

    parts: tuple[str | Area, ...]
    value: Plain = None


Value: TypeAlias = Plain | Formula


@dataclass(frozen=True)
class SheetColumn:
    """The head of a column and its width in characters; a `hidden` one is there for formulas."""

    head: Value
    width: float = 12
    hidden: bool = False


@dataclass(frozen=True)
class DropDown:
    """The cell that takes one of the texts of `source`; in the lead of its sheet."""

    row: int
    column: int
    source: Area


@dataclass(frozen=True)
class ChartSeries:
    """One colour of a chart: its `name` and its `values` are cells; `colour` is `#rrggbb`."""

    name: Area
    values: Area
    colour: str


@dataclass(frozen=True)
class BarChart:
    """Horizontal bars, one for each of `labels`, the first on top; a label has a value in one series only."""

    title: str
    labels: Area
    series: tuple[ChartSeries, ...]


@dataclass(frozen=True)
class Sheet:
    """Lead lines, the heads of the columns, and the rows below them.

    Lead and heads stay in sight while the rows scroll. The first lead line is the sheet's title. `chart` stands
    to the right of the rows. `filtered` puts a filter at every head.
    """

    name: str
    columns: tuple[SheetColumn, ...]
    rows: tuple[tuple[Value, ...], ...]
    lead: tuple[tuple[Value, ...], ...] = ()
    filtered: bool = False
    choice: DropDown | None = None
    chart: BarChart | None = None

    @property
    def head_row(self) -> int:
        """The row of the heads."""
        return len(self.lead)

    @property
    def last_row(self) -> int:
        """The last row with anything in it."""
        return self.head_row + len(self.rows)


@dataclass(frozen=True)
class Workbook:
    """All sheets, the first one in sight. `created` is ISO 8601, UTC: that of the study."""

    title: str
    created: str
    sheets: tuple[Sheet, ...]


def cell_text(found: str, *, longest: int = TEXT_MAX) -> str:
    """What a cell may hold: `\ufffd` for what no XML can say, and a visible cut behind `longest` characters."""
    known = _NOT_IN_XML.sub("\ufffd", found)
    if len(known) <= longest:
        return known
    return f"{known[:longest]}… ({len(known):,} characters)"


def short_name(found: str) -> str:
    """A text for one line: runs of blanks and line ends are one blank, and long names are cut early."""
    return cell_text(" ".join(found.split()), longest=NAME_MAX)


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """The names, those that came before with a number behind them."""
    found: dict[str, None] = {}
    for wanted in names:
        number, tried = 1, wanted
        while tried in found:
            number += 1
            tried = f"{wanted} ({number})"
        found[tried] = None
    return tuple(found)


def cell_value(found: object) -> Plain:
    """Anything as a cell: yes and no for booleans, an empty cell for None and for what is no finite number."""
    if found is None:
        return None
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, float) and not math.isfinite(found):
        return None
    # A spreadsheet's numbers are doubles: a longer integer is exact as text only.
    if isinstance(found, int | float) and abs(found) <= 2**53:
        return found
    return found if isinstance(found, float) else (cell_text(str(found)) or None)


def cells(*found: object) -> tuple[Plain, ...]:
    """A row of cells of anything."""
    return tuple(cell_value(one) for one in found)


def looks_like_formula(found: str) -> bool:
    """Whether a program may take the text for a formula when it is edited or read from CSV."""
    return found.startswith(_FORMULA_BEGINNINGS)


def sheet_names(wanted: Sequence[str], taken: Sequence[str] = ()) -> tuple[str, ...]:
    r"""Names of sheets that both programs take, in the order of `wanted`; none is among `taken`.

    At most 31 characters, without `[]:*?/\`, no apostrophe at an end, unique whatever the case.
    """
    found: list[str] = []
    used = {*_RESERVED, *(one.casefold() for one in taken)}
    for one in wanted:
        plain = _NOT_IN_SHEET_NAMES.sub("-", _NOT_IN_XML.sub("-", " ".join(one.split())))
        number, tried = 1, _cut(plain, "")
        while tried.casefold() in used:
            number += 1
            tried = _cut(plain, f" ({number})")
        used.add(tried.casefold())
        found.append(tried)
    return tuple(found)


def _cut(plain: str, end: str) -> str:
    # UTF-16 units, as Excel counts: a character beyond the basic plane is two.
    room = _SHEET_NAME_MAX - len(end)
    kept = plain.strip(_TRIMMED)
    if _units(kept) > room:
        while _units(kept) > room - 1:
            kept = kept[:-1]
        kept = f"{kept.rstrip(_TRIMMED)}…"
    return f"{kept or 'sheet'}{end}"


def _units(found: str) -> int:
    return len(found.encode("utf-16-le", errors="surrogatepass")) // 2


Run = tuple[str, str]

_PROMISE_WIDTH_MIN = 18.0


@dataclass(frozen=True)
class SheetChoice:
    """One metric of one run or of a part of it; `label` is unique, `within` is its part and metric alone."""

    label: str
    spec: RunSpec | None
    run: Run
    part: PagePart
    metric: Metric
    within: str

    @property
    def workload(self) -> str:
        """The type of the run's workload; empty for a run that the schedule does not know."""
        return self.spec.workload if self.spec else ""


@dataclass(frozen=True)
class Result:
    """What one cell came to in one choice.

    `summary` has timeouts ranked above every time; `limit` is the largest that was met. `validity` is a word
    for all its repetitions together. `remarks` say why there is no value, what went wrong, and what is to be
    known of the cell.
    """

    choice: SheetChoice
    cell: CellFacts
    name: str
    summary: Summary
    limit: float | None
    validity: str
    remarks: str


def choices_of(found: Overview) -> tuple[SheetChoice, ...]:
    """Every choice that any cell has something to say of: run by run, its own two figures first, the whole before its parts.

    What parts of a run are looked at for one at a time stands before its others. Those without a value in any cell stand behind all others.
    """
    keys = {_place(key) for key in found.summaries}
    known = {_place(key) for key, summary in found.summaries.items() if summary.n or summary.censored}
    names = [name for _, name in found.runs]
    parts = page_parts([found])
    made: list[SheetChoice] = []
    for run in found.runs:
        spec = found.spec(run)
        here = short_name(run[1])
        if names.count(run[1]) > 1:
            here += f" on {short_name(found.dataset_words(run[0]))}"
        head = run_head(found, run)
        metrics = dict.fromkeys((head.first, head.second, *METRICS))
        of_run: list[SheetChoice] = []
        for part in parts:
            whole = (part.phase, part.item) == (WHOLE, "")
            within = "" if whole else f"{short_name(part.label)}: "
            of_run += [
                SheetChoice(
                    f"{here} · {within}{name}, {METRICS[name].unit}",
                    spec,
                    run,
                    part,
                    METRICS[name],
                    f"{within}{name}",
                )
                for name in metrics
                if (*run, part.phase, part.item, name) in keys
            ]
        made += sorted(of_run, key=lambda choice: not _is_looked_at(choice))
    made.sort(
        key=lambda choice: (*choice.run, choice.part.phase, choice.part.item, choice.metric.name) not in known
    )
    labels = unique(choice.label for choice in made)
    return tuple(replace(choice, label=label) for label, choice in zip(labels, made, strict=True))


def _is_looked_at(choice: SheetChoice) -> bool:
    looked_at = view_of(choice.spec.workload).looked_at if choice.spec else None
    return (choice.part.phase, choice.metric.name) == looked_at


def _place(key: SummaryKey) -> tuple[str, str, str, str, str]:
    return (key.dataset, key.run, key.phase, key.item, key.metric)


def cell_names(found: Overview) -> Mapping[str, str]:
    """The name of every cell, short enough for a table and unlike every other, by id."""
    names = (label_name(cell.label) for cell in found.cells.values())
    return dict(zip(found.cells, unique(names), strict=True))


def label_name(label: CellLabel) -> str:
    """A label on one line, cut in its first part: block sizes tell cells of one panel apart."""
    return replace(label, panel=short_name(label.panel)).full


def results_of(found: Overview, choices: Sequence[SheetChoice]) -> Iterator[Result]:
    """Every cell in every choice, in the order of the choices and in each in that of the schedule."""
    names = cell_names(found)
    about = {cell: cell_remarks(found, cell) for cell in found.cells}
    by_model = _by_the_model(found)
    of_runs: dict[tuple[str, Run], tuple[str, list[str]]] = {}
    for choice in choices:
        for cell in found.cells.values():
            place = (cell.id, choice.run)
            if place not in of_runs:
                measurements = found.of(*place)
                told = [each.sentence for each in told_of(measurements)]
                of_runs[place] = (validity_word(measurements), told)
            validity, reasons = of_runs[place]
            key = SummaryKey(cell.id, *choice.run, choice.metric.name, choice.part.phase, choice.part.item)
            entry = ranked(found, key, found.summaries.get(key, Summary(0)))
            due = bool(found.of(*place))
            why = (
                _of_summary(entry.summary, entry.limit, found.absence(key))
                if due
                else ("not due in this cell",)
            )
            whole = (choice.part.phase, choice.part.item) == (WHOLE, "")
            modelled = by_model.get((cell.id, choice.run[1], choice.metric.name)) if whole else None
            remarks = dict.fromkeys((*why, *reasons, *((modelled,) if modelled else ()), *about[cell.id]))
            yield Result(
                choice, cell, names[cell.id], entry.summary, entry.limit, validity, "; ".join(remarks)
            )


def _by_the_model(found: Overview) -> Mapping[tuple[str, str, str], str]:
    """Of a search what stands beside a mean: what the model makes of it, by cell, run and metric."""
    search = search_of(found)
    if search is None:
        return {}
    return {
        (cell.id, run, search.metric.name): "chosen by a search; by its model {} ({})".format(
            *predicted_words(cell.predicted)
        )
        for cell in search.cells
        if cell.predicted is not None
        for run in search.record.runs
    }


def cell_remarks(found: Overview, cell: str) -> tuple[str, ...]:
    """What is to be known of a cell beside all its figures."""
    facts = found.cells[cell]
    same = (filled(SAME_IN_FORCE, cells=found.cells[other].label.full) for other in facts.identical_to)
    return (*sentences(facts.notes), *same)


def validity_word(measurements: Sequence[Measurement]) -> str:
    """The worst that is to be said of the repetitions of a run; `not due` where the cell, of another engine say, has none."""
    troubles = {m.trouble for m in measurements}
    if Trouble.FAILED in troubles:
        return "failed"
    if Trouble.SUSPECT in troubles:
        return "suspect"
    if Trouble.UNKNOWN in troubles:
        return "unknown"
    if not measurements:
        return "not due"
    return "incomplete" if Trouble.NOT_RUN in troubles else "valid"


def _of_summary(summary: Summary, limit: float | None, absence: str | None) -> Iterator[str]:
    """What the numbers alone do not tell; something in any case where there are none."""
    if summary.basis == SUSPECT:
        yield "only suspect runs"
    elif summary.basis == UNKNOWN_BASIS:
        yield "only runs of unknown validity"
    if summary.censored and limit is not None:
        yield f"{summary.censored} stopped at the limit of {limit:g}"
    elif not summary.n:
        yield absence or counted(summary)


def factor_columns(names: Iterable[str]) -> Iterator[SheetColumn]:
    """A column for each factor, by its key in the plan."""
    return (SheetColumn(name, min(max(12.0, len(name)), 32.0)) for name in names)


def factor_cells(factors: Factors, names: Iterable[str], result: Result) -> tuple[Plain, ...]:
    """What the plan asked for in the run and the cell of a result."""
    levels = factors.of(result.cell.id, result.choice.run)
    return cells(*(levels.get(name) for name in names))


def promise_width(promises: Iterable[Durability | None]) -> float:
    """So wide, in characters, that what survives a power cut is not cut off by the column behind it."""
    return max((_PROMISE_WIDTH_MIN, *(len(durability_words(promise)) + 1.0 for promise in promises)))


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
    SheetColumn("choice", 44),
    SheetColumn("workload", 10),
    SheetColumn("dataset", 24),
    SheetColumn("run", 16),
    SheetColumn("phase", 12),
    SheetColumn("item", 12),
    SheetColumn("metric", 26),
    SheetColumn("unit", 9),
    SheetColumn("better", 9),
)

_CHOICE_COLUMNS = (*_OF_A_CHOICE, SheetColumn("definition", 80), SheetColumn("number", 9))

_RESULT_COLUMNS = (
    *_OF_A_CHOICE,
    SheetColumn("cell", 44),
    SheetColumn("cell id", 30),
    SheetColumn(_PROMISE, 18),
    SheetColumn(_VOLATILE, 18),
    SheetColumn("mean"),
    SheetColumn("low"),
    SheetColumn("high"),
    SheetColumn("smallest"),
    SheetColumn("largest"),
    SheetColumn("n", 5),
    SheetColumn("basis", 9),
    SheetColumn("validity", 11),
    SheetColumn("suspect", 9),
    SheetColumn("unknown", 10),
    SheetColumn("failed", 8),
    SheetColumn("not run", 9),
    SheetColumn("absent", 8),
    SheetColumn("censored", 10),
    SheetColumn("limit", 9),
    SheetColumn("emulated", 10),
    SheetColumn("remarks", 80),
    SheetColumn("key", 12),
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
            LOOK, (SheetColumn("cell", 44),), (), (title, cells("Nothing has been measured yet."), *marks)
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
        number = Formula(("SUMPRODUCT(EXACT(", self.labels, ",", self._chosen, ")*", numbers, ")"), 1)
        return (cell_value(self._choice.label), "◂ choose from its list", "number", number)

    def meaning(self) -> tuple[Value, ...]:
        """What the chosen metric is, and which way is better."""
        place = (",MATCH(", self._number, ",", self._of_choices("number"), ",0))")
        known = self._choice.metric
        sentence = Formula(
            (
                *("IF(", self._number, '=0,"not in the list: take one from it",'),
                *("INDEX(", self._of_choices("definition"), *place, '&" (better: "&'),
                *("INDEX(", self._of_choices("better"), *place, '&")")'),
            ),
            f"{known.definition} (better: {known.better.value})",
        )
        return (sentence,)

    def _of_choices(self, head: str) -> Area:
        return Area(CHOICES, _CHOICE_AT[head], 1, self._choices_end)

    def columns(self) -> tuple[SheetColumn, ...]:
        """The name, what is shown of the results, and what only formulas and the chart need."""
        return (
            SheetColumn("cell", self._name_width),
            *(SheetColumn(head, self._widths.get(head, 12.0)) for head in _SHOWN),
            SheetColumn("row in Results", 16, hidden=True),
            SheetColumn("bar", 9, hidden=True),
            *(
                SheetColumn(known if known == ONLY_READS else f"{known} {_VOLATILE}", 32, hidden=True)
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
            ("IF(", self._number, '=0,"",MATCH(', *key, ",", self._of_results("key"), ",0))"), place + 1
        )
        mean = values[_AT["mean"]]
        name, basis = values[_AT["cell"]], values[_AT["basis"]]
        doubt = f" ({basis})" if basis in (SUSPECT, UNKNOWN_BASIS) else ""
        state = " (no value)" if mean is None else doubt
        bar = _where_found(
            row_of,
            (
                *(Area(LOOK, 0, here), "&IF(", Area(LOOK, 1 + _SHOWN.index("mean"), here)),
                *('=""," (no value)",IF(INDEX(', self._of_results("basis"), ",", row_of),
                f')="{TRUSTED}",""," ("&INDEX(',
                *(self._of_results("basis"), ",", row_of, ')&")"))'),
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
        one = ("INDEX(", self._of_results(head), ",", row_of, ")")
        return _where_found(row_of, ("IF(", *one, '="","",', *one, ")"), "" if value is None else value)

    def _of_class(self, known: str, row_of: Area, here: int, values: Sequence[Plain]) -> Formula:
        """The mean where the cell is of this class, else nothing: each class is a colour of the chart."""
        mean = Area(LOOK, 1 + _SHOWN.index("mean"), here)
        mine = values[_AT[_VOLATILE]] == known
        shown = values[_AT["mean"]] if mine else None
        return _where_found(
            row_of,
            ("IF(INDEX(", self._of_results(_VOLATILE), ",", row_of, f')="{known}",', mean, ',"")'),
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
    return Formula(("IF(ISNUMBER(", row_of, "),", *parts, ',"")'), shown)


CELLS, EFFECTIVE, RUNS, SEARCHED, ABOUT = "Cells", "Asked and effective", "Runs", "Search", "About"

FIXED = (LOOK, RESULTS, CELLS, EFFECTIVE, RUNS, SEARCHED, ABOUT, CHOICES)

_WIDE_HEADS = ("cell", AFTER_POWER_CUT, "validity")

_STATISTICS = ("mean", "low", "high", "n")

_CELL_HEADS = (
    SheetColumn("cell", 44),
    SheetColumn("cell id", 30),
    SheetColumn("in the study", 12),
    SheetColumn("file system", 24),
    SheetColumn("file system block, bytes", 22),
    SheetColumn("engine", 12),
    SheetColumn("database block, bytes", 20),
    SheetColumn("throttle", 12),
    SheetColumn("volatile cache", 15),
    SheetColumn(CACHE_WORDS[VOLATILE_512], 15),
    SheetColumn(CACHE_WORDS[PROTECTED], 15),
    SheetColumn("durability by", 13),
    SheetColumn("reasons for the class", 60),
    *(SheetColumn(f"flushes per fsync: {device}, {pattern}", 16) for device, pattern in COUNTED),
    SheetColumn("emulated", 10),
    SheetColumn("image file", 10),
    SheetColumn("remarks, or why it cannot be", 80),
)

_SEARCH_WIDTHS = {"cell": 30.0, "label": 44.0, "dataset": 24.0, "run": 16.0, "left_out": 80.0}

_RUN_WIDTHS = {"cell": 30.0, "variant": 24.0, "dataset": 24.0, "run": 16.0, "reasons": 80.0, "kernel": 20.0}


def wide_sheets(
    choices: Sequence[SheetChoice], results: Sequence[Result], factors: Factors
) -> Iterator[Sheet]:
    """One sheet for each run, a row for each cell with its factors; a run of very many figures takes several."""
    names_of_factors = factors.cell_names
    most = max(1, (COLUMNS_MAX - len(_WIDE_HEADS) - len(names_of_factors)) // len(_STATISTICS))
    by_run: dict[tuple[str, str], list[SheetChoice]] = {}
    for choice in choices:
        by_run.setdefault(choice.run, []).append(choice)
    pages = [
        (run, of_run[first : first + most])
        for run, of_run in by_run.items()
        for first in range(0, len(of_run), most)
    ]
    names = sheet_names([f"{shown[0].workload} {run[1]}" for run, shown in pages], FIXED)
    count = len(results) // len(choices) if choices else 0
    place_of = {choice.label: place * count for place, choice in enumerate(choices)}
    for name, (_, shown) in zip(names, pages, strict=True):
        columns = [results[place_of[choice.label] : place_of[choice.label] + count] for choice in shown]
        widths = (44, promise_width(result.cell.durability for result in columns[0]), 11)
        heads = map(SheetColumn, _WIDE_HEADS, widths)
        rows = (
            (*_wide_row(of_cell), *factor_cells(factors, names_of_factors, of_cell[0]))
            for of_cell in zip(*columns, strict=True)
        )
        all_columns = (*heads, *_wide_columns(shown), *factor_columns(names_of_factors))
        yield Sheet(name, all_columns, tuple(rows))


def _wide_columns(shown: Sequence[SheetChoice]) -> Iterator[SheetColumn]:
    for choice in shown:
        for word in _STATISTICS:
            head = f"{choice.within} {word}" + ("" if word == "n" else f", {choice.metric.unit}")
            yield SheetColumn(head, max(8.0, min(len(head), 40)))


def _wide_row(of_cell: Sequence[Result]) -> tuple[Plain, ...]:
    first = of_cell[0]
    figures: list[Plain] = []
    for result in of_cell:
        summary = result.summary
        figures += [summary.centre, summary.low, summary.high, summary.n]
    return cells(first.name, durability_words(first.cell.durability), first.validity, *figures)


def cells_sheet(found: Overview, factors: Factors) -> Sheet:
    """A row for each cell with its factors, then one for each that cannot exist."""
    images = {v.record.key.cell for v in found.study.visits if stands_on_image(v.record)}
    names = cell_names(found)
    rows = [
        (
            *_cell_row(found, cell, names[cell.id], image=cell.id in images),
            *cells(*(factors.of_cells.get(cell.id, {}).get(name) for name in factors.cell_names)),
        )
        for cell in found.cells.values()
    ]
    empty = (None,) * len(factors.cell_names)
    for label, reasons in found.pruned:
        blocks = (label.filesystem_block_bytes, None, label.database_block_bytes or None)
        nothing = (None,) * (len(_CELL_HEADS) - 8)
        why = "; ".join(reasons)
        rows.append(cells(label_name(label), None, False, label.panel, *blocks, *nothing, why, *empty))
    columns = (*_CELL_HEADS, *factor_columns(factors.cell_names))
    return Sheet(CELLS, columns, tuple(rows), filtered=True)


def _cell_row(found: Overview, cell: CellFacts, name: str, *, image: bool) -> tuple[Plain, ...]:
    label, durability = cell.label, cell.durability
    flushes = (rate_text(cell.flushes, device, pattern) for device, pattern in COUNTED)
    build = found.study.schedule.cells[cell.id].build
    return cells(
        name,
        cell.id,
        True,
        label.panel,
        label.filesystem_block_bytes,
        f"{build.engine} {build.version}".strip(),
        label.database_block_bytes,
        label.emulated_device or None,
        durability.volatile_cache if durability else None,
        durability.class_with(VOLATILE_512) if durability else None,
        durability.protected_cache if durability else None,
        durability.basis if durability else None,
        "; ".join(sentences(durability.reasons)) if durability else "no visit has said yet",
        *(_rate(rate) for rate in flushes),
        cell.emulated,
        image,
        "; ".join(cell_remarks(found, cell.id)),
    )


def _rate(shown: str) -> Plain:
    """A number where visits agree, `0–1` where they do not, nothing where none was counted."""
    if shown == "–":
        return None
    return shown if "–" in shown else float(shown)


def effective_sheet(found: Overview) -> Sheet:
    """What was asked and what was read back, from the latest completed visit of each cell."""
    document = effective_document(found)
    names = cell_names(found)
    rows = [cells("all cells", *row) for row in document["common"]]
    for cell, of_cell in document["cells"].items():
        rows += [cells(names[cell], *row) for row in of_cell["rows"]]
        rows += [
            cells(names[cell], f"version of {tool}", None, version, "the visit's record")
            for tool, version in of_cell["versions"].items()
        ]
        rows += [
            cells(names[cell], f"device {fact}", None, value, "the visit's record")
            for fact, value in of_cell["device"].items()
        ]
    heads = ("cell", "option", "asked", "effective", "source")
    columns = tuple(SheetColumn(head, width) for head, width in zip(heads, (44, 40, 30, 30, 20), strict=True))
    return Sheet(EFFECTIVE, columns, tuple(rows), filtered=True)


def runs_sheet(found: Overview, factors: Factors) -> Sheet:
    """Every run that was due, with what became of it, as `bedplate export` writes the table `runs`."""
    table = factors.beside(runs_table(found).drop("study"))
    columns = tuple(SheetColumn(name, _RUN_WIDTHS.get(name, 13.0)) for name in table.columns)
    return Sheet(RUNS, columns, tuple(cells(*row) for row in table.iter_rows()), filtered=True)


def search_sheets(found: Overview) -> tuple[Sheet, ...]:
    """The cells of a search, as `bedplate export` writes the table `search`; none of any other study."""
    if search_of(found) is None:
        return ()
    table = SEARCH_TABLE.of(found).drop("study")
    columns = tuple(SheetColumn(name, _SEARCH_WIDTHS.get(name, 13.0)) for name in table.columns)
    return (Sheet(SEARCHED, columns, tuple(cells(*row) for row in table.iter_rows()), filtered=True),)


def about_sheet(found: Overview) -> Sheet:
    """The study, the machine, and what the numbers mean."""
    facts = found.study.facts
    rows = [
        ("study", facts.title),
        ("made", facts.created),
        ("by bedplate", facts.bedplate),
        ("exported by bedplate", __version__),
        ("cells", len(found.cells)),
        ("repetitions", found.repetitions),
        (
            "what they can tell",
            repetitions_sentence(found.repetitions, executor=facts.executor, has_speeds=has_speeds([found])),
        ),
        *(("is said beside every figure", f"{capital(words)}.") for words in found.marks),
        *(row for each in workload_exports() if each.is_in(found) for row in each.about),
        *_machines(found),
        ("sectors", f"{sectors_told(device_sectors(found))}. Colours are those of that class"),
        *((f"history, {entry.when}", entry.what) for entry in facts.history),
        *_MEANINGS,
    ]
    return Sheet(ABOUT, (SheetColumn("what", 28), SheetColumn("is", 140)), tuple(cells(*row) for row in rows))


def _machines(found: Overview) -> Iterator[tuple[str, Plain]]:
    """What the machine is; of a fleet each kind of node."""
    study = found.study
    kinds = node_kinds(study)
    for kind in kinds:
        yield (f"node{'s' * (len(kind.nodes) > 1)} {folded(kind.nodes)}", "")
        yield from _machine(kind.facts.machine, "kernel", kind.facts.machine.kernel_release)
    if not kinds:
        yield from _machine(study.machine, "kernel of the last start", study.facts.kernel_release)


def _machine(machine: StoredMachine, what: str, kernel: str) -> Iterator[tuple[str, Plain]]:
    yield ("machine", machine.cpu_model)
    yield ("architecture", machine.architecture)
    yield ("processors", machine.cpu_count)
    yield ("memory", machine.memory_words)
    yield ("distribution", machine.distribution)
    yield (what, kernel)
    yield ("virtualisation", machine.virtualisation)


_MEANINGS = (
    (
        f"sheet {LOOK}",
        "One figure of every cell. The cell beside “choose here” has a list; formulas and bars follow it.",
    ),
    (
        f"sheet {RESULTS}",
        "The same for every figure: a row for each cell and choice. Sort and filter it freely.",
    ),
    ("a sheet for each run", "A row for each cell, four columns for each figure."),
    (f"sheet {CELLS}", "What the cells are, and those that cannot exist, with the reason."),
    (f"sheet {EFFECTIVE}", "What the plan asked for and what was read back as effective."),
    (
        f"sheet {SEARCHED}",
        "Of a search: every cell as it was measured, as the model predicts it, and as fresh runs proved it; see docs/EXPORT.md, “search”.",
    ),
    (f"sheet {RUNS}", "Every run that was due, with its outcome and the reasons."),
    (
        f"sheet {CHOICES}",
        "What the list of the sheet Look offers: every figure with its unit and definition.",
    ),
    (
        "mean",
        (
            "The geometric mean of the n repetitions, in the unit named; of shares, counts and zeros their mean. Of those in doubt "
            "(see basis) only where there is no other. Where some were stopped at a limit the median, with those above every time."
        ),
    ),
    (
        "low, high",
        (
            "The 95 % interval of the geometric mean. It needs three of them, and a figure whose "
            "logarithm can be taken; empty else."
        ),
    ),
    ("smallest, largest", "Of the same repetitions."),
    (
        "n",
        "How many repetitions the figure is made of. The run is the unit of statistics, never the second.",
    ),
    ("an empty cell", "Nothing was measured, which is not zero; the column remarks says why."),
    (
        "censored, limit",
        "How many repetitions were stopped at their limit, which counts as longer than any time.",
    ),
    (
        AFTER_POWER_CUT,
        (
            "What survives it with a volatile cache / a protected one, in one word where all agree. Behind them is "
            "what holds with sectors of 512 bytes, where a cut can tear what a device with 4 KiB writes whole. Classes: durable, "
            "bounded loss (the last commits may go, what stays is whole), unsafe, unknown. Speeds of two classes are no contest."
        ),
    ),
    (
        "units",
        "1/s per second, ms milliseconds, s seconds; KiB and MiB are 1024 and 1024² bytes; 1 is a count; share 1 is all.",
    ),
)


def workbook_of(found: Overview) -> Workbook:
    """All sheets of a study, the one to look with first."""
    choices = choices_of(found)
    results = list(results_of(found, choices))
    factors = factors_of(found)
    return Workbook(
        title=cell_text(found.study.facts.title, longest=200),
        created=found.study.facts.created,
        sheets=(
            look_sheet(found, choices, results),
            results_sheet(choices, results, factors),
            *wide_sheets(choices, results, factors),
            cells_sheet(found, factors),
            effective_sheet(found),
            runs_sheet(found, factors),
            *search_sheets(found),
            about_sheet(found),
            choices_sheet(choices),
        ),
    )
