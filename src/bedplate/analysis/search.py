"""A search as its study has it: what was asked, what was visited, who leads, what comes next or how it ended."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from bedplate.analysis.advice import Objective, failed_alike, objectives_of
from bedplate.analysis.comparison import accepting
from bedplate.analysis.labels import CellLabel, factor_levels, label_cells, level_text, short_name
from bedplate.analysis.overview import Measurement, Overview, overview
from bedplate.analysis.pooled import as_high_words, figure_words
from bedplate.analysis.wording import durability_class, durability_told, figure, number_words, unit_words
from bedplate.errors import PlanError, StudyError
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, FilesystemLevels, digest, engine_model
from bedplate.model.device_cache import PROTECTED
from bedplate.model.figure import Better, Metric, Status
from bedplate.model.filesystem import LABEL, TRAITS, FilesystemTraits
from bedplate.model.levels import Scalar, as_in_a_plan
from bedplate.model.metrics import METRICS
from bedplate.model.plan import (
    ANY,
    MEASURED,
    NOT_ASKED,
    SURVIVING,
    WANTED,
    SearchedBlock,
    SearchRecord,
    SearchStep,
)
from bedplate.model.reason import Reason, because
from bedplate.model.visit import AlikeFailures, Outcome, VisitRecord
from bedplate.near_names import did_you_mean
from bedplate.statistics.comparison import Comparison, compare, direction, judged_together
from bedplate.statistics.design import DesignCell, design
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.search import (
    CHANCE,
    Ending,
    Lead,
    NextBlock,
    Posterior,
    SearchEnd,
    SearchProof,
    SearchQuestion,
    SearchSpace,
    Tried,
    following,
    in_order,
    judged_proof,
    lead,
    near_best,
    outside_of,
    weighed,
)
from bedplate.statistics.summary import TRUSTED, Observation, Summary, summarise
from bedplate.units import asked_percent, format_count, format_duration, percent

if TYPE_CHECKING:
    from bedplate.statistics.estimation import BoolArray, FloatArray


@dataclass(frozen=True)
class Entrants:
    """`cells` are the ids of the candidates by their number, `numbers` the other way.

    `same_as` has the number of the cell whose visits a cell shares, as both are the same in force. `closed` says by number
    why a cell is not visited any more, or never. `overhead_s` is what the visits took beside those of the candidates: canaries, power
    cuts, builds.
    """

    cells: tuple[str, ...]
    numbers: Mapping[str, int]
    space: SearchSpace
    same_as: Mapping[int, int]
    closed: Mapping[int, Reason]
    overhead_s: float

    def number(self, cell: str) -> int:
        """The number by which a cell's visits count."""
        own = self.numbers[cell]
        return self.same_as.get(own, own)


def first_space(record: SearchRecord, cells: Mapping[str, Cell]) -> SearchSpace:
    """Before the first visit; ValueError below two cells."""
    levels = factor_levels((cells[each.cell], None) for each in record.candidates)
    seconds = tuple(each.seconds + record.builds.get(each.build, 0.0) for each in record.candidates)
    return SearchSpace(levels, seconds)


def entrants(found: Overview, record: SearchRecord) -> Entrants:
    """What the study's visits say of the candidates by now."""
    cells = tuple(each.cell for each in record.candidates)
    numbers = {cell: number for number, cell in enumerate(cells)}
    visits = [visit.record for visit in found.study.visits]
    same_as = _same_as(found, numbers)
    closed = {**_closed(found, record, numbers), **_merged(found, cells, same_as)}
    seconds, builds_s = _seconds(record, visits)
    space = replace(
        first_space(record, found.study.schedule.cells), seconds=seconds, closed=frozenset(closed)
    )
    # What came when the study was extended is no part of the search's budget, and its canaries are like any other's.
    others = [] if record.extended is not None else visits
    overhead_s = builds_s + sum(
        _taken(each) for each in others if each.key.canary or each.key.dataset == record.cut_dataset
    )
    return Entrants(cells, numbers, space, same_as, closed, overhead_s)


def _taken(record: VisitRecord) -> float:
    return record.whole_seconds or record.seconds


def _same_as(found: Overview, numbers: Mapping[str, int]) -> dict[int, int]:
    """Of cells that are the same in force the first one of the plan, by the numbers of the others."""
    same: dict[int, int] = {}
    for cell, number in numbers.items():
        others = found.cells[cell].identical_to if cell in found.cells else ()
        first = min((numbers[other] for other in others if other in numbers), default=number)
        if first < number:
            same[number] = first
    return same


def _merged(found: Overview, cells: tuple[str, ...], same_as: Mapping[int, int]) -> dict[int, Reason]:
    return {
        number: because(
            "identical-in-force",
            f"it is effectively the same as {found.cells[cells[first]].label.full}, whose visits count for both",
            cell=cells[first],
        )
        for number, first in same_as.items()
    }


def _closed(found: Overview, record: SearchRecord, numbers: Mapping[str, int]) -> dict[int, Reason]:
    """Cells of another class than was asked for: their own visits say so, or those of a cell that differs in its build alone."""
    if record.durable == ANY:
        return {}
    every = found.study.schedule.cells
    classes: dict[str, str] = {}
    for cell in numbers:
        facts = found.cells.get(cell)
        # Of a cell whose visits all failed nothing is known yet.
        if facts is not None and facts.durability is not None and facts.declared is not None:
            cache = PROTECTED if record.durable == SURVIVING else facts.cache
            classes[cell] = durability_class(facts.durability, cache)
    wanted = WANTED[record.durable]
    refused = {_but_build(every[cell]): cell for cell, own in classes.items() if own not in wanted}
    closed: dict[int, Reason] = {}
    for cell, number in numbers.items():
        if cell in classes:
            other = cell if classes[cell] not in wanted else None
        else:
            other = refused.get(_but_build(every[cell]))
        if other is not None:
            whose = (
                ""
                if other == cell
                else f", as {found.cells[other].label.full} is, which differs in its build alone"
            )
            basis = found.cells[other].durability
            words = f"{classes[other]} after a power cut{' (measured)' if basis and basis.basis == 'measured' else ''}{whose}"
            closed[number] = because(NOT_ASKED, words, durability=classes[other])
    return closed


