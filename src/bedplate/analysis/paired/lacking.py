"""What a side of a study of pairs never has: a run that completes, or the figure that is asked for. More blocks would find the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.observed import measurements_with, observed
from bedplate.analysis.paired.condition import ConditionSubject
from bedplate.analysis.parts import WHOLE
from bedplate.model.figure import Status
from bedplate.model.visit import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.analysis.comparison.compared import Compared
    from bedplate.analysis.overview import Overview
    from bedplate.analysis.paired.condition import PairedCondition
    from bedplate.study.paired import PairedRecord

_NO_REASON = "its records give no reason"


@dataclass(frozen=True)
class LackingSide:
    """`what` is missing in every run of `cell` (of all cells where it is empty), and why, in the words of the records."""

    cell: str
    what: str
    why: str


def lacking(
    found: Overview,
    record: PairedRecord,
    condition: PairedCondition | None,
    lines: Sequence[Compared],
    problem: str | None,
) -> tuple[LackingSide, ...]:
    """Of the visits so far. `problem` is why there are no lines, where that is more than that a side has not run yet."""
    cells = dict.fromkeys(cell for pair in record.pairs for cell in (pair.baseline, pair.contender))
    every = tuple(_without_runs(found, list(cells)))
    if every:
        return every
    if condition is not None and condition.of_sides is None:
        return tuple(_of_one_side(condition, found, record))
    if problem is not None:
        absent = [
            figure.reason.sentence
            for m in found.measurements
            if m.cell in cells
            for figure in m.by_metric.values()
            if figure.reason is not None and figure.metric in (record.metrics or m.by_metric)
        ]
        return (LackingSide("", " or ".join(record.metrics) or "a figure", absent[0] if absent else problem),)
    asked = lines if condition is None else condition.lines_of(lines)
    return tuple(dict.fromkeys(each for line in asked for each in _of_line(found, line)))


def _without_runs(found: Overview, cells: Sequence[str]) -> Iterator[LackingSide]:
    visited = {m.cell for m in found.measurements if m.attempt is not None}
    completed = {m.cell for m in found.measurements if m.outcome is Outcome.COMPLETED}
    for cell in cells:
        if cell in visited and cell not in completed:
            reasons = [m.reasons[0].sentence for m in found.measurements if m.cell == cell and m.reasons]
            yield LackingSide(cell, "", reasons[0] if reasons else _NO_REASON)


def _of_line(found: Overview, line: Compared) -> Iterator[LackingSide]:
    asked = line.asked
    if line.identical:
        return
    if line.incomparable:
        yield LackingSide(line.pair.contender.cell, "a comparison", "; ".join(line.incomparable))
        return
    for cell in (line.pair.baseline.cell, line.pair.contender.cell):
        part = (asked.phase, asked.item)
        if not _has_figure(found, cell, asked.run, asked.metric, part):
            name = f"{asked.metric} of {asked.run[1]}{f' {asked.part}' if asked.part else ''}"
            yield LackingSide(cell, name, _why_absent(found, cell, asked.run, asked.metric, part))


def _of_one_side(condition: PairedCondition, found: Overview, record: PairedRecord) -> Iterator[LackingSide]:
    for pair in record.pairs:
        cell, facts = pair.contender, found.cells.get(pair.contender)
        if facts is None:
            continue
        if condition.subject is ConditionSubject.FIGURE:
            runs = [run for run in found.runs if record.workload in (None, run[1])]
            if not any(_has_figure(found, cell, run, condition.metric) for run in runs):
                why = _why_absent(found, cell, runs[0], condition.metric) if runs else "no run has that name"
                yield LackingSide(cell, condition.metric, why)
        elif condition.subject is ConditionSubject.FLUSHES:
            if (condition.device, condition.pattern) not in {(r.device, r.pattern) for r in facts.flushes}:
                what = f"a count of flushes per {condition.pattern} fsync on the {condition.device} device"
                yield LackingSide(cell, what, "its visits counted none there")
        elif condition.subject is ConditionSubject.CUTS and not facts.cuts:
            yield LackingSide(cell, "a power cut", "the plan has no workload that cuts power")


def _has_figure(
    found: Overview, cell: str, run: tuple[str, str], metric: str, part: tuple[str, str] = (WHOLE, "")
) -> bool:
    return any(
        one.outcome is Outcome.COMPLETED and one.status is not Status.ABSENT
        for one in observed(found, cell, run, metric, part).values()
    )


def _why_absent(
    found: Overview, cell: str, run: tuple[str, str], metric: str, part: tuple[str, str] = (WHOLE, "")
) -> str:
    for m in measurements_with(found, cell, run, metric):
        figure = m.figure(metric, *part)
        reasons = m.reasons if m.outcome is not Outcome.COMPLETED else ()
        if figure is not None and figure.reason is not None:
            reasons = (figure.reason,)
        if reasons:
            return reasons[0].sentence
    there = sorted(
        {
            name
            for m in measurements_with(found, cell, run, metric)
            for name, figure in m.by_metric.items()
            if figure.status is not Status.ABSENT
        }
    )
    return f"its runs have {', '.join(there)}" if there else _NO_REASON
