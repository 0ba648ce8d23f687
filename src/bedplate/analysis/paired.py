"""What a study of pairs says after each block: intervals that hold at every look, a condition, what follows, the answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from bedplate.analysis.comparison import (
    Compared,
    ComparisonQuestion,
    accepting,
    answer,
    left_doubts,
    measurements_with,
    observed,
)
from bedplate.analysis.condition import (
    Condition,
    ConditionSubject,
    Truth,
    any_of,
    beyond,
    cell_truth,
    figures_of,
    parse_condition,
    truth,
)
from bedplate.analysis.overview import WHOLE, Overview, overview
from bedplate.analysis.pooled import estimate_words, figure_words, ratio_words
from bedplate.analysis.wording import capital, durability_class, figure, unit_words, verdict_word
from bedplate.cuts.runs import cut_cell_words, speaking
from bedplate.errors import PlanError, StudyError
from bedplate.model.durability import UNKNOWN
from bedplate.model.figure import Status
from bedplate.model.visit import Outcome, VisitRecord
from bedplate.statistics.comparison import EstimateKind, Verdict, at_confidence
from bedplate.statistics.paired_sequence import FIRST_LOOK, joint, sequential
from bedplate.study.records import PairedCells, PairedRecord, PairedStep
from bedplate.units import cut_line, format_count, format_duration


def paired_truth(
    condition: Condition, found: Overview, record: PairedRecord, lines: Sequence[Compared]
) -> Truth:
    """Whether it holds of the side with the change, in any pair."""
    if condition.subject is ConditionSubject.SIDES:
        return any_of(truth(condition, line) for line in condition.lines_of(lines))
    return side_truth(condition, found, record, [pair.contender for pair in record.pairs])


def side_truth(condition: Condition, found: Overview, record: PairedRecord, cells: Sequence[str]) -> Truth:
    """Whether a condition on one side holds of any of its cells, by an interval that may be looked at after every block."""
    confidence = joint(record.wrong, len(record.pairs))
    return any_of(
        cell_truth(
            condition,
            found,
            cell,
            workload=record.workload,
            confidence=confidence,
            estimate=sequential,
            repetitions=FIRST_LOOK,
        )
        for cell in cells
    )


def nearest(condition: Condition, found: Overview, record: PairedRecord, lines: Sequence[Compared]) -> Truth:
    """The side of the bound that the estimates lie on; CANNOT_TELL where there is none. For when the time is gone."""
    if condition.subject is ConditionSubject.SIDES:
        return any_of(_nearest_line(condition, line) for line in condition.lines_of(lines))
    if condition.subject is not ConditionSubject.FIGURE:
        return paired_truth(condition, found, record, lines)
    return any_of(
        Truth.HOLDS if float(beyond(condition, values).mean()) > 0 else Truth.FAILS
        for pair in record.pairs
        for values in figures_of(condition, found, pair.contender, record.workload)
    )


def seen_words(condition: Condition, found: Overview, record: PairedRecord, cells: Sequence[str]) -> str:
    """What the records have of one side, of a condition on one side: `0.5 flushes per appending fsync`."""
    if condition.subject is ConditionSubject.FLUSHES:
        rates = [
            f"{rate.text} on {found.cells[cell].label.full}" if len(cells) > 1 else rate.text
            for cell in cells
            if cell in found.cells
            for rate in found.cells[cell].flushes
            if (rate.device, rate.pattern) == (condition.device, condition.pattern)
        ]
        return f"{', '.join(rates) or 'no'} {'flush' if rates == ['1'] else 'flushes'} per {condition.pattern} fsync"
    if condition.subject is ConditionSubject.FIGURE:
        runs = [values for cell in cells for values in figures_of(condition, found, cell, record.workload)]
        means = ", ".join(f"{np.mean(values):.5g} of {len(values)}" for values in runs)
        return f"{condition.metric} {means}" if means else f"no {condition.metric}"
    classes = dict.fromkeys(_class_words(found, cell) for cell in cells)
    return ", ".join(classes)


def _nearest_line(condition: Condition, line: Compared) -> Truth:
    comparison = line.comparison
    if line.identical:
        return Truth.FAILS
    if comparison.estimate is None:
        return Truth.CANNOT_TELL
    goes_up = condition.goes_up(comparison.metric)
    if comparison.kind is EstimateKind.RATIO:
        distance, bound = math.log(comparison.estimate), math.log1p(condition.share)
    else:
        distance, bound = comparison.estimate, condition.share
    return Truth.HOLDS if (distance if goes_up else -distance) > bound else Truth.FAILS


def _class_words(found: Overview, cell: str) -> str:
    facts = found.cells.get(cell)
    if facts is None:
        return UNKNOWN
    if facts.cuts:
        _, cuts = speaking(facts.cuts, facts.cache)
        return f"bad cuts: {cut_cell_words(cuts)}"
    basis = "" if facts.durability is None else f" ({facts.durability.basis})"
    return f"{durability_class(facts.durability, facts.cache)} after a power cut{basis}"


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
    condition: Condition | None,
    lines: Sequence[Compared],
    problem: str | None,
) -> tuple[LackingSide, ...]:
    """Of the visits so far. `problem` is why there are no lines, where that is more than that a side has not run yet."""
    cells = dict.fromkeys(cell for pair in record.pairs for cell in (pair.baseline, pair.contender))
    every = tuple(_without_runs(found, list(cells)))
    if every:
        return every
    if condition is not None and condition.subject is not ConditionSubject.SIDES:
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


def _of_one_side(condition: Condition, found: Overview, record: PairedRecord) -> Iterator[LackingSide]:
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


# Visits after which nothing more is tried where none has completed.
_FAILED_VISITS = 2


@dataclass(frozen=True)
class Looked:
    """A study of pairs after its last block. `lines` are its pairs in each figure, with the interval of a sequence.

    `blocks` are those whose visits have ended, `spent_s` what all visits took. `lacking` is what a side has in no visit so far.
    """

    overview: Overview
    record: PairedRecord
    lines: tuple[Compared, ...]
    blocks: int
    spent_s: float
    lacking: tuple[LackingSide, ...] = ()

    @cached_property
    def block_s(self) -> float:
        """What the next block is expected to take: as long as those before it."""
        return self.spent_s / self.blocks if self.blocks else 0.0

    @property
    def time_is_gone(self) -> bool:
        """Whether another block would end after the budget."""
        return self.spent_s + self.block_s > self.record.budget_s

    @property
    def is_told(self) -> bool:
        """Whether every line has a verdict, or the condition is known."""
        if self.condition is not None:
            return self.condition is not Truth.CANNOT_TELL
        return bool(self.lines) and all(is_told(line) for line in self.lines)

    @cached_property
    def asked(self) -> Condition:
        """The record's condition; PlanError without one."""
        return parse_condition(self.record.condition or "", margin=self.record.margin)

    @cached_property
    def condition(self) -> Truth | None:
        """Whether the record's condition holds of the side with the change; None without one."""
        if self.record.condition is None:
            return None
        return paired_truth(self.asked, self.overview, self.record, self.lines)

    @property
    def has_failed(self) -> bool:
        """Whether a side lacks what is asked for in a whole block, or every visit failed: more of the same would not help."""
        records = [visit.record for visit in self.overview.study.visits]
        nothing_runs = len(records) >= _FAILED_VISITS and all(r.outcome is Outcome.FAILED for r in records)
        return bool(self.lacking) and (self.blocks > 0 or nothing_runs)

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self.has_failed or (self.blocks > 0 and (self.is_told or self.time_is_gone))


