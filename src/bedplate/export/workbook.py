"""A spreadsheet as plain records, and what its sheets hold; `xlsx.py` writes it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeAlias

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
from bedplate.export.columns import Factors, R, factors_of
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
class SheetColumn(Generic[R]):
    """A column of a sheet: its head, its value in the row of a record, its width in characters; a `hidden` one is there for formulas."""

    head: str
    value: Callable[[R], object]
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
    columns: tuple[SheetColumn[Any], ...]
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


def _value(found: object) -> Value:
    return found if isinstance(found, Formula) else cell_value(found)


def sheet_of(
    name: str, heads: Sequence[SheetColumn[R]], subjects: Iterable[R], *, filtered: bool = True
) -> Sheet:
    """A row for each subject."""
    rows = (tuple(_value(column.value(subject)) for column in heads) for subject in subjects)
    return Sheet(name, (*heads,), tuple(rows), filtered=filtered)


def sheet_of_tuples(name: str, widths: Mapping[str, float], rows: Iterable[Sequence[object]]) -> Sheet:
    """The same of rows that have a value for each head."""
    return sheet_of(
        name,
        [SheetColumn(head, itemgetter(at), width) for at, (head, width) in enumerate(widths.items())],
        rows,
    )


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
    """One metric of one run or of a part of it; `label` is unique, `within` is its part and metric alone, `number` counts from 1."""

    label: str
    spec: RunSpec | None
    run: Run
    part: PagePart
    metric: Metric
    within: str
    number: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is of the whole run."""
        return (self.part.phase, self.part.item) == (WHOLE, "")

    @property
    def workload(self) -> str:
        """The type of the run's workload; empty for a run that the schedule does not know."""
        return self.spec.workload if self.spec else ""


