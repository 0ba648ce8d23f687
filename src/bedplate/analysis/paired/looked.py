"""A study of pairs as it stands: each pair in each figure with an interval that holds at every look, and what follows.

All is worked out from the study's records: the same records give the same answer and the same next step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bedplate.analysis.comparison.accepted import accepting
from bedplate.analysis.comparison.compared import ComparisonQuestion, answer
from bedplate.analysis.comparison.condition import Truth
from bedplate.analysis.overview import overview
from bedplate.analysis.paired.condition import paired_truth, parse_paired_condition
from bedplate.analysis.paired.lacking import lacking
from bedplate.errors import PlanError, StudyError
from bedplate.model.visit import Outcome
from bedplate.statistics.comparison import Verdict, at_confidence
from bedplate.statistics.paired_sequence import FIRST_LOOK, joint, sequential

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.analysis.comparison.compared import Compared
    from bedplate.analysis.overview import Overview
    from bedplate.analysis.paired.condition import PairedCondition
    from bedplate.analysis.paired.lacking import LackingSide
    from bedplate.model.visit import VisitRecord
    from bedplate.study.paired import PairedCells, PairedRecord

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
    def asked(self) -> PairedCondition:
        """The record's condition; PlanError without one."""
        return parse_paired_condition(self.record.condition or "", margin=self.record.margin)

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
    asked = (
        None if record.condition is None else parse_paired_condition(record.condition, margin=record.margin)
    )
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