def _but_build(cell: Cell) -> str:
    """What decides the flushes of a cell: all but the build of its engine."""
    return digest(replace(cell, build=BuildLevels.unbuilt(cell.build.engine)))


def _seconds(record: SearchRecord, visits: list[VisitRecord]) -> tuple[tuple[float, ...], float]:
    """What a visit of each candidate is expected to take, and what builds took that visits needed.

    By its own visits where there are some; else as reckoned, as wrong as it was of the others. A build is made for its first visit.
    """
    own: defaultdict[str, list[float]] = defaultdict(list)
    begun: set[str] = set()
    for each in visits:
        if each.key.dataset == record.dataset and not each.key.canary:
            begun.add(each.key.cell)
            if each.outcome is Outcome.COMPLETED and _taken(each) > 0:
                own[each.key.cell].append(_taken(each))
    means = {cell: fmean(taken) for cell, taken in own.items()}
    reckoned = sum(each.seconds for each in record.candidates if each.cell in means)
    correction = (
        sum(means[each.cell] for each in record.candidates if each.cell in means) / reckoned
        if reckoned
        else 1.0
    )
    made = {each.build for each in record.candidates if each.cell in begun}
    seconds = tuple(
        means.get(each.cell, each.seconds * correction)
        + (record.builds.get(each.build, 0.0) if each.build not in made else 0.0)
        for each in record.candidates
    )
    return seconds, sum(record.builds.get(build, 0.0) for build in made)


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

    `measured` has all visits, `proved` those of the last proof; None where it took no part in one or none of its runs there is
    believed. `predicted` is None before the first believed figure, and of a cell that was left out from the beginning. `near` is
    the chance to be within the margin of the best, `best` that to be it.
    """

    id: str
    label: CellLabel
    visits: int
    """visits of the search and its proofs"""
    believed: int
    """those with a trusted figure"""
    measured: Summary
    proved: Summary | None
    predicted: Predicted | None
    near: float
    best: float
    closed: Reason | None = None
    """why it is not visited any more, or never was"""

    @property
    def has_chance(self) -> bool:
        """Whether its scatter was seen: before that the model only has what it was given."""
        return self.believed >= REPETITIONS_MIN

    @property
    def figure(self) -> Summary | None:
        """Its trusted repetitions, those of the last proof where it took part; None without one, and where some were stopped at a limit."""
        summary = self.proved or self.measured
        return summary if summary.basis == TRUSTED and not summary.censored else None


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
    def objectives(self) -> tuple[Objective, ...]:
        """The figures of its run that have a better direction, and what sentences call them."""
        return objectives_of(self.counted, self.run)

    def with_head(self, value: str) -> str:
        """A value of the figure with what it is called and its unit: `1,269 tps`, `p99 15 ms`, `cv of tps 0.2`."""
        heads = {each.metric.name: each.head for each in self.objectives}
        head = heads.get(self.metric.name, self.metric.name)
        with_unit = f"{head} {value} {unit_words(self.metric)}".rstrip()
        return f"{value} {head}" if self.metric.unit == "1/s" else with_unit

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
    def shared_failure(self) -> str:
        """What every run failed with; empty where one did not fail, or otherwise."""
        return failed_alike([m for m in self.overview.measurements if not m.canary])

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
        in_proof = {each.block for each in own if each.proof and each.proof == self.proofs}
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
    def proofs(self) -> int:
        """How many proofs were begun."""
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


def shown_first(search: Searched) -> tuple[SearchedCell, ...]:
    """The cells that may win or were visited: those of the last proof, then the best chance first.

    A cell that was never visited is known so little that its chance can exceed that of the proved ones.
    """
    shown = [cell for cell in search.cells if cell.closed is None or cell.visits]
    return tuple(sorted(shown, key=lambda cell: (cell.proved is None, -cell.best, -cell.near, -cell.visits)))


def predicted_words(predicted: Predicted | None) -> tuple[str, str]:
    """`1,290` and `1,250–1,330`; two empty texts before the first believed figure."""
    if predicted is None:
        return "", ""
    scatter = (predicted.high - predicted.low) / 2 or None
    value, low, high = (
        number_words(each, scatter) for each in (predicted.value, predicted.low, predicted.high)
    )
    return value, f"{low}–{high}"


def accepted_words(search: Searched) -> str:
    """How many runs in doubt are believed, as their doubts were accepted; empty where none is."""
    added = search.counted.marks[len(search.overview.marks) :]
    return " ".join(added)


def doubted_words(search: Searched) -> tuple[str, ...]:
    """How many completed runs are not believed, then each doubt once with how many runs have it and one's words; empty where all are."""
    if not search.doubted:
        return ()
    doubts = [reason for m in search.doubted for reason in m.reasons]
    counts = Counter(reason.code for reason in doubts)
    one_of = {reason.code: reason.sentence for reason in reversed(doubts)}
    of = f"of {len(search.runs)} run{'s' if len(search.runs) > 1 else ''}"
    return (
        f"{len(search.doubted)} {of}, which are not believed: the model has no figure of them",
        *(f"{count} {of}, such as: {one_of[code]}" for code, count in counts.most_common()),
    )


def left_out_words(search: Searched) -> tuple[str, ...]:
    """Why cells are not visited, each reason once with how many cells it holds for."""
    reasons = Counter(cell.closed.sentence for cell in search.cells if cell.closed is not None)
    return tuple(
        f"{count} cell{'s' if count > 1 else ''} left out: {sentence}."
        for sentence, count in reasons.most_common()
    )


