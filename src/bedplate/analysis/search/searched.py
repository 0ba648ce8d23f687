"""A search worked out from its study alone: the same records give the same answer, and the same next block.

What counts of a visit is its last attempt; an earlier one took time and was not believed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bedplate.analysis.comparison.accepted import accepting
from bedplate.analysis.labels import label_cells
from bedplate.analysis.search.entrants import Entrants, entrants
from bedplate.model.alike import AlikeFailures
from bedplate.model.figure import Status
from bedplate.model.metrics import METRICS
from bedplate.model.reason import because
from bedplate.model.visit import Outcome
from bedplate.statistics.search.choice import lead, near_best
from bedplate.statistics.search.course import Ending, SearchEnd, following, outside_of, weighed
from bedplate.statistics.search.proof import SearchQuestion, judged_proof
from bedplate.statistics.search.space import Tried, in_order
from bedplate.statistics.summary import TRUSTED, Summary, summarise

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bedplate.analysis.labels import CellLabel
    from bedplate.analysis.overview import Measurement, Overview
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.figure import Metric
    from bedplate.model.reason import Reason
    from bedplate.model.search import SearchRecord
    from bedplate.statistics.estimation import BoolArray, FloatArray
    from bedplate.statistics.search.choice import Lead
    from bedplate.statistics.search.course import NextBlock
    from bedplate.statistics.search.posterior import Posterior
    from bedplate.statistics.search.proof import SearchProof

_TAILS = (2.5, 97.5)
_SHUT_BY_FAILURES = because("search-visits-failed", "visits failed, so that no more are made")
_NOT_BELIEVED = because("search-runs-not-believed", "no run could be believed, so that no more are made")


@dataclass(frozen=True)
class Predicted:
    """What the model expects of a cell's figure, in its unit: the median of its draws and 95 % of them."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SearchedCell:
    """A cell of the plan in a search.

    `visits` are its attempts, `believed` those with a trusted figure. `measured` has all of them, `proved` those of the last proof;
    None where it took no part in one or none of its runs there is believed. `predicted` is None before the first believed figure, and of a cell that was left out from
    the beginning. `near` is the chance to be within the margin of the best, `best` that to be it. `closed` says why it is not visited any
    more, or never was.
    """

    id: str
    label: CellLabel
    visits: int
    believed: int
    measured: Summary
    proved: Summary | None
    predicted: Predicted | None
    near: float
    best: float
    closed: Reason | None = None


@dataclass(frozen=True)
class SearchMoment:
    """What the model said after a block: who led and its chance to be within the margin of the best.

    `spent_s` are the seconds of all visits up to then. `best` has each cell's chance to be the best, where it is above 0.
    """

    block: int
    proof: int
    cells: tuple[str, ...]
    spent_s: float
    leader: str
    chance: float
    best: Mapping[str, float]


