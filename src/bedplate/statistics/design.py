"""The design behind effects: which factors there are, where they exist, and contrasts of matched cells.

A factor that a cell has not (`data` outside of ext3 and ext4) is no level of its own there. Cells are
matched on all factors that both sides of a contrast have; those that only one side has are averaged
over, and named. So a contrast is made on the complete part of the design for just its levels.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from bedplate.model.levels import Scalar
    from bedplate.statistics.estimation import FloatArray

    CodeArray: TypeAlias = npt.NDArray[np.intp]
    # Sides of a contrast: each a sign and the levels that its cells have.
    Sides: TypeAlias = Sequence[tuple[int, Mapping[str, Scalar]]]


@dataclass(frozen=True)
class DesignCell:
    """A cell by its levels, and its positive values of one metric by repetition."""

    levels: Mapping[str, Scalar]
    values: Mapping[int, float]

    def __post_init__(self) -> None:
        """ValueError for a value without a logarithm."""
        wrong = [value for value in self.values.values() if not 0 < value < math.inf]
        if wrong:
            raise ValueError(f"effects are made of positive values, found {wrong[0]}; leave such runs out")


@dataclass(frozen=True)
class Contrast:
    """A signed sum of the means of cells, made once per repetition, over `strata` groups of matched cells.

    `sides` has the shape (sides, repetitions), natural logarithms without their signs; `by_repetition` is
    the sum. `averaged_over` are factors that not all sides have.
    """

    sides: FloatArray
    by_repetition: FloatArray
    strata: int
    averaged_over: tuple[str, ...]


@dataclass(frozen=True)
class Design:
    """Cells that have all of the `repetitions`; `logs` has the shape (cells, repetitions).

    `factors` are those with two levels or more, levels in their order; `codes`, of the shape (cells,
    factors), numbers them, -1 where a cell has not the factor. `aliases` says which factor is the same as
    another under a second name, and left out. `left_out` counts cells without all repetitions.
    """

    levels: tuple[Mapping[str, Scalar], ...]
    repetitions: tuple[int, ...]
    logs: FloatArray
    factors: Mapping[str, tuple[Scalar, ...]]
    codes: CodeArray
    aliases: Mapping[str, str]
    left_out: int = 0

    def within(self, factor: str, level: Scalar) -> Design:
        """The part of the design in which a factor has this level."""
        rows = [row for row, levels in enumerate(self.levels) if levels.get(factor) == level]
        levels = tuple(self.levels[row] for row in rows)
        return _design(levels, self.repetitions, self.logs[rows], self.left_out)

    def levels_with(self, factor: str, other: str) -> frozenset[Scalar]:
        """Levels of `factor` under which `other` exists."""
        return frozenset(levels[factor] for levels in self.levels if factor in levels and other in levels)

    def contrast(self, sides: Sides) -> Contrast | None:
        """The mean over strata of the signed sum of the sides; None where no cells match."""
        members = [self._rows(wanted) for _, wanted in sides]
        if not all(map(len, members)):
            return None
        names = list(self.factors)
        free = np.array([all(name not in wanted for _, wanted in sides) for name in names])
        existing = np.array([(self.codes[rows] >= 0).any(axis=0) for rows in members]) & free
        shared = existing.all(axis=0)
        strata: defaultdict[bytes, list[list[int]]] = defaultdict(lambda: [[] for _ in sides])
        for side, rows in enumerate(members):
            for row, key in zip(rows, self.codes[rows][:, shared], strict=True):
                strata[key.tobytes()][side].append(row)
        complete = [groups for groups in strata.values() if all(groups)]
        if not complete:
            return None
        weights = np.zeros((len(sides), len(self.levels)))
        for groups in complete:
            for side, found in enumerate(groups):
                weights[side, found] += 1 / len(found) / len(complete)
        means = weights @ self.logs
        signs = np.array([sign for sign, _ in sides], dtype=np.float64)
        averaged = np.flatnonzero(existing.any(axis=0) & ~shared)
        return Contrast(means, signs @ means, len(complete), tuple(names[at] for at in averaged))

    def _rows(self, wanted: Mapping[str, Scalar]) -> CodeArray:
        names = list(self.factors)
        columns = [names.index(name) for name in wanted]
        numbers = [self.factors[name].index(level) for name, level in wanted.items()]
        return np.flatnonzero((self.codes[:, columns] == numbers).all(axis=1))


def design(cells: Iterable[DesignCell]) -> Design:
    """Put cells together on those repetitions that keep the most values.

    Of the k repetitions that most cells have, k is chosen so that (cells that have all k) x k is largest: a
    study that was stopped within a repetition loses the repetition, a cell that failed once loses itself.
    """
    found = list(cells)
    repetitions, kept = _complete(found)
    levels = tuple(dict(cell.levels) for cell in kept)
    logs = np.array([[math.log(cell.values[r]) for r in repetitions] for cell in kept], dtype=np.float64)
    return _design(levels, repetitions, logs.reshape(len(kept), len(repetitions)), len(found) - len(kept))


def _design(
    levels: tuple[Mapping[str, Scalar], ...], repetitions: tuple[int, ...], logs: FloatArray, left_out: int
) -> Design:
    factors, aliases = _factors(levels)
    codes = [
        [found.index(cell[name]) if name in cell else -1 for name, found in factors.items()]
        for cell in levels
    ]
    numbered = np.array(codes, dtype=np.intp).reshape(len(levels), len(factors))
    return Design(levels, repetitions, logs, factors, numbered, aliases, left_out)


def _complete(cells: Sequence[DesignCell]) -> tuple[tuple[int, ...], list[DesignCell]]:
    repetitions, kept = complete_part([cell.values for cell in cells])
    return repetitions, [cells[row] for row in kept]


def complete_part(rows: Sequence[Mapping[int, float]]) -> tuple[tuple[int, ...], list[int]]:
    """The repetitions to keep of rows by repetition, and which rows have all of them."""
    counts: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        for repetition in row:
            counts[repetition] += 1
    by_count = sorted(counts, key=lambda repetition: (-counts[repetition], repetition))
    best: tuple[int, tuple[int, ...], list[int]] = (0, (), [])
    for k in range(1, len(by_count) + 1):
        chosen = by_count[:k]
        kept = [at for at, row in enumerate(rows) if all(repetition in row for repetition in chosen)]
        if len(kept) * k >= best[0]:
            best = (len(kept) * k, tuple(sorted(chosen)), kept)
    return best[1], best[2]


def _factors(
    levels: Sequence[Mapping[str, Scalar]],
) -> tuple[dict[str, tuple[Scalar, ...]], dict[str, str]]:
    """Factors with two levels or more, and those that only repeat another one."""
    names = dict.fromkeys(name for cell in levels for name in cell)
    varying: dict[str, tuple[Scalar, ...]] = {}
    for name in names:
        seen = tuple(dict.fromkeys(cell[name] for cell in levels if name in cell))
        if len(seen) > 1:
            varying[name] = _in_order(seen)
    aliases: dict[str, str] = {}
    for first, second in combinations(varying, 2):
        if first not in aliases and second not in aliases and _same_division(levels, first, second):
            aliases[second] = first
    return {name: found for name, found in varying.items() if name not in aliases}, aliases


def _in_order(levels: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Numbers by their size, everything else as it came up."""
    numbers = [level for level in levels if isinstance(level, int | float)]
    return tuple(sorted(numbers)) if len(numbers) == len(levels) else levels


def _same_division(levels: Sequence[Mapping[str, Scalar]], first: str, second: str) -> bool:
    pairs = {(cell.get(first), cell.get(second)) for cell in levels}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