@dataclass(frozen=True)
class FactorMatter:
    """The two levels of a factor that are furthest apart: how many times better the first is than the second.

    `low` and `high` bound 95 % of the model's draws. It says what the model expects, of cells that were chosen to be visited.
    """

    factor: str
    better: Scalar
    worse: Scalar
    ratio: float
    low: float
    high: float


def factors_that_matter(search: Searched) -> tuple[FactorMatter, ...]:
    """Every factor of the candidates, the strongest first; none before the first believed figure."""
    if search.lead is None:
        return ()
    levels = search.entrants.space.levels
    made = design(DesignCell(each, {}) for each in levels)
    matters = [
        matter for name in made.factors if (matter := _matter(name, levels, search.known.draws)) is not None
    ]
    return tuple(sorted(matters, key=lambda each: -each.ratio))


def _matter(name: str, levels: tuple[Mapping[str, Scalar], ...], draws: FloatArray) -> FactorMatter | None:
    having = [number for number, own in enumerate(levels) if name in own]
    values = list(dict.fromkeys(levels[number][name] for number in having))
    best: FactorMatter | None = None
    for first, second in combinations(values, 2):
        contrast = _contrast(name, (first, second), levels, draws)
        if contrast is None:
            continue
        if contrast.mean() < 0:
            first, second, contrast = second, first, -contrast  # noqa: PLW2901 -- the better one first
        ratio = float(np.exp(np.median(contrast)))
        low, high = (float(each) for each in np.exp(np.percentile(contrast, _TAILS)))
        if best is None or ratio > best.ratio:
            best = FactorMatter(name, first, second, ratio, low, high)
    return best


def _contrast(
    name: str, sides: tuple[Scalar, Scalar], levels: tuple[Mapping[str, Scalar], ...], draws: FloatArray
) -> FloatArray | None:
    """Of each draw the mean difference of matched cells; None where none match."""
    members = [
        [at for at, own in enumerate(levels) if own.get(name) == side and name in own] for side in sides
    ]
    shared = set.intersection(*(set(levels[at]) for side in members for at in side)) - {name}
    # What one side alone has, or has one level of, is no difference between the two within it.
    groups: list[defaultdict[tuple[str, ...], list[int]]] = [defaultdict(list), defaultdict(list)]
    for group, side in zip(groups, members, strict=True):
        for at in side:
            group[tuple(repr(levels[at][each]) for each in sorted(shared))].append(at)
    both = [key for key in groups[0] if key in groups[1]]
    if not both:
        return None
    means = [draws[:, groups[0][key]].mean(axis=1) - draws[:, groups[1][key]].mean(axis=1) for key in both]
    return np.asarray(np.mean(means, axis=0))


def time_words(search: Searched) -> str:
    """`1 h 20 min of 4 h`; of all nodes together where there are several."""
    nodes = search.record.at_once
    each = f" on {nodes} nodes" if nodes > 1 else ""
    return f"{format_duration(search.spent_s)} of {format_duration(search.budget_s)}{each}"


def progress_words(search: Searched) -> str:
    """Where it is, in one line."""
    end, of = search.end, run_words(search)
    doubted = (
        f"{len(search.doubted)} of {format_count(len(search.runs), 'run')} not believed; "
        if search.doubted
        else ""
    )
    if end is not None:
        return f"search: {end.ending}{of}{_named_in_short(search, end)}; {doubted}{time_words(search)}"
    best = search.lead
    if best is None:
        return f"search: no figure yet{of}; {doubted}{time_words(search)}"
    chance = ""
    if search.cells[best.leader].has_chance:
        chance = f", within {percent(search.question.margin)} of the best with a chance of {chance_words(best.chance)}"
    return f"search: {name(search, best.leader)} leads{of}{chance}; {doubted}{time_words(search)}"


def _named_in_short(search: Searched, end: SearchEnd) -> str:
    """`: xfs, 1,269 tps`; of several the first, and how many more."""
    if not end.cells:
        return ""
    summary = search.cells[end.cells[0]].figure
    value = "" if summary is None else f", {search.with_head(figure(summary).mean)}"
    more = f", and {len(end.cells) - 1} more" if len(end.cells) > 1 else ""
    return f": {name(search, end.cells[0])}{value}{more}"


def run_words(search: Searched) -> str:
    """` in read-write`, where several runs are searched for."""
    return f" in {search.run[1]}" if len(search.record.runs) > 1 else ""


def progress_lines(search: Searched) -> tuple[str, ...]:
    """Where it is, each line behind its name."""
    proofs = max((block.proof for block in search.record.blocks), default=0)
    blocks = len(search.record.blocks)
    under_way = f", {format_count(search.pending, 'visit')} of them left" if search.pending else ""
    left_s = max(search.budget_s - search.spent_s, 0.0)
    lines = [
        progress_words(search).replace("search: ", "search       ", 1),
        f"blocks       {blocks}{f', in proof {proofs}' if proofs and search.end is None else ''}{under_way}",
    ]
    if search.end is None:
        lines.append(f"left         {format_duration(left_s)} of its budget at most")
    return tuple(lines)


def progress_document(search: Searched) -> dict[str, Any]:
    """The same for a program."""
    end, best = search.end, search.lead
    return {
        "best": search.record.best,
        "runs": list(search.record.runs),
        "run": search.run[1],
        "budget_s": search.budget_s,
        "spent_s": search.spent_s,
        "blocks": len(search.record.blocks),
        "proof": max((block.proof for block in search.record.blocks), default=0),
        "pending": search.pending,
        "leader": None if best is None else search.id_of(best.leader),
        "chance": None if best is None else best.chance,
        "ending": None if end is None else str(end.ending),
        "cells": [] if end is None else [search.id_of(number) for number in end.cells],
        "margin": search.question.margin,
        "figures": [] if end is None else [_figure_document(search, number) for number in end.cells],
        "best_of_the_others": None
        if end is None or (rival := _best_rival(search, end)) is None
        else _figure_document(search, rival),
    }