@dataclass(frozen=True)
class Searched:
    """A search as its study has it. Cells are named by their ids; numbers are those of the model.

    `tried` are the visits of whole blocks and of one that is under way. `pending` says how many visits of the last blocks have not ended.
    `stage` is the number of the run that it is about. Visits of other stages tell this one's model what they found, and take none of its
    time. `taken` are seconds by block, of all.
    """

    overview: Overview
    record: SearchRecord
    entrants: Entrants
    question: SearchQuestion
    tried: tuple[Tried, ...]
    pending: int
    taken: Mapping[int, float]
    stage: int = 0

    @property
    def metric(self) -> Metric:
        """The figure whose best cell is looked for."""
        return self.question.metric

    @property
    def run(self) -> tuple[str, str]:
        """Dataset and name of the run that it is a figure of."""
        return self.record.dataset, self.record.runs[self.stage]

    @cached_property
    def counted(self) -> Overview:
        """The study with the runs believed whose doubts were accepted."""
        return _counted(self.overview, self.record)

    @cached_property
    def runs(self) -> tuple[Measurement, ...]:
        """The completed runs of its blocks, accepted doubts taken away."""
        in_search = {block.number + 1 for block in self.record.blocks}
        return tuple(
            m
            for cell in self.entrants.cells
            for m in self.counted.of(cell, self.run)
            if m.repetition in in_search and m.outcome is Outcome.COMPLETED
        )

    @cached_property
    def doubted(self) -> tuple[Measurement, ...]:
        """Those of its runs that are not believed, although they were completed."""
        return tuple(m for m in self.runs if not m.validity.is_trusted)

    @cached_property
    def spent_s(self) -> float:
        """Seconds of all visits, with canaries, power cuts and builds."""
        return self.entrants.overhead_s + sum(self.taken.values())

    @property
    def budget_s(self) -> float:
        """Seconds that all nodes together may take."""
        return self.record.budget_s * self.record.at_once

    @cached_property
    def open(self) -> BoolArray:
        """Which candidates may still win."""
        return self.entrants.space.open(self.tried)

    @cached_property
    def known(self) -> Posterior:
        """The model on every believed figure."""
        return weighed(self.entrants.space, self.question, self.tried)

    @cached_property
    def lead(self) -> Lead | None:
        """Who leads by the model; None where no cell is left, or nothing was believed yet."""
        if not self.open.any() or not any(each.value for each in self.tried):
            return None
        return lead(self.known, self.open, self.question.margin)

    @cached_property
    def failed_alike(self) -> tuple[str, ...]:
        """Why no further visit is worth its time: all of them failed alike, and what is left has all that those had in common. Empty else."""
        alike = AlikeFailures()
        for visit in self.overview.study.visits:
            if not visit.record.key.canary:
                alike.add(visit.record)
        tried = {each.cell for each in self.tried}
        every = self.overview.study.schedule.cells
        left = [cell for number, cell in enumerate(self.entrants.cells) if number not in tried]
        return alike.verdict((every[cell], self.record.dataset, None) for cell in left)

    @cached_property
    def after(self) -> tuple[NextBlock, ...] | SearchEnd | None:
        """What comes next, or the end; None while a block is under way.

        ValueError before the first visit where the budget is below one block.
        """
        if self.failed_alike:
            return SearchEnd(Ending.NOT_KNOWN, (), 0.0, None, None)
        if self.pending:
            return None
        found = following(self.entrants.space, self.question, self.tried, at_once=self.record.at_once)
        if self.record.extended is None or isinstance(found, SearchEnd):
            return found
        # What is not proved when a search becomes a factorial stays so.
        best = self.lead
        if best is None:
            return SearchEnd(Ending.NOT_KNOWN, (), 0.0, None, self.proof)
        left_out = outside_of(self.proof, self.known, self.open, self.question.margin)
        return SearchEnd(Ending.NOT_KNOWN, (best.leader,), best.chance, left_out, self.proof)

    @property
    def end(self) -> SearchEnd | None:
        """How it ended; None where it goes on."""
        return self.after if isinstance(self.after, SearchEnd) else None

    @cached_property
    def proof(self) -> SearchProof | None:
        """The last proof as far as it has come; None before one."""
        last = max((each.proof for each in self.tried), default=0)
        leaders = [each.cell for each in self.tried if each.leads and each.proof == last]
        if not last or not leaders:
            return None
        return judged_proof(self.question, leaders[0], [each for each in self.tried if each.proof == last])

    def id_of(self, number: int) -> str:
        """The id of a cell by its number."""
        return self.entrants.cells[number]

    @cached_property
    def labels(self) -> Mapping[str, CellLabel]:
        """What each cell of the plan is called, visited or not, by its id."""
        every = self.overview.study.schedule.cells
        asked = (
            *(each.cell for each in self.record.candidates),
            *(each.cell for each in self.record.left_out),
        )
        read_back = {
            cell: facts.label.filesystem_block_bytes
            for cell, facts in self.overview.cells.items()
            if facts.label.filesystem_block_bytes is not None
        }
        # mkfs makes of equal requests equal blocks, so a cell that nobody visited has those of one that was.
        made: defaultdict[FilesystemLevels, set[int]] = defaultdict(set)
        for cell, size in read_back.items():
            made[every[cell].filesystem].add(size)
        alike = {
            cell: min(sizes) for cell in asked if len(sizes := made.get(every[cell].filesystem, set())) == 1
        }
        return label_cells([every[cell] for cell in asked], {**alike, **read_back})

    @cached_property
    def cells(self) -> tuple[SearchedCell, ...]:
        """Every cell of the plan, candidates first, in the plan's order."""
        never = tuple(
            SearchedCell(
                each.cell, self.labels[each.cell], 0, 0, Summary(0), None, None, 0.0, 0.0, each.reason
            )
            for each in self.record.left_out
        )
        return (*(self._cell(cell) for cell in self.entrants.cells), *never)

    @cached_property
    def course(self) -> tuple[SearchMoment, ...]:
        """After each block from the second on what the model said; the model is worked out for each."""
        found = []
        numbers = sorted({each.block for each in self.tried})
        blocks = {block.number: block for block in self.record.blocks}
        for number in numbers:
            so_far = tuple(each for each in self.tried if each.block <= number)
            if not self.open.any() or not any(each.value for each in so_far):
                continue
            known = weighed(self.entrants.space, self.question, so_far)
            best = lead(known, self.open, self.question.margin)
            found.append(
                SearchMoment(
                    block=number,
                    proof=blocks[number].proof,
                    cells=blocks[number].cells,
                    spent_s=sum(taken for block, taken in self.taken.items() if block <= number),
                    leader=self.id_of(best.leader),
                    chance=best.chance,
                    best={self.id_of(at): float(share) for at, share in enumerate(best.best) if share > 0},
                )
            )
        return tuple(found)

    def _cell(self, cell: str) -> SearchedCell:
        number = self.entrants.number(cell)
        closed = self.entrants.closed.get(self.entrants.numbers[cell])
        own = [each for each in self.tried if each.cell == number]
        in_proof = {each.block for each in own if each.proof and each.proof == self._proofs}
        runs = self.counted.of(cell, self.run)
        believed = sum(each.value is not None for each in own)
        return SearchedCell(
            id=cell,
            label=self.labels[cell],
            visits=len(own),
            believed=believed,
            measured=self._summary(runs),
            proved=self._proved(runs, in_proof),
            predicted=self._predicted(number),
            near=float(self._near[number]),
            best=0.0 if self.lead is None else float(self.lead.best[number]),
            closed=closed or self._why_shut(number, own),
        )

    def _proved(self, runs: Sequence[Measurement], blocks: Collection[int]) -> Summary | None:
        """What the runs of its proof come to; None without one that is believed, and where some were stopped at a limit."""
        found = self._summary([m for m in runs if m.repetition - 1 in blocks])
        return found if found.basis == TRUSTED and not found.censored else None

    @property
    def is_at_the_last_run(self) -> bool:
        """Whether no other run's search follows."""
        return self.stage + 1 == len(self.record.runs)

    @property
    def _proofs(self) -> int:
        return max((each.proof for each in self.tried), default=0)

    @cached_property
    def _near(self) -> FloatArray:
        if self.lead is None:
            return np.zeros(len(self.entrants.cells))
        return near_best(self.known, self.open, self.question.margin)

    def _summary(self, runs: Sequence[Measurement]) -> Summary:
        in_search = {block.number + 1 for block in self.record.blocks}
        kept = [m.observation(self.metric.name) for m in runs if m.repetition in in_search]
        return summarise(kept, self.metric.scale)

    @cached_property
    def _logarithms(self) -> FloatArray | None:
        """The logarithm of each cell's turned figure, of the shape (draws, cells): the model's, at the level of what was believed."""
        values = [
            (each.cell, math.log(self.question.turned(each.value))) for each in self.tried if each.value
        ]
        if not values:
            return None
        cells = [cell for cell, _ in values]
        level = np.mean([log for _, log in values]) - self.known.draws[:, cells].mean(axis=1, keepdims=True)
        return np.asarray(self.known.draws + level)

    def _predicted(self, number: int) -> Predicted | None:
        if self._logarithms is None:
            return None
        turned = np.exp(np.percentile(self._logarithms[:, number], (50, *_TAILS)))
        value, low, high = (self.question.turned(float(each)) for each in turned)
        return Predicted(value, min(low, high), max(low, high))

    def _why_shut(self, number: int, own: Sequence[Tried]) -> Reason | None:
        return (
            None
            if self.open[number]
            else _SHUT_BY_FAILURES
            if any(each.failed for each in own)
            else _NOT_BELIEVED
        )


