"""What a spreadsheet's tables are made of: every choice, and what every cell came to in it.

A *choice* is what a reader looks at together: one metric of one run, of the whole of it or of one of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.analysis.overview import Trouble
from bedplate.analysis.part_summaries import page_parts, ranked
from bedplate.analysis.parts import WHOLE
from bedplate.analysis.run_heads import run_head
from bedplate.analysis.search.searched import search_of
from bedplate.analysis.search.words import predicted_words
from bedplate.analysis.wording import SAME_IN_FORCE, counted, durability_words, told_of
from bedplate.analysis.workload_view import view_of
from bedplate.export.workbook.model import Column, cells, short_name, unique
from bedplate.model.metrics import METRICS
from bedplate.model.reason import sentences
from bedplate.model.template import filled
from bedplate.statistics.summary import SUSPECT, UNKNOWN_BASIS, Summary, SummaryKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bedplate.analysis.labels import CellLabel
    from bedplate.analysis.overview import CellFacts, Measurement, Overview
    from bedplate.analysis.part_summaries import PagePart
    from bedplate.export.factor_columns import Factors
    from bedplate.export.workbook.model import Plain
    from bedplate.model.cell import RunSpec
    from bedplate.model.figure import Metric
    from bedplate.model.visit import Durability

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


def factor_columns(names: Iterable[str]) -> Iterator[Column]:
    """A column for each factor, by its key in the plan."""
    return (Column(name, min(max(12.0, len(name)), 32.0)) for name in names)


def factor_cells(factors: Factors, names: Iterable[str], result: Result) -> tuple[Plain, ...]:
    """What the plan asked for in the run and the cell of a result."""
    levels = factors.of(result.cell.id, result.choice.run)
    return cells(*(levels.get(name) for name in names))


def promise_width(promises: Iterable[Durability | None]) -> float:
    """So wide, in characters, that what survives a power cut is not cut off by the column behind it."""
    return max((_PROMISE_WIDTH_MIN, *(len(durability_words(promise)) + 1.0 for promise in promises)))