def is_told(line: Compared) -> bool:
    """Whether a line has its verdict: the same in force is the same."""
    return line.identical or line.comparison.verdict is not Verdict.CANNOT_TELL


def looked(found: Overview) -> Looked | None:
    """What a study of pairs came to; None of a study that is none, or of a selection of its cells."""
    return None if found.selection is not None else found.once(_looked)


def looked_at(study: Path) -> Looked:
    """The same of a study on disk; StudyError where it is none."""
    found = looked(overview(study))
    if found is None:
        raise StudyError(f"{study} does not measure pairs until they tell: it has no paired.json")
    return found


def _looked(found: Overview) -> Looked | None:
    record = found.study.paired
    if record is None:
        return None
    found = accepting([found], record.accepted)[0]
    compared: list[Compared] = []
    problem = None
    for pair in record.pairs:
        try:
            compared += _compared(found, record, pair)
        except PlanError as error:
            problem = "; ".join(error.reasons)
    asked = None if record.condition is None else parse_condition(record.condition, margin=record.margin)
    confidence = joint(record.wrong, len(compared))
    records = [visit.record for visit in found.study.visits]
    cells = dict.fromkeys(cell for pair in record.pairs for cell in (pair.baseline, pair.contender))
    return Looked(
        overview=found,
        record=record,
        lines=tuple(_as_sequence(line, confidence) for line in compared),
        blocks=_ended_blocks(records, list(cells)),
        spent_s=sum(each.whole_seconds or each.seconds for each in records),
        lacking=lacking(found, record, asked, compared, problem),
    )