def searched(found: Overview) -> Searched | None:
    """What a study's search came to, of several runs the one that it is at; None of a study that is no search."""
    begun = stages(found)
    return begun[-1] if begun else None


def search_of(found: Overview) -> Searched | None:
    """The search of a whole study that has a visit; None of a selection of cells, of which the model says nothing."""
    return None if found.selection is not None or not found.measurements else searched(found)


def stages(found: Overview) -> tuple[Searched, ...]:
    """A search for each run that it came to, in the order asked: a later one begins when the one before has ended. Empty of a study that is none."""
    return found.once(_stages)


def _stages(found: Overview) -> tuple[Searched, ...]:
    record = found.study.search
    if record is None:
        return ()
    of_cells = entrants(found, record)
    reserve = record.cut_seconds if record.cut_dataset is not None else 0.0
    whole = record.budget_s * record.at_once - of_cells.overhead_s - reserve
    share = whole / len(record.runs)
    counted = _counted(found, record)
    made: list[Searched] = []
    for stage in range(len(record.runs)):
        tried, pending, taken = _tried(counted, record, of_cells, stage)
        # What an earlier run did not need is a later one's.
        earlier = sum(taken.get(block.number, 0.0) for block in record.blocks if block.stage < stage)
        left = whole - earlier - share * (len(record.runs) - 1 - stage)
        question = question_of(
            record,
            found.study.schedule.seed,
            of_cells.numbers,
            budget_s=max(left, 1e-9),
            beside=tuple(dict.fromkeys(each.end.cells[0] for each in made if each.end)),
        )
        made.append(Searched(found, record, of_cells, question, tried, pending, taken, stage))
        is_last = stage + 1 == len(record.runs)
        if is_last or made[-1].end is None or not made[-1].end.cells:
            break
    return tuple(made)


