"""A search from its records alone: the next blocks, or its end. The same records give the same answer, in any order.

Search: blocks of visits until the leader is within the margin of the best with a chance of 95 %, or half of the budget is
spent. Proof: the leader, its rivals and the plan's baseline in complete blocks of their own (`proof`). How many
is set before the first of them, so nobody looks until it suits. Of a leader that a proof refutes the search goes on, with half of
what is left.

An end says no more than its proof: *this one*, where no rival may be better by more than the margin; *one of these*; or *not
known*, where the budget ended first or the model gives cells that took no part in the proof too large a chance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.search.choice import (
    BLOCKS_SPREAD,
    Lead,
    lead,
    leading_block,
    left_out_chance,
    near_best,
    spread_block,
)
from bedplate.statistics.search.posterior import Posterior, posterior
from bedplate.statistics.search.proof import SearchProof, SearchQuestion, judged_proof
from bedplate.statistics.search.space import SearchSpace, Tried, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.statistics.estimation import BoolArray

CHANCE = 0.95
RIVALS_MAX = 8
# A proof without a rival would prove nothing.
RIVALS_MIN = 1
PROOF_REPETITIONS = 5
# A run of a proof that cannot be believed is repeated within its block, at most to so many.
ATTEMPTS_MAX = 3


@dataclass(frozen=True)
class NextBlock:
    """Cells to visit in this order; `proof` is 0 in the search. A block that is there already gets further attempts.

    `leader` is the cell that a proof is about; None in the search.
    """

    block: int
    cells: tuple[int, ...]
    proof: int = 0
    leader: int | None = None


class Ending(StrEnum):
    """How a search ends."""

    THIS = "this one"
    ONE_OF = "one of these"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class SearchEnd:
    """The answer. `cells` are those it names, the leader or best guess first; none where no cell could be measured or no run was believed.

    `chance` is the model's, that the first is within the margin of the best. `left_out` is its chance that a cell outside of the
    last proof is better than that proof's leader by more than the margin; None without a proof or a cell. `proof` is the last one, None
    where the budget bought none. `refuted` are the leaders that proofs refuted.
    """

    ending: Ending
    cells: tuple[int, ...]
    chance: float
    left_out: float | None
    proof: SearchProof | None = None
    refuted: tuple[int, ...] = ()


def following(
    space: SearchSpace, question: SearchQuestion, tried: Iterable[Tried], *, at_once: int = 1
) -> tuple[NextBlock, ...] | SearchEnd:
    """What comes after these visits, whose blocks are whole: the next blocks, or the end.

    `at_once` blocks of the search are drawn together, where several nodes run one each. ValueError where the budget is below
    one block.
    """
    return _Course(space, question, in_order(tried), at_once).following()


def weighed(space: SearchSpace, question: SearchQuestion, tried: Iterable[Tried]) -> Posterior:
    """The model on what was believed of these visits, so turned that more is better, with what fits in the question's other figures."""
    tried = list(tried)
    known = posterior(space, question.turned_all(tried), seed=question.seed)
    if question.baseline is None or not question.not_worse:
        return known
    fit = np.ones(known.draws.shape, dtype=np.bool_)
    for number, (_, share) in enumerate(question.not_worse):
        other = posterior(space, question.of_another(number, tried), seed=question.seed + number + 1).draws
        fit &= other >= other[:, [question.baseline]] - np.log1p(share)
    return replace(known, fit=fit)


def outside_of(
    proof: SearchProof | None, known: Posterior, allowed: BoolArray, margin: float
) -> float | None:
    """The model's chance that a cell outside of a proof is better than its leader by more than the margin; None without one."""
    if proof is None:
        return None
    return left_out_chance(known, allowed, margin, proof.leader, tuple(proof.rivals))