def _compared(found: Overview, record: PairedRecord, pair: PairedCells) -> tuple[Compared, ...]:
    """The pair in each figure that is asked for; nothing before both sides have one. PlanError where no run has the figure."""
    question = ComparisonQuestion(
        pair.baseline,
        pair.contender,
        workload=record.workload,
        metrics=record.metrics,
        margin=record.margin,
    )
    if not {m.cell for m in found.measurements if m.by_metric} >= {pair.baseline, pair.contender}:
        return ()
    return answer([found], question).compared


def _as_sequence(line: Compared, confidence: float) -> Compared:
    """The line with an interval that may be looked at after every block; none before the first look."""
    plain = replace(
        line.comparison,
        basis=None,
        low=None,
        high=None,
        verdict=Verdict.CANNOT_TELL,
        difference_confidence=None,
    )
    (values,) = line.comparison.differences or ({},)
    if line.identical or line.incomparable or len(values) < FIRST_LOOK:
        return replace(line, comparison=replace(plain, confidence=confidence))
    found = sequential(np.array(list(_in_order(values)), dtype=np.float64))
    return replace(line, comparison=at_confidence(replace(plain, basis=found, reasons=()), confidence))


def _in_order(values: Mapping[int, float]) -> Sequence[float]:
    return [values[repetition] for repetition in sorted(values)]


def _ended_blocks(records: Sequence[VisitRecord], cells: Sequence[str]) -> int:
    ended: dict[int, set[str]] = {}
    for each in records:
        if not each.key.canary:
            ended.setdefault(each.key.repetition, set()).add(each.key.cell)
    return sum(set(cells) <= found for found in ended.values())


# The answer has eight lines at most: two or three of the whole, the rest are pairs.
_LINES = 3

_NAME_CHARACTERS = 60

_CODES = 3

_REASON_CHARACTERS = 300


def answer_lines(found: Looked) -> tuple[str, ...]:
    """The answer, in at most eight lines."""
    return tuple(_answer(found))


def progress_words(found: Looked, *, is_last: bool) -> str:
    """Where it is, in one line: `block 5: tps ×0.98 (0.95 to 1.01): cannot tell; 8 min of 2 h`."""
    told = "; ".join(line_words(found, line) for line in found.lines[:_LINES]) or "no pair has a figure yet"
    if found.has_failed:
        told = lacking_words(found)
    time = f"{format_duration(found.spent_s)} of {format_duration(found.record.budget_s)}"
    if is_last:
        return f"{'known' if found.is_told else 'not known'} after {_blocks(found)}: {told}; {time}"
    return f"block {found.blocks}: {told}; {time}"


def side_names(record: PairedRecord) -> tuple[str, str]:
    """What the two sides are called, short and without what a terminal would obey."""
    return short_name(record.baseline), short_name(record.contender)


def short_name(text: str, characters: int = _NAME_CHARACTERS) -> str:
    """A name that somebody typed or wrote, on one line and as long as a line bears."""
    return cut_line(text, characters)


def _answer(found: Looked) -> Iterator[str]:
    baseline, contender = side_names(found.record)
    yield f"{_verdict(found)}: {contender} beside {baseline}."
    for line in found.lines[:_LINES]:
        yield f"  {line_words(found, line)}{_levels(line)}"
    yield from _promises(found)
    if rest := found.lines[_LINES:]:
        told = sum(is_told(line) for line in rest)
        yield f"  and {format_count(len(rest), 'more line')}, {told} of them known: `bedplate show {found.overview.study.directory}`"
    time = f"{format_duration(found.spent_s)} of {format_duration(found.record.budget_s)}"
    yield f"  {_blocks(found)}, {time} of visits{_left_out(found)}; the intervals hold at every look."
    yield from _why_not(found)


def _blocks(found: Looked) -> str:
    return format_count(found.blocks, "block")


def _promises(found: Looked) -> Iterator[str]:
    """That the change changes what a power cut leaves, which no speed makes up for."""
    for pair in found.record.pairs:
        sides = [found.overview.cells.get(cell) for cell in (pair.baseline, pair.contender)]
        first, second = (
            None if each is None else durability_class(each.durability, each.cache) for each in sides
        )
        if first is not None and second is not None and first != second:
            baseline, contender = side_names(found.record)
            yield f"  After a power cut: {baseline} {first}, {contender} {second}."
            return


