"""What draws of a model say of the best cell, and which visits would say more.

The leader is the cell that is most often within the margin of the best. A rival is a cell that may be better by more than the
margin; rivals are named until what is left out has such a chance in 2 of 100 draws.

A block begins where something is known: the leader, then cells drawn by how often they are the best beside it, per expected
second (top-two Thompson sampling: Russo 2020, Oper. Res. 68). The first two blocks take the cells that a model
without figures knows least about, so that each level is met early.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bedplate.statistics.search.posterior import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.statistics.estimation import BoolArray, FloatArray
    from bedplate.statistics.search.posterior import Posterior
    from bedplate.statistics.search.space import SearchSpace

# The share of draws in which a cell that is not named a rival may beat the leader by more than the margin.
LEFT_OUT = 0.02
# Visits of a block, in a search of few cells and of many.
BLOCK_FEW, BLOCK_MANY = 6, 8
MANY_CELLS = 100
# The first blocks, of which the leader is in none.
BLOCKS_SPREAD = 2
# Variances of the model that spreads them: of levels, pairs and cells beside the noise's.
SPREAD = (256.0, 4.0, 1.0)


@dataclass(frozen=True)
class Lead:
    """The `leader` and how likely it is within the margin of the best (`chance`).

    `best` is each cell's chance to be the best, `ahead` that to be better than the leader by more than the margin.
    `rivals` are ordered by what they add to the chance that some cell is.
    """

    leader: int
    chance: float
    best: FloatArray
    ahead: FloatArray
    rivals: tuple[int, ...]


def lead(known: Posterior, allowed: BoolArray, margin: float) -> Lead:
    """Who leads among the cells that are allowed; ValueError where none is."""
    if not allowed.any():
        raise ValueError("no cell can be visited; there is nothing to choose from")
    draws = known.among(allowed)
    room = math.log1p(margin)
    near = near_best(known, allowed, margin)
    # Of cells that are as often near the best the one with the higher mean; in the plan's order where all is equal.
    leader = int(np.lexsort((-known.mean, -np.where(allowed, near, -1.0)))[0])
    ahead = draws > draws[:, [leader]] + room
    return Lead(
        leader=leader,
        chance=float(near[leader]),
        best=_wins(draws),
        ahead=ahead.mean(axis=0),
        rivals=_rivals(ahead),
    )


def near_best(known: Posterior, allowed: BoolArray, margin: float) -> FloatArray:
    """How likely each cell is within the margin of the best that is allowed."""
    draws = known.among(allowed)
    largest = draws.max(axis=1, keepdims=True)
    # Where in a draw no cell may win, none is near.
    near = (draws >= largest - math.log1p(margin)) & np.isfinite(draws)
    return np.asarray(near.mean(axis=0))


def left_out_chance(
    known: Posterior, allowed: BoolArray, margin: float, leader: int, named: Iterable[int]
) -> float:
    """How likely a cell that is not named is better than the leader by more than the margin."""
    others = allowed.copy()
    others[[leader, *named]] = False
    draws = known.among(others)
    beyond = draws[:, others] > known.draws[:, [leader]] + math.log1p(margin)
    return float(beyond.any(axis=1).mean())


def spread_block(
    space: SearchSpace, visited: Iterable[int], allowed: BoolArray, random: np.random.Generator
) -> tuple[int, ...]:
    """The cells about which a model without figures knows least after those that were visited."""
    main, pair, cell = SPREAD
    covariance = main * space.mains @ space.mains.T + pair * space.pairs @ space.pairs.T
    covariance += cell * np.eye(len(allowed)) + LEVEL
    for each in visited:
        covariance = _known_more(covariance, each)
    chosen: list[int] = []
    for _ in range(min(block_size(space), int(allowed.sum()))):
        free = allowed.copy()
        free[chosen] = False
        per_second = np.where(free, np.diagonal(covariance) / np.array(space.seconds), -np.inf)
        # Which of several alike is drawn.
        alike = np.flatnonzero(per_second >= per_second.max() * (1 - 1e-6))
        chosen.append(int(random.choice(alike)))
        covariance = _known_more(covariance, chosen[-1])
    return tuple(chosen)


def leading_block(
    space: SearchSpace, known: Posterior, found: Lead, allowed: BoolArray, random: np.random.Generator
) -> tuple[int, ...]:
    """The leader, and cells drawn by how often they are the best beside it, per expected second."""
    size = min(block_size(space), int(allowed.sum()))
    others = allowed.copy()
    others[found.leader] = False
    if not others.any():
        return (found.leader,)
    draws = known.among(others)
    weights = _wins(draws) / np.array(space.seconds)
    likely = np.flatnonzero(weights > 0)
    count = min(size - 1, len(likely))
    drawn = (
        random.choice(likely, count, replace=False, p=weights[likely] / weights[likely].sum())
        if count
        else likely
    )
    # Where few cells are ever the best, those that might be come next.
    reach = np.where(others, known.mean + 2 * known.draws.std(axis=0), -np.inf)
    reach[drawn] = -np.inf
    more = np.argsort(-reach, kind="stable")[: size - 1 - count]
    return (found.leader, *(int(each) for each in (*drawn, *more)))


def _wins(draws: FloatArray) -> FloatArray:
    """In what share of the draws each cell is the best; in some none may be."""
    best = draws.argmax(axis=1)[np.isfinite(draws.max(axis=1))]
    return np.asarray(np.bincount(best, minlength=draws.shape[1]) / len(draws))


def block_size(space: SearchSpace) -> int:
    """How many visits a block has."""
    return BLOCK_MANY if len(space.levels) > MANY_CELLS else BLOCK_FEW


def _rivals(ahead: BoolArray) -> tuple[int, ...]:
    """Cells, largest addition first, until the draws in which any other is ahead are few."""
    left = np.ones(len(ahead), dtype=np.bool_)
    rivals: list[int] = []
    while (ahead[left].any(axis=1).sum()) > LEFT_OUT * len(ahead):
        rivals.append(int(np.argmax(ahead[left].sum(axis=0))))
        left &= ~ahead[:, rivals[-1]]
    return tuple(rivals)


def _known_more(covariance: FloatArray, cell: int) -> FloatArray:
    """What is unknown after one more visit."""
    column = covariance[:, cell]
    return np.asarray(covariance - np.outer(column, column) / (column[cell] + 1.0))