def question_of(
    record: SearchRecord,
    seed: int,
    numbers: Mapping[str, int],
    *,
    budget_s: float,
    beside: tuple[int, ...] = (),
) -> SearchQuestion:
    """The question as the statistics take it; ValueError for a figure that has no best."""
    baseline = None if record.baseline is None else numbers[record.baseline]
    others = tuple((METRICS[each.metric], each.share) for each in record.not_worse)
    return SearchQuestion(METRICS[record.best], budget_s, seed, baseline, record.margin, others, beside)


def _counted(found: Overview, record: SearchRecord) -> Overview:
    (counted,) = accepting((found,), record.accepted)
    return counted


def _tried(
    found: Overview, record: SearchRecord, of_cells: Entrants, stage: int
) -> tuple[tuple[Tried, ...], int, dict[int, float]]:
    """Every attempt at a visit of the blocks, how many visits have none, and the seconds of each block."""
    attempts: defaultdict[tuple[str, int], list[tuple[int, float, bool]]] = defaultdict(list)
    for visit in found.study.visits:
        key, one = visit.record.key, visit.record
        if key.dataset == record.dataset and not key.canary:
            took = one.whole_seconds or one.seconds
            attempts[key.cell, key.repetition].append((key.attempt, took, one.outcome is Outcome.FAILED))
    measured = {
        (m.cell, m.repetition): m
        for cell in of_cells.cells
        for m in found.of(cell, (record.dataset, record.runs[stage]))
    }
    metrics = (record.best, *(each.metric for each in record.not_worse))
    made: list[Tried] = []
    taken: defaultdict[int, float] = defaultdict(float)
    pending = 0
    for block in record.blocks:
        is_own = block.stage == stage
        leader = None if block.leader is None or not is_own else of_cells.number(block.leader)
        for cell in block.cells:
            place = (cell, block.number + 1)
            number = of_cells.number(cell)
            own = sorted(attempts[place])
            last = measured.get(place)
            if not own:
                # What is damaged on the disk took a visit, and is not believed.
                if last is None or not last.unreached:
                    pending += record.extended is None
                    continue
                own = [(1, 0.0, False)]
            for at, (_, seconds, failed) in enumerate(own):
                taken[block.number] += seconds
                value, *others = (
                    _value(last, each) if at == len(own) - 1 and last is not None else None
                    for each in metrics
                )
                made.append(
                    Tried(
                        block.number,
                        number,
                        value,
                        seconds if is_own else 0.0,
                        proof=block.proof if is_own else 0,
                        failed=failed,
                        leads=number == leader,
                        others=tuple(others),
                    )
                )
    return tuple(in_order(made)), pending, dict(taken)


def _value(m: Measurement, metric: str) -> float | None:
    """What is believed of a run; None of one that failed, is in doubt or has no such figure.

    One that was stopped at its limit counts as the limit, as where cells are compared: without it the cell would be as fast as its quick runs.
    """
    observed = m.observation(metric)
    value = observed.limit if observed.status is Status.CENSORED else observed.value
    if m.outcome is not Outcome.COMPLETED or observed.status is Status.ABSENT or not m.validity.is_trusted:
        return None
    return value if value is not None and 0 < value < math.inf else None
