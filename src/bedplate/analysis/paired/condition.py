"""What makes a change bad: slower by a share, a figure beyond a bound, what a power cut leaves.

Three kinds, each judged by what its records allow. `slower 10%` (or `METRIC worse 10%`) is of the two sides, by the interval of the
sequence. `flushes per appending fsync < 1` and `METRIC < 100` are of one side, by counts or by an interval of its values. `unsafe` and
`bad` are of one side, by its durability class and its power cuts: they are true under emulated processors too.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from bedplate.analysis.comparison.condition import Condition, Truth, parse_condition, truth
from bedplate.analysis.cut_condition import BAD, cut_truth
from bedplate.analysis.observed import observed
from bedplate.analysis.wording import durability_class
from bedplate.errors import PlanError
from bedplate.model.durability import UNKNOWN, UNSAFE
from bedplate.model.metrics import METRICS, metric_today
from bedplate.model.visit import Outcome
from bedplate.near_names import did_you_mean
from bedplate.statistics.comparison import EstimateKind
from bedplate.statistics.paired_sequence import FIRST_LOOK, joint, sequential

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.analysis.comparison.compared import Compared
    from bedplate.analysis.overview import Overview
    from bedplate.study.paired import PairedRecord

WORDS_THAT_DO = "'slower 10%', 'latency_ms_p99 worse 10%', 'flushes per appending fsync < 1', 'tps < 1000', 'unsafe', 'bad'"
_FLUSHES = re.compile(r"flushes per (appending|overwriting) fsync(?: on the (data|journal) device)?")
_BOUND = re.compile(r"\s*(.+?)\s*(<|>)\s*(\d+(?:\.\d+)?)\s*")


class ConditionSubject(Enum):
    """What a condition is about."""

    SIDES = "both sides"
    FLUSHES = "flushes per fsync"
    FIGURE = "a figure"
    CLASS = "what is promised of a power cut"
    CUTS = "power cuts"


@dataclass(frozen=True)
class PairedCondition:
    """A condition as it was written, and what it is about. `bound` is that of a figure or of flushes, above it where `above`."""

    text: str
    subject: ConditionSubject
    of_sides: Condition | None = None
    metric: str = ""
    pattern: str = ""
    device: str = "data"
    bound: float = 0.0
    above: bool = False

    @property
    def needs_pairs(self) -> bool:
        """Whether it takes several blocks; counts and verdicts need one."""
        return self.subject in (ConditionSubject.SIDES, ConditionSubject.FIGURE)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metric that sides are compared in; empty where none is named."""
        return (self.metric,) if self.of_sides is not None and self.metric else ()

    def lines_of(self, lines: Iterable[Compared]) -> list[Compared]:
        """Those that it is about: of its metric, or all where it names none."""
        return [line for line in lines if not self.metric or line.asked.metric == self.metric]

    @property
    def first_blocks(self) -> int:
        """Blocks before the first look."""
        return FIRST_LOOK if self.needs_pairs else 1


def parse_paired_condition(text: str, *, margin: float) -> PairedCondition:
    """PlanError that says in one sentence what was found and what would do."""
    words = " ".join(text.split())
    if words == UNSAFE:
        return PairedCondition(text, ConditionSubject.CLASS)
    if words == BAD:
        return PairedCondition(text, ConditionSubject.CUTS)
    if found := _BOUND.fullmatch(words):
        return _bounded(text, found[1], above=found[2] == ">", bound=float(found[3]))
    metric, _, rest = words.partition(" ")
    named = metric if metric in METRICS else ""
    try:
        of_sides = parse_condition(rest if named else words, margin=margin)
    except PlanError:
        raise PlanError(
            f"condition {text!r:.200} is not understood; these would do: {WORDS_THAT_DO}"
        ) from None
    if named:
        of_sides.goes_up(METRICS[named])
    return PairedCondition(text, ConditionSubject.SIDES, of_sides, named)


def paired_truth(
    asked: PairedCondition, found: Overview, record: PairedRecord, lines: Sequence[Compared]
) -> Truth:
    """Whether it holds of the side with the change, in any pair."""
    if asked.of_sides is not None:
        return _any(truth(asked.of_sides, line) for line in asked.lines_of(lines))
    return side_truth(asked, found, record, [pair.contender for pair in record.pairs])


def side_truth(asked: PairedCondition, found: Overview, record: PairedRecord, cells: Sequence[str]) -> Truth:
    """Whether a condition on one side holds of any of its cells."""
    if asked.subject is ConditionSubject.FIGURE:
        return _any(_figure_truth(asked, found, record, cell) for cell in cells)
    return _any(_cell_truth(asked, found, cell) for cell in cells)


def nearest(
    asked: PairedCondition, found: Overview, record: PairedRecord, lines: Sequence[Compared]
) -> Truth:
    """The side of the bound that the estimates lie on; CANNOT_TELL where there is none. For when the time is gone."""
    if asked.of_sides is not None:
        return _any(_nearest_line(asked.of_sides, line) for line in asked.lines_of(lines))
    if asked.subject is not ConditionSubject.FIGURE:
        return paired_truth(asked, found, record, lines)
    sides: list[Truth] = []
    for pair in record.pairs:
        if values := _values(asked, found, record, pair.contender):
            mean = float(np.mean(values))
            sides.append(
                Truth.HOLDS if (mean > asked.bound) == asked.above and mean != asked.bound else Truth.FAILS
            )
    return _any(sides)


