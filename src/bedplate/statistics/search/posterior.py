"""What visits say of all cells: a Gaussian model of the logarithm, whose variances the data weigh.

    log figure = block + levels + pairs of levels + cell + noise

Each term is normal with one variance, as a multiple of the noise. A grid of such multiples is weighed by how likely it makes the
figures (the variance of the noise is integrated out over an inverse gamma prior), so strong interactions widen
what is said of cells that were not visited. Where nothing was visited the prior speaks.

Heavy tails and cells of unequal scatter: a cell's noise has a multiple of its own and each run another, both as
Student's t has them (Lange, Little & Taylor 1989, J. Am. Stat. Assoc. 84), found by the EM algorithm. A run far off weighs less, and
a cell that scatters is known less.

Draws are made by conditioning draws of the prior (Matheron's rule: Journel & Huijbregts 1978), which needs no covariance
of all cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from bedplate.statistics.search.space import SearchSpace, Tried, cell_numbers, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.statistics.estimation import BoolArray, FloatArray

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
# Degrees of freedom of a cell's multiple of the noise, and of a run's.
CELL_TAILS = 4.0
RUN_TAILS = 4.0
PASSES = 4
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
