"""The cells of a search by their factors, and what was tried of them.

A cell's logarithm is a sum: one term for each level that it has, one for each pair of levels, one of its own. A factor
that a cell lacks adds nothing to it, so a factor of one file system is nested under it. What one factor's name says
again is left out, as `effects` does (`design`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bedplate.statistics.design import DesignCell, design

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from bedplate.model.levels import Scalar
    from bedplate.statistics.estimation import BoolArray, FloatArray

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
        columns = [found.codes[:, found.names.index(name)] for name in found.factors]
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
