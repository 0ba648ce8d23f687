"""The best cell within a budget of time: a model of cells by their factors, the choice of visits, the end and its proof."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, solve_triangular

from bedplate.model.figure import Better, Metric, Scale
from bedplate.model.levels import Scalar
from bedplate.statistics.comparison import MARGIN, Comparison, compare, judged_together
from bedplate.statistics.design import DesignCell, design
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.summary import Observation

if TYPE_CHECKING:
    from bedplate.statistics.estimation import BoolArray, FloatArray


@dataclass(frozen=True)
class SearchQuestion:
    """The figure that is best (compared as a ratio), the budget in seconds, the seed, and the number of the plan's baseline.

    `beside` are cells that take part in every proof. `not_worse` are further figures, each with the share by which the best cell may be worse than the baseline in it. ValueError for a figure that has no better direction or is no ratio, and for a budget or margin that is none.
    """

    metric: Metric
    budget_s: float
    seed: int
    baseline: int | None = None
    margin: float = MARGIN
    not_worse: tuple[tuple[Metric, float], ...] = ()
    beside: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """See the class."""
        for metric in (self.metric, *(each for each, _ in self.not_worse)):
            if metric.scale is not Scale.RATIO or metric.better is Better.NEITHER:
                raise ValueError(
                    f"{metric.name} has no best: name a figure with a better direction that is compared as a ratio"
                )
        if self.not_worse and self.baseline is None:
            raise ValueError(
                "no cell is there that others could be worse than: the plan's first cell is left out"
            )
        if not 0 < self.budget_s < math.inf or not 0 < self.margin < 1:
            raise ValueError(
                f"a budget is above 0 s and a margin between 0 and 1, found {self.budget_s} s and {self.margin}"
            )

    def turned(self, value: float) -> float:
        """The figure so that a larger one is better."""
        return _turned(self.metric, value)

    def turned_all(self, tried: Iterable[Tried]) -> list[Tried]:
        """Visits with their figures so turned, as the model takes them."""
        return [
            each if each.value is None else replace(each, value=self.turned(each.value)) for each in tried
        ]

    def of_another(self, number: int, tried: Iterable[Tried]) -> list[Tried]:
        """Visits with the further figure of this number in place of the first, so turned."""
        metric = self.not_worse[number][0]
        return [
            replace(each, value=None if found is None else _turned(metric, found))
            for each in tried
            for found in [each.others[number] if each.others else None]
        ]


@dataclass(frozen=True)
class SearchProof:
    """What a proof found of its leader: by the rival's number, rival / leader. `gain` is leader / baseline.

    `open` are the rivals that may be better by more than the margin. `is_refuted`: one is shown better, and not the same
    within the margin; or the leader is shown worse in another figure than it may be. `kept` are leader / baseline in those figures, `unsure`
    the numbers of those in which it may be worse than asked. `doubtful` are the open rivals that may be worse than asked in one of them.
    """

    leader: int
    rivals: Mapping[int, Comparison] = field(default_factory=dict)
    open: tuple[int, ...] = ()
    is_refuted: bool = False
    gain: Comparison | None = None
    kept: tuple[Comparison, ...] = ()
    unsure: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()


def judged_proof(question: SearchQuestion, leader: int, proved: Iterable[Tried]) -> SearchProof:
    """Judge the visits of one proof; a block is a repetition. A rival without three of them in common stays open."""
    proved = list(proved)
    runs = _runs(leader, proved)
    rivals = {
        cell: compare(runs[leader], own, question.metric, margin=question.margin)
        for cell, own in sorted(runs.items())
        if cell != leader
    }
    together = dict(
        zip(rivals, judged_together(list(rivals.values()), [question.metric.name] * len(rivals)), strict=True)
    )
    baseline = question.baseline
    has_gain = baseline is not None and baseline != leader and baseline in runs
    kept_by = {cell: _kept(question, cell, proved) for cell in rivals}
    too_bad = {cell for cell, each in kept_by.items() if _is_worse_than_asked(each)}
    kept = _kept(question, leader, proved)
    bounds = {cell: _bounds(question.metric, each) for cell, each in rivals.items()}
    still_open = tuple(
        cell for cell, (_, high) in bounds.items() if high > 1 + question.margin and cell not in too_bad
    )
    return SearchProof(
        leader=leader,
        rivals=rivals,
        open=still_open,
        is_refuted=_is_worse_than_asked(kept)
        or any(
            _bounds(question.metric, each)[0] > 1
            and _bounds(question.metric, each)[1] > 1 + question.margin
            and cell not in too_bad
            for cell, each in together.items()
        ),
        gain=(
            compare(runs[baseline], runs[leader], question.metric, margin=question.margin)
            if has_gain and baseline is not None
            else None
        ),
        kept=tuple(each for each, _ in kept),
        unsure=_unsure(kept),
        doubtful=tuple(cell for cell in still_open if _unsure(kept_by[cell])),
    )


def _runs(leader: int, proved: Iterable[Tried]) -> dict[int, dict[int, Observation]]:
    runs: dict[int, dict[int, Observation]] = {leader: {}}
    for each in proved:
        own = runs.setdefault(each.cell, {})
        if each.value is not None:
            own[each.block] = Observation(each.value)
    return runs


def _kept(question: SearchQuestion, cell: int, proved: list[Tried]) -> list[tuple[Comparison, float]]:
    """Of each further figure the cell / the baseline, and how many times as good it must be; none of the baseline itself."""
    if question.baseline is None or cell == question.baseline:
        return []
    found = []
    for number, (metric, share) in enumerate(question.not_worse):
        # Turned values would be compared the wrong way round: these are the figure's own.
        runs: dict[int, dict[int, Observation]] = {cell: {}, question.baseline: {}}
        for each in proved:
            value = each.others[number] if each.others else None
            if each.cell in runs and value is not None:
                runs[each.cell][each.block] = Observation(value)
        comparison = compare(runs[question.baseline], runs[cell], metric, margin=question.margin)
        found.append((comparison, 1 / (1 + share)))
    return found


def _unsure(kept: list[tuple[Comparison, float]]) -> tuple[int, ...]:
    """The numbers of the further figures that may be worse than asked."""
    return tuple(at for at, (each, least) in enumerate(kept) if _bounds(each.metric, each)[0] < least)


def _is_worse_than_asked(kept: list[tuple[Comparison, float]]) -> bool:
    return any(_bounds(each.metric, each)[1] < least for each, least in kept)


def _turned(metric: Metric, value: float) -> float:
    return value if metric.better is Better.HIGHER else 1 / value


def _bounds(metric: Metric, found: Comparison) -> tuple[float, float]:
    """Of how many times better the one is than the other; from 0 to infinity where there is no interval."""
    if found.low is None or found.high is None:
        return 0.0, math.inf
    low, high = sorted((_turned(metric, found.low), _turned(metric, found.high)))
    return low, high


# A cell that failed as often is not tried again.
FAILURES_MAX = 2

# Nor one of which as many runs could not be believed, and none could.
UNBELIEVED_MAX = 4


@dataclass(frozen=True)
class Tried:
    """One visit of a cell, by the cell's number: `block` counts from 0, `proof` is 0 in the search and k in the k-th proof.

    `value` is the positive figure; None where it failed (`failed`), is suspect or missing. `seconds` is what it took. `leads`:
    the visit is of the leader whom its proof is about. `others` are the figures in which the best cell may not be worse, in the question's order.
    """

    block: int
    cell: int
    value: float | None
    seconds: float
    proof: int = 0
    failed: bool = False
    leads: bool = False
    others: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        """ValueError for a figure without a logarithm, and for a time that is none."""
        for value in (self.value, *self.others):
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"a search compares positive figures, found {value}; leave it out as None")
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"a visit takes 0 seconds or more, found {self.seconds}")


@dataclass(frozen=True)
class SearchSpace:
    """Cells by their levels, in the plan's order, and the seconds that a visit of each is expected to take.

    Cells that are effectively identical are one cell here: of all but one the numbers are `closed`, as are those of cells that may not be
    named. ValueError without two cells, or for a time that is none.
    """

    levels: tuple[Mapping[str, Scalar], ...]
    seconds: tuple[float, ...]
    closed: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """See the class."""
        if len(self.levels) < 2:
            raise ValueError(
                f"a search needs two cells, found {len(self.levels)}; `bedplate run` measures one"
            )
        if len(self.seconds) != len(self.levels) or not all(0 < each < math.inf for each in self.seconds):
            raise ValueError(f"each of {len(self.levels)} cells needs its expected seconds, above 0")

    @cached_property
    def mains(self) -> FloatArray:
        """Which level each cell has, of the shape (cells, levels of all factors): 1 or 0."""
        return np.concatenate([np.zeros((len(self.levels), 0)), *self._factors], axis=1)

    @cached_property
    def pairs(self) -> FloatArray:
        """Which pair of levels each cell has, of the shape (cells, pairs): 1 or 0."""
        products = [
            (first[:, :, None] * second[:, None, :]).reshape(len(self.levels), -1)
            for first, second in combinations(self._factors, 2)
        ]
        joined = np.concatenate([np.zeros((len(self.levels), 0)), *products], axis=1)
        return joined[:, joined.any(axis=0)]

    @cached_property
    def _factors(self) -> list[FloatArray]:
        found = design(DesignCell(levels, {}) for levels in self.levels)
        columns = [found.table.codes[:, found.table.names.index(name)] for name in found.factors]
        return [(codes[:, None] == np.arange(int(np.max(codes)) + 1)).astype(np.float64) for codes in columns]

    def open(self, tried: Iterable[Tried]) -> BoolArray:
        """Which cells may still be visited and win."""
        failures, unbelieved, believed = np.zeros((3, len(self.levels)), dtype=np.intp)
        for each in tried:
            failures[each.cell] += each.failed
            unbelieved[each.cell] += each.value is None
            believed[each.cell] += each.value is not None
        found = (failures < FAILURES_MAX) & ((believed > 0) | (unbelieved < UNBELIEVED_MAX))
        found[list(self.closed)] = False
        return np.asarray(found)


def in_order(tried: Iterable[Tried]) -> list[Tried]:
    """By block and cell, whatever order they came in: the same records give the same sums to the last digit."""
    return sorted(
        tried, key=lambda each: (each.block, each.cell, each.value is None, each.value or 0.0, each.seconds)
    )


def cell_numbers(tried: Iterable[Tried]) -> npt.NDArray[np.intp]:
    """The cells of visits, in their order."""
    return np.array([each.cell for each in tried], dtype=np.intp)


DRAWS = 1000

# Variances as multiples of the noise's: of levels, pairs, cells and blocks.
MAIN = (1.0, 16.0, 256.0, 4096.0)

PAIR = (0.04, 1.0, 16.0, 256.0)

CELL = (0.1, 2.0, 40.0)

BLOCK = (0.1, 30.0)

# The overall level is free.
LEVEL = 1e6

# What is thought of the scatter before any run: 2 %, worth two runs. On bare metal 0.4 to 2.4 % were found within a cell.
NOISE_WEIGHT = 1.0

NOISE_VARIANCE = 0.02**2

# Degrees of freedom of a cell's multiple of the noise, and of a run's. Few, as one cell may scatter ten times as much as another.
CELL_TAILS = 1.5

RUN_TAILS = 4.0

PASSES = 4

# So many visits show how much a cell scatters. One with fewer may scatter as much as the worst of those.
VISITS_OF_SCATTER = 3

# Variances with a smaller share are left out.
SHARE_MIN = 0.01


@dataclass(frozen=True)
class Posterior:
    """What is known of the logarithms of all cells, up to a level in common: `draws` of the shape (draws, cells).

    `scatter` is the standard deviation of a run of each cell, in logarithms. `fit`, of the same shape, says in which draws a cell is not
    worse in other figures than it may be; None where none was asked for.
    """

    draws: FloatArray
    scatter: FloatArray
    fit: BoolArray | None = None

    def among(self, allowed: BoolArray) -> FloatArray:
        """The draws of cells that may win; those of the others below all."""
        may = allowed if self.fit is None else allowed & self.fit
        return np.asarray(np.where(may, self.draws, -np.inf))

    @property
    def mean(self) -> FloatArray:
        """The expected logarithm of each cell beside the mean of all: shrunk towards what cells like it have."""
        found = self.draws.mean(axis=0)
        return np.asarray(found - found.mean())


def posterior(space: SearchSpace, tried: Iterable[Tried], *, seed: int, draws: int = DRAWS) -> Posterior:
    """Weigh what was believed among the visits. Their order does not matter; equal visits and seeds give equal draws."""
    known = [each for each in in_order(tried) if each.value is not None]
    random = np.random.default_rng([seed, len(known), 18])
    return _Model(space, known).posterior(random, draws)


class _Model:
    def __init__(self, space: SearchSpace, known: list[Tried]) -> None:
        self.space = space
        self.cells = cell_numbers(known)
        logs = np.log([each.value for each in known if each.value is not None])
        self.logs = logs - logs.mean() if len(logs) else logs
        numbers = np.array([each.block for each in known])
        blocks = np.unique(numbers)
        self.blocks = (numbers[:, None] == blocks).astype(np.float64).reshape(len(known), len(blocks))
        self.own = (self.cells[:, None] == np.arange(len(space.levels))).astype(np.float64)
        mains, pairs = space.mains[self.cells], space.pairs[self.cells]
        # What any two visits have in common.
        shared = (mains @ mains.T, pairs @ pairs.T, self.own @ self.own.T, self.blocks @ self.blocks.T)
        self.shared = np.array([each.ravel() for each in shared])
        self.grid = np.array(list(product(MAIN, PAIR, CELL, BLOCK)))
        # Pairs of levels are seldom stronger than levels.
        self.prior = np.where(self.grid[:, 1] > self.grid[:, 0], np.log(0.3), 0.0)

    def posterior(self, random: np.random.Generator, draws: int) -> Posterior:
        noise, own = np.ones(len(self.logs)), np.ones(len(self.space.levels))
        grid, prior = self.grid, self.prior
        shares = np.exp(prior) / np.exp(prior).sum()
        scale = NOISE_VARIANCE
        for _ in range(PASSES if len(self.logs) else 0):
            likelihood = np.array([self._likelihood(point, noise) for point in grid]) + prior
            weights = np.exp(likelihood - likelihood.max())
            shares = weights / weights.sum()
            scale, squares = self._noise(grid[int(np.argmax(shares))], noise)
            near = shares > SHARE_MIN
            grid, prior, shares = grid[near], prior[near], shares[near] / shares[near].sum()
            noise, own = self._tails(squares, own)
        seen = self.own.sum(axis=0) >= VISITS_OF_SCATTER
        if seen.any():
            widest = np.where(seen, own, np.maximum(own, own[seen].max()))
            noise, own = noise * (widest / own)[self.cells], widest
        counts = _allotted(shares, draws)
        found = [
            self._draws(point, noise, count, random)
            for point, count in zip(grid, counts, strict=True)
            if count
        ]
        return Posterior(np.concatenate(found), np.sqrt(scale * own))

    def _solved(self, point: FloatArray, noise: FloatArray) -> tuple[FloatArray, float]:
        """The Cholesky factor of the figures' covariance A, and y' A^-1 y."""
        size = len(noise)
        covariance = (point @ self.shared + LEVEL).reshape(size, size)
        covariance[np.diag_indices(size)] += noise
        lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        white = solve_triangular(lower, self.logs, lower=True, check_finite=False)
        return lower, float(white @ white)

    def _likelihood(self, point: FloatArray, noise: FloatArray) -> float:
        """Its logarithm, up to a constant."""
        lower, quadratic = self._solved(point, noise)
        rate = NOISE_WEIGHT * NOISE_VARIANCE + quadratic / 2
        return float(-np.log(np.diagonal(lower)).sum() - (NOISE_WEIGHT + len(noise) / 2) * np.log(rate))

    def _noise(self, point: FloatArray, noise: FloatArray) -> tuple[float, FloatArray]:
        """The variance of the noise, and the expected square of each run's as a multiple of it."""
        lower, quadratic = self._solved(point, noise)
        scale = (NOISE_WEIGHT * NOISE_VARIANCE + quadratic / 2) / (NOISE_WEIGHT + len(noise) / 2)
        inverse = cho_solve((lower, True), np.eye(len(noise)), check_finite=False)
        residuals = noise * (inverse @ self.logs)
        return scale, np.asarray(residuals**2 / scale + noise - noise**2 * np.diagonal(inverse))

    def _tails(self, squares: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """New multiples of the noise's variance, of runs (the cell's in them) and of cells."""
        of_run = (RUN_TAILS + squares / own[self.cells]) / (RUN_TAILS + 1)
        sums, counts = self.own.T @ (squares / of_run), self.own.sum(axis=0)
        found = (CELL_TAILS + sums) / (CELL_TAILS + counts)
        return np.asarray(of_run * found[self.cells]), np.asarray(found)

    def _draws(
        self, point: FloatArray, noise: FloatArray, count: int, random: np.random.Generator
    ) -> FloatArray:
        main, pair, cell, block = point
        space, size = self.space, len(self.logs)
        prior = random.standard_normal((count, space.mains.shape[1])) @ space.mains.T * np.sqrt(main)
        prior += random.standard_normal((count, space.pairs.shape[1])) @ space.pairs.T * np.sqrt(pair)
        prior += random.standard_normal((count, len(space.levels))) * np.sqrt(cell)
        rate = NOISE_WEIGHT * NOISE_VARIANCE
        if not size:
            gamma = random.standard_gamma(NOISE_WEIGHT, (count, 1))
            return np.asarray(prior * np.sqrt(rate / gamma))
        lower, quadratic = self._solved(point, noise)
        rate += quadratic / 2
        deviation = np.sqrt(rate / random.standard_gamma(NOISE_WEIGHT + size / 2, (count, 1)))
        found = prior[:, self.cells] + random.standard_normal((count, size)) * np.sqrt(noise)
        found += random.standard_normal((count, self.blocks.shape[1])) @ self.blocks.T * np.sqrt(block)
        found += random.standard_normal((count, 1)) * np.sqrt(LEVEL)
        solved = cho_solve((lower, True), (self.logs / deviation - found).T, check_finite=False)
        cross = (
            main * space.mains @ space.mains[self.cells].T + pair * space.pairs @ space.pairs[self.cells].T
        )
        cross += cell * self.own.T
        return np.asarray((prior + solved.T @ cross.T) * deviation)


def _allotted(shares: FloatArray, count: int) -> list[int]:
    """So many draws for each share, all of them together."""
    bounds = np.round(np.cumsum(shares) * count).astype(np.intp)
    return [int(each) for each in np.diff(bounds, prepend=0)]


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


# Chances are counted among draws: the same figures give the same ones.
_REPETITION_SEED, _REPETITION_DRAWS = 18, 4000


def lead_by_repetitions(logs: Sequence[FloatArray], margin: float) -> Lead:
    """Who leads by the logarithms of each cell's repetitions alone, a larger one being better; two or more of each.

    Each mean is as uncertain as the cell's own repetitions scatter (Student's t), and nothing is thought of it before. No model holds
    the cells together: the one of a search is too sure of few visits, as it must name the next one (docs/METHOD.md).
    """
    random = np.random.default_rng(_REPETITION_SEED)
    draws = np.column_stack(
        [
            own.mean()
            + own.std(ddof=1) / math.sqrt(len(own)) * random.standard_t(len(own) - 1, _REPETITION_DRAWS)
            for own in logs
        ]
    )
    return lead(Posterior(draws, draws.std(axis=0)), np.ones(len(logs), dtype=np.bool_), margin)


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