def _figure_document(search: Searched, number: int) -> dict[str, Any]:
    """The figure of a cell as its sentence has it; nothing of one without trusted repetitions."""
    cell = search.cells[number]
    summary = cell.figure or Summary(0)
    return {
        "cell": cell.id,
        "label": cell.label.full,
        "metric": search.metric.name,
        "unit": search.metric.unit,
        "value": summary.centre,
        "low": summary.low,
        "high": summary.high,
        "trusted_repetitions": summary.n,
        "of_the_proof": cell.proved is not None,
    }


def name(search: Searched, number: int) -> str:
    """What a cell is called."""
    return search.labels[search.id_of(number)].full


def bounded_words(search: Searched) -> str:
    """The figures in which a named cell may not be worse: `latency_ms_p99 or load_s`."""
    return " or ".join(each.metric for each in search.record.not_worse)


def chance_words(chance: float) -> str:
    """A chance of draws, of which none is certain: `99 %`, `over 99 %`."""
    if chance >= 0.995:
        return "over 99 %"
    return "below 1 %" if chance <= 0.005 else percent(chance)


def end_sentences(search: Searched, end: SearchEnd) -> tuple[str, ...]:
    """How it ended. Never a bare winner: with its figure, of how many repetitions, and the margin."""
    margin = percent(search.question.margin)
    if search.failed_alike:
        return (f"Not known: {'; '.join(search.failed_alike)}.",)
    if not end.cells:
        if search.shared_failure:
            return (f"Not known: every run failed alike: {search.shared_failure.removesuffix('.')}.",)
        nothing = "none of its runs is believed" if search.doubted else "no cell could be measured"
        return (f"Not known: {nothing}.",)
    first = f"{name(search, end.cells[0])}, {_figure_words(search, end.cells[0])}"
    if end.ending is Ending.THIS:
        return (f"This one: {first}.", f"No rival of its proof may be better by more than {margin}.")
    if end.ending is Ending.ONE_OF:
        one_of = f"One of these {len(end.cells)}, which cannot be told apart within {margin}."
        doubtful = () if end.proof is None else end.proof.doubtful
        if not doubtful:
            return (one_of,)
        return (
            one_of,
            f"Of {len(doubtful)} of them the proof leaves open whether they are worse in {bounded_words(search)} than was allowed.",
        )
    if end.proof is not None and end.proof.unsure and end.proof.leader == end.cells[0]:
        worse = " and ".join(search.record.not_worse[at].metric for at in end.proof.unsure)
        return (
            f"Not known: the proof leaves open whether its leader is worse in {worse} than was allowed.",
            f"It is {first}.",
        )
    proof = (
        "its last proof leaves too much open" if end.proof is not None else "there was no time for a proof"
    )
    visits = search.cells[end.cells[0]].believed
    chance = (
        f"It is within {margin} of the best with a chance of {chance_words(end.chance)} by the model."
        if search.cells[end.cells[0]].has_chance
        else f"{format_count(visits, 'visit')} of it cannot give a chance."
        if visits
        else ""
    )
    return (
        f"Not known: the budget ended, and {proof}.",
        *(each for each in (f"The best guess is {first}.", chance) if each),
    )


def _figure_words(search: Searched, number: int) -> str:
    """`with 1,269 tps (1,218 to 1,316) as the mean of 5 trusted repetitions of the proof`; of another cell also why its visits flatter it."""
    cell = search.cells[number]
    if cell.figure is not None:
        of = " of the proof" if cell.proved else ", which flatter it, as it was chosen by them"
        return f"with {_mean_words(search, cell.figure)} as the mean of {format_count(cell.figure.n, 'trusted repetition')}{of}"
    if cell.measured.censored:
        return f"of which {format_count(cell.measured.censored, 'repetition')} stopped at a limit, so that it has no mean"
    value, bounds = predicted_words(cell.predicted)
    visits = "of which no repetition is trusted" if cell.visits else "which was never visited"
    return f"{visits}: the model expects {search.with_head(value)} ({bounds})"


def _mean_words(search: Searched, summary: Summary) -> str:
    """`1,269 tps (1,218 to 1,316)`: the interval, or the range where there is none."""
    words = figure(summary)
    kind = "" if words.is_interval or words.are_values else "range "
    bounds = f" ({kind}{words.between(' to ')})" if words.low else ""
    return f"{search.with_head(words.mean)}{bounds}"


def _with_mean(search: Searched, number: int) -> str:
    """`, with 1,180 tps (1,150 to 1,210), n = 5`; empty of a cell without a figure."""
    summary = search.cells[number].figure
    return "" if summary is None else f", with {_mean_words(search, summary)}, n = {summary.n}"


def _standing(search: Searched, number: int) -> float:
    """The better a cell's mean, the smaller; one without a figure comes last."""
    summary = search.cells[number].figure
    return -search.question.turned(summary.centre) if summary is not None and summary.centre else 0.0


def _best_rival(search: Searched, end: SearchEnd) -> int | None:
    """Of the open cells that the end does not name the one with the best mean, of those of its proof where there was one."""
    others = [
        number
        for number, cell in enumerate(search.cells[: len(search.entrants.cells)])
        if number not in end.cells and cell.closed is None and cell.figure is not None
        if end.proof is None or cell.proved
    ]
    return min(others, key=lambda number: _standing(search, number), default=None)


def refuse_before_the_first_visit(record: SearchRecord, cells: Mapping[str, Cell], seed: int) -> None:
    """PlanError where the search could not visit a block: too few cells, or too little time for one."""
    numbers = {each.cell: number for number, each in enumerate(record.candidates)}
    budget_s = record.budget_s * record.at_once - (record.cut_seconds if record.cut_dataset else 0.0)
    try:
        space = first_space(record, cells)
        question = question_of(record, seed, numbers, budget_s=max(budget_s, 1e-9))
        following(space, question, (), at_once=record.at_once)
    except ValueError as error:
        raise PlanError(str(error)) from error