class _Course:
    """What the records say so far."""

    def __init__(
        self, space: SearchSpace, question: SearchQuestion, tried: Sequence[Tried], at_once: int
    ) -> None:
        self.space, self.question, self.tried, self.at_once = space, question, tried, at_once
        self.allowed = space.open(tried)
        self.number = 1 + max((each.block for each in tried), default=-1)
        self.spent = sum(each.seconds for each in tried)
        self.random = np.random.default_rng([question.seed, self.number, len(tried)])
        self.leaders = {each.proof: each.cell for each in tried if each.leads}
        self.proved = [each for each in tried if each.proof and each.proof == len(self.leaders)]

    def following(self) -> tuple[NextBlock, ...] | SearchEnd:
        if not self.allowed.any():
            return SearchEnd(Ending.NOT_KNOWN, (), 0.0, None, self.last, self.refuted)
        if self.proved and self.proved[-1].block == self.number - 1 and (again := self._again()):
            return again
        return self._proved_end() or self._search()

    @cached_property
    def known(self) -> Posterior:
        """The model on every visit that was believed."""
        return weighed(self.space, self.question, self.tried)

    @cached_property
    def found(self) -> Lead:
        """Who leads by the model."""
        return lead(self.known, self.allowed, self.question.margin)

    @cached_property
    def proofs(self) -> tuple[SearchProof, ...]:
        """Every proof so far."""
        return tuple(
            judged_proof(self.question, leader, [each for each in self.tried if each.proof == number])
            for number, leader in sorted(self.leaders.items())
        )

    @property
    def last(self) -> SearchProof | None:
        """The last proof."""
        return self.proofs[-1] if self.proofs else None

    @property
    def refuted(self) -> tuple[int, ...]:
        """Leaders whom a proof refuted."""
        return tuple(proof.leader for proof in self.proofs if proof.is_refuted)

    def _cost(self, cells: Iterable[int]) -> float:
        return sum(self.space.seconds[cell] for cell in cells)

    def _search(self) -> tuple[NextBlock, ...] | SearchEnd:
        cells = self._block()
        if not self.tried and self._cost(cells) > self.question.budget_s:
            raise ValueError(
                f"a budget of {self.question.budget_s:g} s is less than one block of {len(cells)} visits, "
                f"{self._cost(cells):g} s; allow more time"
            )
        if self.number >= BLOCKS_SPREAD and self._is_enough():
            return self._proof()
        if self.tried and self.spent + self._cost(cells) > self._limit():
            return self._proof()
        return self._together(cells)

    def _together(self, cells: tuple[int, ...]) -> tuple[NextBlock, ...]:
        """This block, and those that other nodes run meanwhile, as far as the budget of the search goes."""
        blocks, cost = [cells], self._cost(cells)
        while len(blocks) < self.at_once:
            more = self._block(blocks)
            cost += self._cost(more)
            if self.spent + cost > self._limit():
                break
            blocks.append(more)
        return tuple(
            NextBlock(self.number + at, tuple(int(each) for each in self.random.permutation(block)))
            for at, block in enumerate(blocks)
        )

    def _block(self, beside: Sequence[tuple[int, ...]] = ()) -> tuple[int, ...]:
        if self.number < BLOCKS_SPREAD:
            visited = [each.cell for each in self.tried] + [cell for block in beside for cell in block]
            return spread_block(self.space, visited, self.allowed, self.random)
        return leading_block(self.space, self.known, self.found, self.allowed, self.random)

    def _is_enough(self) -> bool:
        """Whether the model is sure enough of a leader that was visited."""
        visited = any(each.cell == self.found.leader and each.value is not None for each in self.tried)
        return visited and self.found.chance >= CHANCE and len(self.found.rivals) <= RIVALS_MAX

    def _limit(self) -> float:
        """Seconds at which the search ends: half of the budget, after a proof half of what that left."""
        last = max((each.block for each in self.proved), default=-1)
        before = sum(each.seconds for each in self.tried if each.block <= last)
        return before + (self.question.budget_s - before) / 2

    def _proof(self) -> tuple[NextBlock, ...] | SearchEnd:
        """With as many rivals as three repetitions of all leave money for; the end where that is none, or nothing was believed."""
        if not self._is_anything_believed:
            return self._not_known()
        leader, baseline = self.found.leader, self.question.baseline
        rivals = list(self.found.rivals[:RIVALS_MAX])
        likely = [int(each) for each in np.argsort(-self.found.best, kind="stable") if self.allowed[each]]
        more = [each for each in likely if each not in {leader, *rivals}]
        rivals += more[: max(RIVALS_MIN - len(rivals), 0)]
        named = (*((baseline,) if baseline is not None else ()), *self.question.beside)
        beside = [each for each in named if self.allowed[each]]
        left = self.question.budget_s - self.spent
        while True:
            cells = list(dict.fromkeys((leader, *rivals, *beside)))
            repetitions = min(PROOF_REPETITIONS, int(left // self._cost(cells)))
            if repetitions >= REPETITIONS_MIN:
                break
            if len(rivals) <= RIVALS_MIN:
                return self._not_known()
            rivals.pop()
        return tuple(
            NextBlock(
                self.number + at,
                tuple(int(each) for each in self.random.permutation(cells)),
                len(self.leaders) + 1,
                leader,
            )
            for at in range(repetitions)
        )

    @property
    def _is_anything_believed(self) -> bool:
        return any(each.value is not None for each in self.tried)

    def _not_known(self) -> SearchEnd:
        if not self._is_anything_believed:
            return SearchEnd(Ending.NOT_KNOWN, (), 0.0, None, self.last, self.refuted)
        best = self.found
        left_out = outside_of(self.last, self.known, self.allowed, self.question.margin)
        return SearchEnd(Ending.NOT_KNOWN, (best.leader,), best.chance, left_out, self.last, self.refuted)

    def _again(self) -> tuple[NextBlock, ...]:
        """What a proof lacks, as its runs were not believed."""
        cells = sorted({each.cell for each in self.proved if self.allowed[each.cell]})
        found = []
        for block in sorted({each.block for each in self.proved}):
            runs = [each for each in self.proved if each.block == block]
            there = {each.cell for each in runs if each.value is not None}
            attempts = Counter(each.cell for each in runs)
            due = tuple(cell for cell in cells if cell not in there and attempts[cell] < ATTEMPTS_MAX)
            if due:
                found.append(NextBlock(block, due, len(self.leaders), self.leaders[len(self.leaders)]))
        return tuple(found)

    def _proved_end(self) -> SearchEnd | None:
        """What the last proof bears, where the model gives little chance to cells that took no part in it."""
        proof = self.last
        if proof is None or proof.is_refuted or not self.allowed[proof.leader]:
            return None
        margin = self.question.margin
        left_out = outside_of(proof, self.known, self.allowed, margin)
        if left_out is None or left_out > 1 - CHANCE:
            return None
        still_open = tuple(cell for cell in proof.open if self.allowed[cell])
        known = Ending.ONE_OF if still_open else Ending.THIS
        return SearchEnd(
            Ending.NOT_KNOWN if proof.unsure else known,
            (proof.leader, *still_open),
            float(near_best(self.known, self.allowed, margin)[proof.leader]),
            left_out,
            proof,
            self.refuted,
        )