@dataclass(frozen=True)
class Result:
    """What one cell, at its `place` among the cells, came to in one choice.

    `summary` has timeouts ranked above every time; `limit` is the largest that was met. `validity` is a word
    for all its repetitions together. `remarks` say why there is no value, what went wrong, and what is to be
    known of the cell.
    """

    choice: SheetChoice
    cell: CellFacts
    place: int
    name: str
    summary: Summary
    limit: float | None
    validity: str
    remarks: str

    @property
    def durability(self) -> Durability | None:
        """What survives a power cut of what it is a figure of."""
        choice = self.choice
        return promised(choice.spec, self.cell.durability, choice.part.phase, choice.part.item)


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
    return tuple(
        replace(choice, label=label, number=number)
        for number, (label, choice) in enumerate(zip(labels, made, strict=True), start=1)
    )


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
        for place, cell in enumerate(found.cells.values()):
            run = (cell.id, choice.run)
            if run not in of_runs:
                measurements = found.of(*run)
                told = [each.sentence for each in told_of(measurements)]
                of_runs[run] = (validity_word(measurements), told)
            validity, reasons = of_runs[run]
            key = SummaryKey(cell.id, *choice.run, choice.metric.name, choice.part.phase, choice.part.item)
            entry = ranked(found, key, found.summaries.get(key, Summary(0)))
            due = bool(found.of(*run))
            why = (
                _of_summary(entry.summary, entry.limit, found.absence(key))
                if due
                else ("not due in this cell",)
            )
            modelled = by_model.get((cell.id, choice.run[1], choice.metric.name)) if choice.is_whole else None
            remarks = dict.fromkeys((*why, *reasons, *((modelled,) if modelled else ()), *about[cell.id]))
            yield Result(
                choice, cell, place, names[cell.id], entry.summary, entry.limit, validity, "; ".join(remarks)
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


def factor_columns(names: Iterable[str], getter: Callable[[str, R], object]) -> Iterator[SheetColumn[R]]:
    """A column for each factor, by its key in the plan: what that asked for."""
    for name in names:
        yield SheetColumn(name, partial(getter, name), min(max(12.0, len(name)), 32.0))


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


def _of_its_choice(getter: Callable[[SheetChoice], object], result: Result) -> object:
    return getter(result.choice)


_OF_A_CHOICE: tuple[SheetColumn[SheetChoice], ...] = (
    SheetColumn("choice", lambda choice: choice.label, 44),
    SheetColumn("workload", lambda choice: choice.workload, 10),
    SheetColumn("dataset", lambda choice: choice.run[0], 24),
    SheetColumn("run", lambda choice: choice.run[1], 16),
    SheetColumn("phase", lambda choice: "" if choice.is_whole else choice.part.phase, 12),
    SheetColumn("item", lambda choice: choice.part.item, 12),
    SheetColumn("metric", lambda choice: choice.metric.name, 26),
    SheetColumn("unit", lambda choice: choice.metric.unit, 9),
    SheetColumn("better", lambda choice: choice.metric.better.value, 9),
)

_CHOICE_COLUMNS: tuple[SheetColumn[SheetChoice], ...] = (
    *_OF_A_CHOICE,
    SheetColumn("definition", lambda choice: choice.metric.definition, 80),
    SheetColumn("number", lambda choice: choice.number, 9),
)

_RESULT_COLUMNS: tuple[SheetColumn[Result], ...] = (
    *(
        SheetColumn(column.head, partial(_of_its_choice, column.value), column.width)
        for column in _OF_A_CHOICE
    ),
    SheetColumn("cell", lambda result: result.name, 44),
    SheetColumn("cell id", lambda result: result.cell.id, 30),
    SheetColumn(_PROMISE, lambda result: durability_words(result.durability), 18),
    SheetColumn(_VOLATILE, lambda result: durability_class(result.durability, result.cell.cache), 18),
    SheetColumn("mean", lambda result: result.summary.centre),
    SheetColumn("low", lambda result: result.summary.low),
    SheetColumn("high", lambda result: result.summary.high),
    SheetColumn("smallest", lambda result: result.summary.minimum),
    SheetColumn("largest", lambda result: result.summary.maximum),
    SheetColumn("n", lambda result: result.summary.n, 5),
    SheetColumn("basis", lambda result: result.summary.basis, 9),
    SheetColumn("validity", lambda result: result.validity, 11),
    SheetColumn("suspect", lambda result: result.summary.suspect, 9),
    SheetColumn("unknown", lambda result: result.summary.unknown, 10),
    SheetColumn("failed", lambda result: result.summary.failed, 8),
    SheetColumn("not run", lambda result: result.summary.not_run, 9),
    SheetColumn("absent", lambda result: result.summary.absent, 8),
    SheetColumn("censored", lambda result: result.summary.censored, 10),
    SheetColumn("limit", lambda result: result.limit, 9),
    SheetColumn("emulated", lambda result: result.cell.emulated, 10),
    SheetColumn("remarks", lambda result: result.remarks, 80),
    SheetColumn("key", lambda result: result.choice.number * _CELLS_MAX + result.place, 12),
)

_RESULT_COLUMN = {column.head: column for column in _RESULT_COLUMNS}
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
    return sheet_of(CHOICES, _CHOICE_COLUMNS, choices)


def results_sheet(results: Sequence[Result], factors: Factors) -> Sheet:
    """Every cell in every choice, a row each; `results` in the order of `results_of`. Behind them the factors."""
    width = promise_width(result.durability for result in results)
    of_factors: Iterator[SheetColumn[Result]] = factor_columns(
        factors.names, lambda name, result: factors.level(name, result.cell.id, result.choice.run)
    )
    return sheet_of(RESULTS, (*_widened(_RESULT_COLUMNS, width), *of_factors), results)


def _widened(heads: Iterable[SheetColumn[R]], width: float) -> Iterator[SheetColumn[R]]:
    """The columns, with what survives a power cut as wide as its words are."""
    return (replace(column, width=width) if column.head == _PROMISE else column for column in heads)


def look_sheet(found: Overview, choices: Sequence[SheetChoice], results: Sequence[Result]) -> Sheet:
    """The first choice chosen; without any choice a sheet that says so."""
    title = (cell_value(f"{found.study.facts.title}: one figure at a time"),)
    marks = [(cell_value(f"{capital(words)}."),) for words in found.marks]
    if not choices or not found.cells:
        lead = (title, ("Nothing has been measured yet.",), *marks)
        return replace(
            sheet_of(LOOK, [SheetColumn("cell", itemgetter(0), 44)], [], filtered=False), lead=lead
        )
    look = _Look(choices, results, len(found.cells), head_row=3 + len(marks))
    sheet = sheet_of(LOOK, (*look.columns(),), results[: len(found.cells)], filtered=False)
    return replace(
        sheet,
        rows=(*sheet.rows, look.zero()),
        lead=(title, look.chosen(), look.meaning(), *marks),
        choice=DropDown(_CHOSEN_ROW, 0, look.labels),
        chart=look.chart(),
    )


class _Look:
    """The formulas of the sheet, with what they come to for the first choice, of the first `count` results."""

    def __init__(
        self, choices: Sequence[SheetChoice], results: Sequence[Result], count: int, *, head_row: int
    ) -> None:
        self._choice = choices[0]
        self._count = count
        self._head_row = head_row
        self._results_end = len(results)
        self._chosen = Area(LOOK, 0, _CHOSEN_ROW)
        self._number = Area(LOOK, 3, _CHOSEN_ROW)
        self._choices_end = len(choices)
        self.labels = self._of_choices("choice")
        # A cell has another class in another choice: a part of a run may have its own.
        held = {durability_class(result.durability, result.cell.cache) for result in results}
        longest = max(len(result.name) for result in results[:count])
        self._name_width = min(max(_NAME_WIDTHS[0], longest + 1.0), _NAME_WIDTHS[1])
        # Wide enough for whatever is chosen.
        self._widths = {**_WIDTHS, _PROMISE: promise_width(result.durability for result in results)}
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

    def columns(self) -> Iterator[SheetColumn[Result]]:
        """The name, what is shown of the results, and what only formulas and the chart need."""
        yield SheetColumn("cell", partial(self._taken, "cell"), self._name_width)
        for head in _SHOWN:
            yield SheetColumn(head, partial(self._taken, head), self._widths.get(head, 12.0))
        yield SheetColumn("row in Results", self._row_in_results, 16, hidden=True)
        yield SheetColumn("bar", self._bar, 9, hidden=True)
        for known in self._classes:
            head = known if known == ONLY_READS else f"{known} {_VOLATILE}"
            yield SheetColumn(head, partial(self._of_class, known), 32, hidden=True)

    def _here(self, head: str, result: Result) -> Area:
        """The cell of this sheet under a head."""
        return Area(LOOK, ("cell", *_SHOWN, "row in Results").index(head), self._head_row + 1 + result.place)

    def _row_in_results(self, result: Result) -> Formula:
        key = (self._number, f"*{_CELLS_MAX}+{result.place}")
        return Formula(
            ("IF(", self._number, '=0,"",MATCH(', *key, ",", self._of_results("key"), ",0))"),
            result.place + 1,
        )

    def _bar(self, result: Result) -> Formula:
        """The name of a bar, with what is to be known of its length."""
        summary = result.summary
        doubt = f" ({summary.basis})" if summary.basis in (SUSPECT, UNKNOWN_BASIS) else ""
        state = " (no value)" if cell_value(summary.centre) is None else doubt
        basis = ("INDEX(", self._of_results("basis"), ",", self._here("row in Results", result), ")")
        return self._where_found(
            result,
            (
                *(self._here("cell", result), "&IF(", self._here("mean", result)),
                *('=""," (no value)",IF(', *basis, f'="{TRUSTED}",""," ("&', *basis, '&")"))'),
            ),
            f"{cell_value(result.name)}{state}",
        )

    def zero(self) -> tuple[Plain, ...]:
        """A row for the chart alone: an axis that is scaled to the values starts at 0 where 0 is one of them."""
        others = (None,) * (len(self._classes) - 1)
        return (None,) * (2 + len(_SHOWN)) + (" ", 0, *others)

    def _of_results(self, head: str) -> Area:
        return Area(RESULTS, _AT[head], 1, self._results_end)

    def _taken(self, head: str, result: Result) -> Formula:
        """One column of `Results`; what is empty there stays empty, where INDEX alone would make it 0."""
        value = cell_value(_RESULT_COLUMN[head].value(result))
        one = ("INDEX(", self._of_results(head), ",", self._here("row in Results", result), ")")
        return self._where_found(result, ("IF(", *one, '="","",', *one, ")"), "" if value is None else value)

    def _of_class(self, known: str, result: Result) -> Formula:
        """The mean where the cell is of this class, else nothing: each class is a colour of the chart."""
        mine = durability_class(result.durability, result.cell.cache) == known
        shown = cell_value(result.summary.centre) if mine else None
        volatile = (self._of_results(_VOLATILE), ",", self._here("row in Results", result))
        return self._where_found(
            result,
            ("IF(INDEX(", *volatile, f')="{known}",', self._here("mean", result), ',"")'),
            "" if shown is None else shown,
        )

    def _where_found(self, result: Result, parts: tuple[str | Area, ...], shown: Plain) -> Formula:
        """The formula that the parts make; an empty text where the choice has no row."""
        return Formula(("IF(ISNUMBER(", self._here("row in Results", result), "),", *parts, ',"")'), shown)

    def chart(self) -> BarChart:
        """A bar for each cell, coloured by what a power cut leaves with a volatile cache."""
        first, last = self._head_row + 1, self._head_row + self._count + 1
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


CELLS, EFFECTIVE, RUNS, SEARCHED, ABOUT = "Cells", "Asked and effective", "Runs", "Search", "About"
FIXED = (LOOK, RESULTS, CELLS, EFFECTIVE, RUNS, SEARCHED, ABOUT, CHOICES)

_WIDE_COLUMNS: tuple[SheetColumn[Sequence[Result]], ...] = (
    SheetColumn("cell", lambda row: row[0].name, 44),
    SheetColumn(AFTER_POWER_CUT, lambda row: durability_words(row[0].cell.durability)),
    SheetColumn("validity", lambda row: row[0].validity, 11),
)

# The statistics of each figure, with the fields of a summary that they are.
_STATISTICS = {"mean": "centre", "low": "low", "high": "high", "n": "n"}


class _SheetCell(NamedTuple):
    """A cell of the study, or one that cannot exist, which has a label alone."""

    name: str
    label: CellLabel
    remarks: Sequence[str]
    facts: CellFacts | None = None
    engine: str | None = None
    image: bool | None = None
    levels: Mapping[str, object] = {}

    @property
    def durability(self) -> Durability | None:
        return None if self.facts is None else self.facts.durability

    @property
    def reasons(self) -> str | None:
        if self.facts is None:
            return None
        return "; ".join(sentences(self.durability.reasons)) if self.durability else "no visit has said yet"

    def flushes(self, device: str, pattern: str) -> Plain:
        """A number where visits agree, `0–1` where they do not, nothing where none was counted."""
        shown = rate_text(self.facts.flushes, device, pattern) if self.facts else "–"
        if shown == "–":
            return None
        return shown if "–" in shown else float(shown)


_CELL_COLUMNS: tuple[SheetColumn[_SheetCell], ...] = (
    SheetColumn("cell", lambda row: row.name, 44),
    SheetColumn("cell id", lambda row: row.facts and row.facts.id, 30),
    SheetColumn("in the study", lambda row: row.facts is not None, 12),
    SheetColumn("file system", lambda row: row.label.panel, 24),
    SheetColumn("file system block, bytes", lambda row: row.label.filesystem_block_bytes, 22),
    SheetColumn("engine", lambda row: row.engine, 12),
    SheetColumn(
        "database block, bytes",
        lambda row: row.label.database_block_bytes if row.facts else row.label.database_block_bytes or None,
        20,
    ),
    SheetColumn("throttle", lambda row: (row.facts and row.label.emulated_device) or None, 12),
    SheetColumn("volatile cache", lambda row: row.durability and row.durability.volatile_cache, 15),
    SheetColumn(
        CACHE_WORDS[VOLATILE_512], lambda row: row.durability and row.durability.class_with(VOLATILE_512), 15
    ),
    SheetColumn(CACHE_WORDS[PROTECTED], lambda row: row.durability and row.durability.protected_cache, 15),
    SheetColumn("durability by", lambda row: row.durability and row.durability.basis, 13),
    SheetColumn("reasons for the class", lambda row: row.reasons, 60),
    *(
        SheetColumn(
            f"flushes per fsync: {device}, {pattern}",
            partial(_SheetCell.flushes, device=device, pattern=pattern),
            16,
        )
        for device, pattern in COUNTED
    ),
    SheetColumn("emulated", lambda row: row.facts and row.facts.emulated, 10),
    SheetColumn("image file", lambda row: row.image, 10),
    SheetColumn("remarks, or why it cannot be", lambda row: "; ".join(row.remarks), 80),
)

_SEARCH_WIDTHS = {"cell": 30.0, "label": 44.0, "dataset": 24.0, "run": 16.0, "left_out": 80.0}
_RUN_WIDTHS = {"cell": 30.0, "variant": 24.0, "dataset": 24.0, "run": 16.0, "reasons": 80.0, "kernel": 20.0}


def wide_sheets(
    choices: Sequence[SheetChoice], results: Sequence[Result], factors: Factors
) -> Iterator[Sheet]:
    """One sheet for each run, a row for each cell with its factors; a run of very many figures takes several."""
    most = max(1, (COLUMNS_MAX - len(_WIDE_COLUMNS) - len(factors.cell_names)) // len(_STATISTICS))
    by_run: dict[tuple[str, str], list[SheetChoice]] = {}
    for choice in choices:
        by_run.setdefault(choice.run, []).append(choice)
    pages = [
        of_run[first : first + most] for of_run in by_run.values() for first in range(0, len(of_run), most)
    ]
    names = sheet_names([f"{shown[0].workload} {shown[0].run[1]}" for shown in pages], FIXED)
    of_choice: dict[int, list[Result]] = {}
    for result in results:
        of_choice.setdefault(result.choice.number, []).append(result)
    of_factors: list[SheetColumn[Sequence[Result]]] = [
        *factor_columns(
            factors.cell_names, lambda name, row: factors.of_cells.get(row[0].cell.id, {}).get(name)
        )
    ]
    for name, shown in zip(names, pages, strict=True):
        rows = [*zip(*(of_choice[choice.number] for choice in shown), strict=True)]
        width = promise_width(row[0].cell.durability for row in rows)
        columns = (*_widened(_WIDE_COLUMNS, width), *_wide_columns(shown), *of_factors)
        yield sheet_of(name, columns, rows, filtered=False)


def _wide_columns(shown: Sequence[SheetChoice]) -> Iterator[SheetColumn[Sequence[Result]]]:
    for at, choice in enumerate(shown):
        for word, statistic in _STATISTICS.items():
            head = f"{choice.within} {word}" + ("" if word == "n" else f", {choice.metric.unit}")
            yield SheetColumn(head, partial(_statistic, at, statistic), max(8.0, min(len(head), 40)))


def _statistic(at: int, statistic: str, of_cell: Sequence[Result]) -> object:
    return getattr(of_cell[at].summary, statistic)


def cells_sheet(found: Overview, factors: Factors) -> Sheet:
    """A row for each cell with its factors, then one for each that cannot exist."""
    images = {v.record.key.cell for v in found.study.visits if stands_on_image(v.record)}
    names = cell_names(found)
    builds = {name: cell.build for name, cell in found.study.schedule.cells.items()}
    rows = [
        _SheetCell(
            names[cell.id],
            cell.label,
            cell_remarks(found, cell.id),
            cell,
            f"{builds[cell.id].engine} {builds[cell.id].version}".strip(),
            cell.id in images,
            factors.of_cells.get(cell.id, {}),
        )
        for cell in found.cells.values()
    ]
    rows += [_SheetCell(label_name(label), label, reasons) for label, reasons in found.pruned]
    of_factors: Iterator[SheetColumn[_SheetCell]] = factor_columns(
        factors.cell_names, lambda name, row: row.levels.get(name)
    )
    return sheet_of(CELLS, (*_CELL_COLUMNS, *of_factors), rows)


def effective_sheet(found: Overview) -> Sheet:
    """What was asked and what was read back, from the latest completed visit of each cell."""
    document = effective_document(found)
    names = cell_names(found)
    rows: list[tuple[object, ...]] = [("all cells", *row) for row in document["common"]]
    for cell, of_cell in document["cells"].items():
        rows += [(names[cell], *row) for row in of_cell["rows"]]
        rows += [
            (names[cell], f"version of {tool}", None, version, "the visit's record")
            for tool, version in of_cell["versions"].items()
        ]
        rows += [
            (names[cell], f"device {fact}", None, value, "the visit's record")
            for fact, value in of_cell["device"].items()
        ]
    widths = {"cell": 44, "option": 40, "asked": 30, "effective": 30, "source": 20}
    return sheet_of_tuples(EFFECTIVE, widths, rows)


def runs_sheet(found: Overview, factors: Factors) -> Sheet:
    """Every run that was due, with what became of it, as `bedplate export` writes the table `runs`."""
    table = factors.beside(runs_table(found).drop("study"))
    widths = {name: _RUN_WIDTHS.get(name, 13.0) for name in table.columns}
    return sheet_of_tuples(RUNS, widths, table.iter_rows())


def search_sheets(found: Overview) -> tuple[Sheet, ...]:
    """The cells of a search, as `bedplate export` writes the table `search`; none of any other study."""
    if search_of(found) is None:
        return ()
    table = SEARCH_TABLE.of(found).drop("study")
    widths = {name: _SEARCH_WIDTHS.get(name, 13.0) for name in table.columns}
    return (sheet_of_tuples(SEARCHED, widths, table.iter_rows()),)


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
    return replace(sheet_of_tuples(ABOUT, {"what": 28, "is": 140}, rows), filtered=False)


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
            results_sheet(results, factors),
            *wide_sheets(choices, results, factors),
            cells_sheet(found, factors),
            effective_sheet(found),
            runs_sheet(found, factors),
            *search_sheets(found),
            about_sheet(found),
            choices_sheet(choices),
        ),
    )