def next_step(study: Path) -> SearchStep:
    """What comes next; StudyError of a study that is no search, or whose runs have no such figure."""
    found = searched(overview(study))
    if found is None:
        raise StudyError(f"{study} is no search: it has no search.json")
    _refuse_a_figure_that_no_run_has(found)
    words = progress_words(found)
    try:
        after = found.after
    except ValueError as error:
        raise PlanError(str(error)) from error
    if after is None:
        return SearchStep(words, found.spent_s)
    if found.failed_alike:
        return SearchStep(words, found.spent_s, names_a_cell=False, has_failed=True)
    if isinstance(after, SearchEnd):
        return SearchStep(words, found.spent_s, cuts=_cuts(found), names_a_cell=bool(after.cells))
    blocks = tuple(
        SearchedBlock(
            block.block,
            tuple(found.id_of(number) for number in block.cells),
            block.proof,
            None if block.leader is None else found.id_of(block.leader),
            found.stage,
        )
        for block in after
    )
    return SearchStep(words, found.spent_s, blocks)


def _cuts(search: Searched) -> tuple[str, ...]:
    """The cells that the ends name in which no power was cut yet, the first of them first, as far as the budget goes."""
    record = search.record
    if record.cut_dataset is None or record.extended is not None:
        return ()
    asked = {
        visit.cell_id
        for visit in search.overview.study.schedule.visits
        if visit.dataset_id == record.cut_dataset
    }
    named = [each.id_of(number) for each in stages(search.overview) if each.end for number in each.end.cells]
    due = [cell for cell in dict.fromkeys(named) if cell not in asked]
    left = search.budget_s - search.spent_s
    # For the first one time was kept back.
    room = max(int(left // record.cut_seconds), int(not asked)) if record.cut_seconds else len(due)
    return tuple(due[:room])


def _refuse_a_figure_that_no_run_has(search: Searched) -> None:
    """A whole search would pass before anybody is told."""
    for name in search.record.runs:
        _refuse_a_figure_that_a_run_lacks(search, name)


def _refuse_a_figure_that_a_run_lacks(search: Searched, name: str) -> None:
    run = (search.record.dataset, name)
    runs = [m for cell in search.entrants.cells for m in search.overview.of(cell, run)]
    completed = [m for m in runs if m.outcome is Outcome.COMPLETED]
    metrics = (search.record.best, *(each.metric for each in search.record.not_worse))
    figures = [figure for m in completed for figure in m.by_metric.values()]
    having = sorted({figure.metric for figure in figures if figure.status is not Status.ABSENT})
    for metric in metrics:
        if completed and metric not in having:
            reasons = [each.reason.sentence for each in figures if each.metric == metric and each.reason]
            hint = did_you_mean(metric, having, otherwise=f"they have {', '.join(having) or 'no figures'}")
            raise StudyError(
                f"{format_count(len(completed), 'run')} of {name} so far, and none has {metric}{f' ({reasons[0]})' if reasons else ''}; {hint}",
                "begin another study with --best of these",
            )


class Course:
    """Both, as a start of a search asks for them."""

    def refuse(self, record: SearchRecord, cells: Mapping[str, Cell], seed: int) -> None:
        """PlanError where the search could not even begin."""
        refuse_before_the_first_visit(record, cells, seed)

    def next(self, study: Path) -> SearchStep:
        """The next step of a search that stands on disk."""
        return next_step(study)


def front_lines(every: Sequence[Searched]) -> Iterator[str]:
    """Nothing of a search of one run."""
    if len(every) < 2:
        return
    named = [each.end.cells[0] for each in every if each.end and each.end.cells]
    cells = list(dict.fromkeys(named))
    if len(cells) == 1:
        yield f"  front        one cell: {name(every[0], cells[0])} is named for every run"
        return
    yield f"  front        {len(cells)} cells, each named for a run; which is better depends on what each run is worth to you"
    for first, second in combinations(cells, 2):
        for found in every:
            comparison = beside_each_other(every, found, first, second)
            yield f"  {found.run[1]}: {name(found, second)} beside {name(found, first)}: {figure_words(comparison)}"


def beside_each_other(every: Sequence[Searched], search: Searched, first: int, second: int) -> Comparison:
    """Two cells in one run, by the blocks of all proofs that have both."""
    proofs = {block.number for each in every for block in each.record.blocks if block.proof}
    runs: dict[int, dict[int, Observation]] = {first: {}, second: {}}
    for each in search.tried:
        if each.cell in runs and each.block in proofs and each.value is not None:
            runs[each.cell][each.block] = Observation(each.value)
    return compare(runs[first], runs[second], search.metric, margin=search.question.margin)


DEVICE, DIRECTORY, JOURNAL_DEVICE, POOL = "DEVICE", "DIRECTORY", "JOURNAL_DEVICE", "POOL"

_DEVICES = "/dev/"

_ZPOOL = "zpool"

_JOURNAL = "journal_dev"


@dataclass(frozen=True)
class SetUp:
    """What was made of a cell, for a person to make it again.

    `journal`, `mkfs` and `mount` are command lines as a visit ran them, the first where an external journal is made by itself, without the label and the flags by which bedplate is not
    asked; None where no visit of the cell came so far. `settings` are all that its cells were told, by name, `varied`
    the names of those that differ between cells of the study. `further` says in words what else the cell departs in from
    what is usual: block sizes that are chosen when an engine is built, checksums, the kernel.
    """

    journal: str | None
    mkfs: str | None
    mount: str | None
    settings: Mapping[str, str]
    varied: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        """The command lines that are known."""
        return tuple(line for line in (self.journal, self.mkfs, self.mount) if line is not None)


def set_up(found: Overview, cell: str) -> SetUp:
    """The lines of one cell, from the first of its visits that was mounted."""
    levels = found.study.schedule.cells[cell]
    journal, mkfs, mount = next(
        (
            lines
            for visit in found.study.visits
            if visit.record.key.cell == cell and not visit.record.key.canary
            for lines in [command_lines(visit.record)]
            if lines[2] is not None
        ),
        (None, None, None),
    )
    settings = {name: as_in_a_plan(value) for name, value in levels.cluster.settings.items()}
    every = [found.study.schedule.cells[each].cluster.settings for each in found.cells]
    return SetUp(
        journal=journal,
        mkfs=mkfs,
        mount=mount,
        settings=settings,
        varied=tuple(name for name in settings if len({repr(each.get(name)) for each in every}) > 1),
        further=tuple(_further(levels)),
    )


def command_lines(record: VisitRecord) -> tuple[str | None, str | None, str | None]:
    """What makes the external journal, the mkfs and the mount of a visit; None for each that it does not have."""
    traits = TRAITS.get(record.cell.filesystem.type, FilesystemTraits(record.cell.filesystem.type, (), ()))
    mounts = [
        (number, argv)
        for number, argv in enumerate(record.commands)
        if _mounts(argv, record.cell.filesystem.type)
    ]
    if not mounts or (record.outcome is not Outcome.COMPLETED and not record.runs):
        return None, None, None
    number, mount = mounts[0]
    source, target = mount[-2:]
    made = next(
        (argv for argv in record.commands[:number] if _makes(argv, source)),
        None,
    )
    device = source if made is None or made[0] != _ZPOOL else made[-1]
    names = {source: DEVICE if source.startswith(_DEVICES) else POOL, device: DEVICE, target: DIRECTORY}
    journal = next((argv for argv in record.commands[:number] if _makes_journal(argv, source)), None)
    own, its = (
        None if argv is None else _line(_own_words_left_out(argv, traits), names) for argv in (journal, made)
    )
    return own, its, _line(mount, names)


def _mounts(argv: Sequence[str], type_: str) -> bool:
    """Whether a command mounts the cell's file system: by mount(8), or by the type's own program."""
    if len(argv) < 3:
        return False
    return (argv[0] == "mount" and "tracefs" not in argv) or argv[0] == type_


def _makes(argv: Sequence[str], source: str) -> bool:
    if argv[:2] == (_ZPOOL, "create"):
        return True
    return argv[-1] == source and (argv[0].startswith(("mk", "bcachefs")))


def _makes_journal(argv: Sequence[str], source: str) -> bool:
    """mke2fs and mkfs.jfs make the log as a device of its own first (mke2fs(8), `-O journal_dev`)."""
    return argv[0].startswith("mk") and _JOURNAL in argv and argv[-1] not in ("", source)


def _own_words_left_out(argv: Sequence[str], traits: FilesystemTraits) -> tuple[str, ...]:
    """Without the label, by which bedplate would take the device for its own and erase it, and without what forces mkfs."""
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word in traits.unasked_flags:
            continue
        if word in traits.label_flags:
            value = next(rest, "")
            if not value.startswith(LABEL):
                words += [word, value]
            continue
        words.append(POOL if word == LABEL else word)
    return tuple(words)


def _line(argv: Sequence[str], names: Mapping[str, str]) -> str:
    return " ".join(_word(word, names) for word in argv)


def _word(word: str, names: Mapping[str, str]) -> str:
    if word in names:
        return names[word]
    # `device=/dev/loop1` of an external journal, in one word or behind its flag.
    before, found, _ = word.partition(_DEVICES)
    if found:
        return f"{before}{JOURNAL_DEVICE}"
    return shlex.quote(word)


# The levels of a device, as a line says that it has them.
_OF_DEVICE = {
    "memory_bytes": "memory limited",
    "throttle": "the device throttled",
    "read_ahead_kb": "read-ahead set",
    "scheduler": "the I/O scheduler set",
    "latency": "a device that is emulated with its latency",
}


def _further(cell: Cell) -> list[str]:
    words = []
    usual = replace(cell, build=replace(BuildLevels(), engine=cell.build.engine), cluster=ClusterLevels())
    if cell.build.is_built and cell.database_block_bytes != usual.database_block_bytes:
        level = engine_model(cell.build.engine).block_level or ""
        own, its = (level_text(level, each.database_block_bytes or 0) for each in (cell, usual))
        words.append(f"{short_name(level)} {own} (a build of its own: packages have {its})")
    if cell.cluster.data_checksums is not None:
        words.append(f"data checksums {'on' if cell.cluster.data_checksums else 'off'}")
    if cell.cluster.configuration is not None:
        words.append("the plan's own configuration file")
    if cell.kernel.release is not None:
        words.append(f"kernel {cell.kernel.release}")
    usual_device = type(cell.device)()
    set_by_plan = [
        level
        for name, level in _OF_DEVICE.items()
        if getattr(cell.device, name) != getattr(usual_device, name)
    ]
    if set_by_plan:
        words.append(f"{', '.join(set_by_plan)} as in the plan")
    return words


def settings_words(settings: Mapping[str, str]) -> str:
    """`a = 1, b = 'x y'`, as lines of a configuration file behind each other."""
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


# A factor is said to matter from here on; the rest is counted.
_MATTERS = 1.02

_SHOWN_MATTERS = 5

_SHOWN_REASONS = 4

_HOUR_S = 3600.0


def answer_lines(search: Searched) -> tuple[str, ...]:
    """All of it; where the search goes on still, where it is."""
    end = search.end
    if end is None or not (search.is_at_the_last_run or not end.cells):
        return (progress_words(search),)
    every = stages(search.overview)
    return (
        *(line for each in every for line in _stage_lines(each)),
        *front_lines(every),
        *_left_out_lines(search),
        *(f"  accepted     {words}" for words in filter(None, (accepted_words(search),))),
        *(f"  doubted      {words}" for each in every for words in doubted_words(each)),
        f"  time         {time_words(search)}, {format_count(len(search.tried), 'visit')} of {len({each.cell for each in search.tried})} of {len(search.cells)} cells",
        *(f"  more time    {line}" for line in more_time(search, end)),
    )


def answer_document(search: Searched) -> dict[str, Any]:
    """The same for a program: where it is, the cells that it names, and the lines."""
    return {
        "title": search.overview.study.facts.title,
        "search": progress_document(search),
        "answer": list(answer_lines(search)),
    }


def _stage_lines(search: Searched) -> Iterator[str]:
    """What came of one run."""
    end = search.end
    if end is None:
        return
    if len(search.record.runs) > 1:
        yield f"{search.run[1]}:"
    yield from end_sentences(search, end)
    for number in end.cells:
        yield from _cell_lines(search, end, number)
    yield from _as_good_lines(search, end)
    rival = _best_rival(search, end)
    if rival is not None and end.proof is None:
        yield f"  beside       {name(search, rival)}{_with_mean(search, rival)}, the best of the others that were visited"
    yield from _proof_lines(search, end)
    yield from _but_lines(search, end)
    yield from _matter_lines(search)


def _cell_lines(search: Searched, end: SearchEnd, number: int) -> Iterator[str]:
    cell = search.id_of(number)
    # One alone has its name and figure in the sentence above.
    if len(end.cells) > 1:
        yield f"  {name(search, number)}, {_figure_words(search, number)}"
    if end.proof is not None and number in end.proof.doubtful:
        yield f"    its proof leaves open whether it is worse in {bounded_words(search)} than was allowed"
    facts = search.overview.cells.get(cell)
    if facts is not None:
        yield f"    after a power cut: {durability_told(facts)}{_cut_words(search, cell)}"
        made = set_up(search.overview, cell)
        for line in made.commands:
            yield f"    {line}"
        if made.settings:
            yield f"    {settings_words(made.settings)}"
        if made.further:
            yield f"    {', '.join(made.further)}"


def _as_good_lines(search: Searched, end: SearchEnd) -> Iterator[str]:
    """How many more cells would do as well: a named one has no rival that is better, but may have many that are as good."""
    named = {search.id_of(number) for number in end.cells}
    others = [
        each for each in search.cells if each.near >= CHANCE and each.id not in named and each.closed is None
    ]
    if others:
        first = max(others, key=lambda each: each.near).label.full
        count = f"{len(others)} more cells are" if len(others) > 1 else "1 more cell is"
        yield (
            f"  as good      {count} within {percent(search.question.margin)} of the best, each with a chance of {percent(CHANCE)} at least by "
            f"the model; the likeliest: {first}"
        )


def _cut_words(search: Searched, cell: str) -> str:
    if search.record.durable != MEASURED:
        return ""
    facts = search.overview.cells.get(cell)
    if facts is not None and facts.durability is not None and facts.durability.basis == "measured":
        return ""
    return "; its power was not cut to an end that measures"


def _proof_lines(search: Searched, end: SearchEnd) -> Iterator[str]:
    proof = end.proof
    for refuted in end.refuted:
        yield f"  refuted      a proof refuted {name(search, refuted)}, which the search had named"
    if proof is None:
        return
    of_another = proof.leader not in end.cells[:1]
    if of_another:
        yield f"  proof        of {name(search, proof.leader)}, which led when the last proof began"
    for number, comparison in sorted(proof.rivals.items(), key=lambda pair: _standing(search, pair[0])):
        if proof.gain is not None and number == search.question.baseline:
            continue
        yield f"  proof        {name(search, number)} beside it{_with_mean(search, number)}: {figure_words(comparison)}"
    for asked, comparison in zip(search.record.not_worse, proof.kept, strict=False):
        yield (
            f"  not worse    {'its ' * of_another}{asked.metric} beside the plan's first cell: {figure_words(comparison)}; "
            f"{asked_percent(asked.share)} worse was allowed"
        )
    if proof.gain is not None and search.question.baseline is not None:
        yield (
            f"  gain         {'of that cell ' * of_another}over the plan's first cell, {name(search, search.question.baseline)}{_with_mean(search, search.question.baseline)}: {figure_words(proof.gain)}, "
            f"{format_count(proof.gain.n, 'repetition')} that took no part in the choice"
        )
    elif search.question.baseline is None:
        yield "  gain         not known: the plan's first cell is left out, so nothing is beside it"
    elif search.question.baseline == proof.leader:
        yield "  gain         none: it is the plan's first cell"
    if end.left_out is not None:
        yield (
            f"  outside      a cell outside of the proof is better by more than {percent(search.question.margin)} with a chance of "
            f"{chance_words(end.left_out)}, by the model"
        )


def _but_lines(search: Searched, end: SearchEnd) -> Iterator[str]:
    """What the answer leaves aside: figures in which the first cell is shown worse, cells that look better, and a machine that changed."""
    if not end.cells:
        return
    for head, comparison, other in _behind(search, end):
        yield f"  but          its {head} is {as_high_words(comparison)} {name(search, other)}"
    if (first := search.cells[end.cells[0]].figure) is not None and first.centre:
        least = search.question.turned(first.centre)
        better = [
            (search.question.turned(cell.measured.centre), cell)
            for number, cell in enumerate(search.cells)
            if cell.proved is None
            and cell.measured.centre
            and number not in (*end.cells, _best_rival(search, end))
            if search.question.turned(cell.measured.centre) > least
        ]
        for _, cell in sorted(better, key=lambda pair: -pair[0])[:_SHOWN_REASONS]:
            yield f"  but          {cell.label.full} looks better with {_seen_words(search, cell)}"
    yield from (f"  but          {words}" for words in search.overview.health.canary_changes)


def _seen_words(search: Searched, cell: SearchedCell) -> str:
    """`1,400 tps in 1 repetition, and the model gives it a chance of 2 % to be the best`, or what else speaks against it."""
    summary = cell.measured
    why = (
        cell.closed.sentence
        if cell.closed is not None
        else "it is not believed"
        if summary.basis != TRUSTED
        else f"the model gives it a chance of {chance_words(cell.best)} to be the best"
    )
    return f"{search.with_head(figure(summary).mean)} in {format_count(summary.n, 'repetition')}; {why}"


def _behind(search: Searched, end: SearchEnd) -> Iterator[tuple[str, Comparison, int]]:
    """By the runs of the proof: in which other figures its leader is shown worse than the cells that the answer names."""
    proof, rival, baseline = end.proof, _best_rival(search, end), search.question.baseline
    if proof is None or proof.leader != end.cells[0]:
        return
    blocks = {each.block for each in search.tried if each.proof and each.proof == search.proofs}
    others = dict.fromkeys(
        number
        for number in (*end.cells[1:], rival, baseline)
        if number is not None and number != proof.leader and number in proof.rivals
    )
    # What was asked of a bound has a line of its own.
    bounded = {search.metric.name, *(each.metric for each in search.record.not_worse)}
    asked = [
        (objective, other)
        for objective in search.objectives
        if objective.metric.name not in bounded
        for other in others
    ]
    runs = {
        number: [m for m in search.counted.of(search.id_of(number), search.run) if m.repetition - 1 in blocks]
        for number in (proof.leader, *others)
    }
    comparisons = [
        compare(
            {m.repetition: objective.observation(m) for m in runs[other]},
            {m.repetition: objective.observation(m) for m in runs[proof.leader]},
            objective.metric,
        )
        for objective, other in asked
    ]
    judged = judged_together(comparisons, [objective.metric.name for objective, _ in asked])
    for (objective, other), comparison in zip(asked, judged, strict=True):
        metric = objective.metric
        if comparison.verdict is direction(metric, larger=metric.better is Better.LOWER):
            yield objective.head, comparison, other


def _matter_lines(search: Searched) -> Iterator[str]:
    matters = factors_that_matter(search)
    strong = [each for each in matters if each.low > 1 and each.ratio >= _MATTERS]
    for each in strong[:_SHOWN_MATTERS]:
        yield f"  mattered     {matter_words(each)}"
    rest = [short_name(each.factor) for each in matters if each not in strong[:_SHOWN_MATTERS]]
    if rest:
        yield f"  less so      {', '.join(dict.fromkeys(rest))}"


def matter_words(each: FactorMatter) -> str:
    """`barrier: no is 1.9 times as good as yes (1.7 to 2.1), by the model`."""
    better, worse = (level_text(each.factor, level) for level in (each.better, each.worse))
    return (
        f"{short_name(each.factor)}: {better} is {each.ratio:.2f} times as good as {worse} "
        f"({each.low:.2f} to {each.high:.2f}), by the model"
    )


def _left_out_lines(search: Searched) -> Iterator[str]:
    reasons = Counter(each.closed.sentence for each in search.cells if each.closed is not None)
    for sentence, count in reasons.most_common(_SHOWN_REASONS):
        yield f"  left out     {count} cell{'s' * (count > 1)}: {sentence}"
    others = reasons.most_common()[_SHOWN_REASONS:]
    if others:
        yield f"  left out     {sum(count for _, count in others)} more, for {format_count(len(others), 'other reason')}"


def more_time(search: Searched, end: SearchEnd) -> tuple[str, ...]:
    """What another hour would buy, and the command that buys it."""
    if search.failed_alike or (search.shared_failure and not end.cells):
        return ("nothing, until that is mended; then start a new search with another --study",)
    seconds = [
        search.entrants.space.seconds[number]
        for number in range(len(search.entrants.cells))
        if search.open[number]
    ]
    study = search.overview.study.directory
    if not seconds:
        return ("nothing: no cell is left to be visited",)
    if not end.cells:
        return (
            "nothing, until what speaks against the runs is mended; then start a new search with another --study",
        )
    visits = max(int(_HOUR_S * search.record.at_once // (sum(seconds) / len(seconds))), 0)
    hour = f"another hour is about {format_count(visits, 'visit')}"
    repetitions = search.overview.study.schedule.repetitions
    whole = repetitions * sum(search.entrants.space.seconds) / search.record.at_once
    factorial = (
        f"all cells in {format_count(repetitions, 'repetition')}, about {format_duration(whole)} less what was visited: "
        f"`bedplate run {study} --repetitions {repetitions}`"
    )
    if search.record.extended is not None:
        return (hour,)
    if end.ending is Ending.NOT_KNOWN:
        least = _proof_seconds(search, end)
        minutes = math.ceil((search.spent_s + 2 * least) / search.record.at_once / 60)
        minutes = max(minutes, math.ceil(search.record.budget_s / 60) + 1)
        command = f"`bedplate search PLAN --study {study} --budget {minutes}min`"
        return (f"{hour}; a proof of the best guess takes {format_duration(least)}: {command}",)
    if end.ending is Ending.ONE_OF:
        each = sum(search.entrants.space.seconds[number] for number in end.cells)
        more = int(_HOUR_S * search.record.at_once // each)
        times = format_count(more, "more repetition")
        return (
            f"{hour}, {times} of these {len(end.cells)}; choose among them by another figure, or",
            factorial,
        )
    return (f"{hour}, and would change little: no rival is left", factorial)


def _proof_seconds(search: Searched, end: SearchEnd) -> float:
    """The least that a proof takes: the best guess, its nearest rival and the baseline, three times."""
    rivals = [] if search.lead is None else list(search.lead.rivals[:1])
    beside = [] if search.question.baseline is None else [search.question.baseline]
    cells = dict.fromkeys((end.cells[0], *rivals, *beside))
    return REPETITIONS_MIN * sum(search.entrants.space.seconds[number] for number in cells)