def seen_words(asked: PairedCondition, found: Overview, record: PairedRecord, cells: Sequence[str]) -> str:
    """What the records have of one side, of a condition on one side: `0.5 flushes per appending fsync`."""
    if asked.subject is ConditionSubject.FLUSHES:
        rates = [
            f"{rate.text} on {found.cells[cell].label.full}" if len(cells) > 1 else rate.text
            for cell in cells
            if cell in found.cells
            for rate in found.cells[cell].flushes
            if (rate.device, rate.pattern) == (asked.device, asked.pattern)
        ]
        return (
            f"{', '.join(rates) or 'no'} {'flush' if rates == ['1'] else 'flushes'} per {asked.pattern} fsync"
        )
    if asked.subject is ConditionSubject.FIGURE:
        values = [value for cell in cells for value in _values(asked, found, record, cell)]
        return f"{asked.metric} {np.mean(values):.5g} of {len(values)}" if values else f"no {asked.metric}"
    classes = dict.fromkeys(_class_words(found, cell) for cell in cells)
    return ", ".join(classes)


def _bounded(text: str, name: str, *, above: bool, bound: float) -> PairedCondition:
    if flushes := _FLUSHES.fullmatch(name):
        return PairedCondition(
            text,
            ConditionSubject.FLUSHES,
            pattern=flushes[1],
            device=flushes[2] or "data",
            bound=bound,
            above=above,
        )
    metric = metric_today(name)
    if metric not in METRICS:
        hint = did_you_mean(metric, METRICS, otherwise=f"these would do: {WORDS_THAT_DO}")
        raise PlanError(f"condition {text!r:.200}: there is no metric {name!r:.100}; {hint}")
    return PairedCondition(text, ConditionSubject.FIGURE, metric=metric, bound=bound, above=above)


def _cell_truth(asked: PairedCondition, found: Overview, cell: str) -> Truth:
    facts = found.cells.get(cell)
    if facts is None:
        return Truth.CANNOT_TELL
    if asked.subject is ConditionSubject.CUTS:
        return cut_truth(BAD, facts.cuts)
    if asked.subject is ConditionSubject.CLASS:
        kind = durability_class(facts.durability, facts.cache)
        return Truth.CANNOT_TELL if kind == UNKNOWN else _truth(kind == UNSAFE)
    rates = [r for r in facts.flushes if (r.device, r.pattern) == (asked.device, asked.pattern)]
    if not rates:
        return Truth.CANNOT_TELL
    rate = rates[0].per_call
    return _truth(rate > asked.bound if asked.above else rate < asked.bound)


def _figure_truth(asked: PairedCondition, found: Overview, record: PairedRecord, cell: str) -> Truth:
    """By the interval of the figure's mean over the blocks, of its logarithm where it is above zero."""
    values = np.array(_values(asked, found, record, cell), dtype=np.float64)
    if len(values) < FIRST_LOOK:
        return Truth.CANNOT_TELL
    is_ratio = bool(asked.bound > 0 and (values > 0).all())
    distance = np.log(values / asked.bound) if is_ratio else values - asked.bound
    low, high = (float(end) for end in sequential(distance).interval(joint(record.wrong, len(record.pairs))))
    least, most = (low, high) if asked.above else (-high, -low)
    return Truth.HOLDS if least > 0 else Truth.FAILS if most <= 0 else Truth.CANNOT_TELL


def _values(asked: PairedCondition, found: Overview, record: PairedRecord, cell: str) -> list[float]:
    """The trusted figures of a cell by repetition, of the first run that has them."""
    for run in found.runs:
        if record.workload is not None and run[1] != record.workload:
            continue
        seen = observed(found, cell, run, asked.metric)
        values = [
            one.value
            for _, one in sorted(seen.items())
            if one.value is not None and one.outcome is Outcome.COMPLETED and one.validity.is_trusted
        ]
        if values:
            return values
    return []


def _nearest_line(asked: Condition, line: Compared) -> Truth:
    comparison = line.comparison
    if line.identical:
        return Truth.FAILS
    if comparison.estimate is None:
        return Truth.CANNOT_TELL
    goes_up = asked.goes_up(comparison.metric)
    if comparison.kind is EstimateKind.RATIO:
        distance, bound = math.log(comparison.estimate), math.log1p(asked.share)
    else:
        distance, bound = comparison.estimate, asked.share
    return _truth((distance if goes_up else -distance) > bound)


def _class_words(found: Overview, cell: str) -> str:
    facts = found.cells.get(cell)
    if facts is None:
        return UNKNOWN
    cuts = [run.verdict.all for run in facts.cuts]
    if cuts:
        return f"{sum(each.bad for each in cuts)} of {sum(each.cuts for each in cuts)} cuts bad"
    basis = "" if facts.durability is None else f" ({facts.durability.basis})"
    return f"{durability_class(facts.durability, facts.cache)} after a power cut{basis}"


def _truth(holds: bool) -> Truth:  # noqa: FBT001 -- what is asked
    return Truth.HOLDS if holds else Truth.FAILS


def _any(truths: Iterable[Truth]) -> Truth:
    """Of several, one that holds is enough; else each must be known."""
    found = set(truths) or {Truth.CANNOT_TELL}
    return next(each for each in (Truth.HOLDS, Truth.CANNOT_TELL, Truth.FAILS) if each in found)