def _verdict(found: Looked) -> str:
    record = found.record
    if found.condition is not None:
        words = {Truth.HOLDS: "holds", Truth.FAILS: "does not hold", Truth.CANNOT_TELL: "is not known"}
        return f"“{record.condition}” {words[found.condition]}"
    words_of = dict.fromkeys(map(_word, found.lines))
    if not words_of:
        return "Cannot tell"
    return capital(", ".join(words_of))


def _word(line: Compared) -> str:
    if line.identical:
        return "effectively the same"
    return verdict_word(line.comparison)


def line_words(found: Looked, line: Compared) -> str:
    """`read-write tps on xfs: ×0.94 (0.91 to 0.97): slower`; where a condition is asked, it has the verdict."""
    what = f"{line.asked.run[1]} {line.asked.metric}{f' {line.asked.part}' if line.asked.part else ''}"
    if len(found.record.pairs) > 1:
        what += f" on {short_name(found.overview.cells[line.pair.baseline.cell].label.full)}"
    if line.identical:
        return f"{what}: effectively the same"
    if line.comparison.basis is None:
        estimate, suspect = line.comparison.estimate, line.comparison.suspect
        seen = "" if estimate is None else f"{estimate_words(line.comparison.kind, estimate, 2)}, "
        why = f"; {_suspect_runs(found, suspect)}" if suspect else ""
        return f"{what}: {seen}{line.comparison.n} of the {FIRST_LOOK} pairs of a first look{why}"
    told = figure_words if found.record.condition is None else ratio_words
    return f"{what}: {told(line.comparison)}"


def _levels(line: Compared) -> str:
    if any(each.centre is None for each in line.figures):
        return ""
    first, second = (figure(each).mean for each in line.figures)
    return f"; {first} and {second} {unit_words(line.comparison.metric)}".rstrip()


def _left_out(found: Looked) -> str:
    suspect = max((line.comparison.suspect for line in found.lines), default=0)
    return f", {_suspect_runs(found, suspect)} left out and repeated" if suspect else ""


def _suspect_runs(found: Looked, count: int) -> str:
    """`3 suspect runs (others-at-work, two-speeds)`: the codes that `--accept` would take, the most frequent first."""
    cells = {cell for pair in found.record.pairs for cell in (pair.baseline, pair.contender)}
    codes = Counter(
        reason.code
        for each in found.overview.measurements
        if each.cell in cells and each.outcome is Outcome.COMPLETED and not each.validity.is_trusted
        for reason in left_doubts(each.reasons, found.record.accepted)
    )
    named = ", ".join(code for code, _ in codes.most_common(_CODES))
    return f"{count} suspect run{'s' * (count > 1)}{f' ({named})' if named else ''}"


def lacking_words(found: Looked) -> str:
    """What a side never has, and why; of several the first, and how many more there are."""
    first, more = found.lacking[0], len(found.lacking) - 1
    facts = found.overview.cells.get(first.cell)
    of = f" of {short_name(facts.label.full)}" if facts is not None else ""
    what = f"has {first.what}" if first.what else "completed"
    others = f" (and {more} more of the kind)" if more else ""
    return f"no run{of} {what}{others}: {short_name(first.why, _REASON_CHARACTERS)}"


def _why_not(found: Looked) -> Iterator[str]:
    if found.is_told:
        return
    if found.has_failed:
        mend = "Ask for another (--metric, --workload)" if found.lacking[0].what else "Mend that"
        yield f"  {capital(lacking_words(found))}. {mend} and begin in another --directory."
    elif found.time_is_gone:
        yield "  The time is gone. The same command with a larger --budget goes on."
    else:
        yield "  It was stopped. The same command goes on."


@dataclass(frozen=True)
class UntilTold:
    """Blocks until every line tells, the condition is known, or time is gone.

    `first_blocks` run before the first look, unless a side lacks what is asked for in the first of them.
    """

    first_blocks: int = FIRST_LOOK

    def next(self, study: Path) -> PairedStep:
        """The next step of a study that stands on disk."""
        found = looked_at(study)
        # Before the first look a block says only whether there is anything to look at.
        is_last = found.is_last if found.blocks >= self.first_blocks else found.has_failed
        return PairedStep(progress_words(found, is_last=is_last), is_last=is_last)
