"""The design behind effects: which factors there are, where they exist, and contrasts of matched cells.

A factor that a cell has not (`data` outside of ext3 and ext4) is no level of its own there. Cells are matched on
all factors that the sides of a contrast share. A factor that only some sides have is nested: those sides are held
at its usual level, which is what holds where nobody asks. They are never averaged over its levels, as a mean over
`barrier` on and off is no file system that anybody runs. Without a usual level there is no contrast, and the
reason is kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from bedplate.model.levels import Scalar
    from bedplate.statistics.estimation import BoolArray, FloatArray

    CodeArray: TypeAlias = npt.NDArray[np.intp]
    # Sides of a contrast: each a sign and the levels that its cells have.
    Sides: TypeAlias = Sequence[tuple[int, Mapping[str, Scalar]]]


@dataclass(frozen=True)
class DesignCell:
    """A cell by its levels, and its positive values of one metric by repetition.

    `usual` are the factors at whose usual level it is: nobody asked for another one.
    """

    levels: Mapping[str, Scalar]
    values: Mapping[int, float]
    usual: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        """ValueError for a value without a logarithm."""
        wrong = [value for value in self.values.values() if not 0 < value < math.inf]
        if wrong:
            raise ValueError(f"effects are made of positive values, found {wrong[0]}; leave such runs out")


@dataclass(frozen=True)
class Contrast:
    """A signed sum of the means of cells, made once per repetition, over `strata` groups of matched cells.

    `sides` has the shape (sides, repetitions), natural logarithms without their signs; `by_repetition` is the
    sum. `repetitions` are those that all of its cells have. `held` are the usual levels at which sides were held
    that alone have the factor. `differs` are factors in which the sides are not alike, and their levels there.
    """

    sides: FloatArray
    by_repetition: FloatArray
    strata: int
    repetitions: tuple[int, ...]
    held: tuple[tuple[str, Scalar], ...] = ()
    differs: tuple[tuple[str, tuple[Scalar, ...]], ...] = ()


class Lack(Enum):
    """Why two levels have no contrast."""

    NO_CELLS = "no cells"
    NO_USUAL_LEVEL = "no usual level"
    NOTHING_MATCHES = "nothing matches"
    NO_REPETITION = "no repetition"


@dataclass(frozen=True)
class NoContrast:
    """Why sides cannot be held against each other; `factors` are those that stand in the way."""

    lack: Lack
    factors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Design:
    """Cells and the logarithms of their values, of the shape (cells, repetitions); NaN where one lacks a value.

    `factors` are those with two levels or more, levels in their order. `aliases` says which factor is the same as
    another under a second name, and left out. `names` are all that any cell has a level of; `codes`, of the shape
    (cells, names), numbers the levels, -1 where a cell has not the factor, and `usual` says which are usual.
    """

    cells: tuple[DesignCell, ...]
    repetitions: tuple[int, ...]
    logs: FloatArray
    factors: Mapping[str, tuple[Scalar, ...]]
    aliases: Mapping[str, str]
    names: tuple[str, ...]
    codes: CodeArray
    usual: BoolArray

    @cached_property
    def levels(self) -> tuple[Mapping[str, Scalar], ...]:
        """The levels of each cell."""
        return tuple(cell.levels for cell in self.cells)

    @property
    def incomplete(self) -> int:
        """How many cells lack a repetition that others have."""
        return int(np.isnan(self.logs).any(axis=1).sum())

    def within(self, factor: str, level: Scalar) -> Design:
        """The part of the design in which a factor has this level."""
        return design(cell for cell in self.cells if cell.levels.get(factor) == level)

    def levels_with(self, factor: str, other: str) -> frozenset[Scalar]:
        """Levels of `factor` under which `other` exists."""
        return frozenset(levels[factor] for levels in self.levels if factor in levels and other in levels)

    def complete(self) -> Design:
        """Those cells and repetitions that keep the most values, without a gap."""
        repetitions, kept = complete_part([cell.values for cell in self.cells])
        return design(
            DesignCell(cell.levels, {r: cell.values[r] for r in repetitions}, cell.usual)
            for cell in (self.cells[row] for row in kept)
        )

    def contrast(self, sides: Sides) -> Contrast | NoContrast:
        """The mean over strata of the signed sum of the sides, on the repetitions that keep the most values."""
        named = {name for _, wanted in sides for name in wanted}
        free = np.array([not _is_named(name, named) for name in self.names])
        members = [self._rows(wanted) for _, wanted in sides]
        if not all(map(len, members)):
            return NoContrast(Lack.NO_CELLS)
        existing = np.array([(self.codes[rows] >= 0).any(axis=0) for rows in members])
        shared = existing.all(axis=0) & free
        one_sided = existing.any(axis=0) & ~existing.all(axis=0) & free
        unclear: set[str] = set()
        for side, rows in enumerate(members):
            members[side], without = self.held(rows, np.flatnonzero(one_sided & existing[side]))
            unclear.update(without)
        # Of four sides two may have a factor, and only one of them at its usual level.
        unclear.update(
            self.names[at] for at in map(int, np.flatnonzero(one_sided)) if self._is_uneven(members, at)
        )
        if unclear:
            return NoContrast(Lack.NO_USUAL_LEVEL, tuple(sorted(unclear)))
        columns = [at for at, is_shared in enumerate(shared) if is_shared and self.names[at] in self.factors]
        strata = self._strata(members, columns)
        if not strata:
            apart = [at for at in columns if not set.intersection(*self._seen(members, at))]
            return NoContrast(Lack.NOTHING_MATCHES, tuple(self.names[at] for at in apart or columns))
        repetitions, kept = self._kept(strata)
        if not repetitions:
            return NoContrast(Lack.NO_REPETITION)
        is_whole = repetitions == self.repetitions
        logs = self.logs if is_whole else self.logs[:, np.isin(self.repetitions, repetitions)]
        means = np.array(
            [_mean_of_means(logs, [groups[side] for groups in kept]) for side in range(len(sides))]
        )
        signs = np.array([sign for sign, _ in sides], dtype=np.float64)
        used = [np.array([row for groups in kept for row in groups[side]]) for side in range(len(sides))]
        others = [at for at, is_shared in enumerate(shared) if is_shared and self.names[at] in self.aliases]
        held, differs = self._beside(used, np.flatnonzero(one_sided), others)
        return Contrast(means, signs @ means, len(kept), repetitions, held, differs)

    def held(self, rows: CodeArray, columns: Iterable[int]) -> tuple[CodeArray, tuple[str, ...]]:
        """Of these cells those that have the factors of the columns at their usual level, or not at all.

        A factor with one level here is held by itself. Returned with those that have several and no usual one.
        """
        columns = list(columns)
        for at in columns:
            codes, usual = self.codes[rows, at], self.usual[rows, at]
            if len(set(codes[codes >= 0])) > 1 and usual.any():
                rows = rows[(codes < 0) | usual]
        unclear = [
            self.names[at]
            for at in columns
            if len(self._seen([rows], at)[0]) > 1 and not self.usual[rows, at].any()
        ]
        return rows, tuple(unclear)

    def _rows(self, wanted: Mapping[str, Scalar]) -> CodeArray:
        first, *others = (
            self._having[name][self.factors[name].index(level)] for name, level in wanted.items()
        )
        for other in others:
            first = first & other
        return np.flatnonzero(first)

    @cached_property
    def _having(self) -> Mapping[str, Sequence[BoolArray]]:
        """Which cells have each level of each factor: asked for thousands of times of a design of many cells."""
        return {
            name: [self.codes[:, self.names.index(name)] == number for number in range(len(levels))]
            for name, levels in self.factors.items()
        }

    def _strata(self, members: Sequence[CodeArray], columns: Sequence[int]) -> list[list[list[int]]]:
        """Groups of cells that are alike in these columns: in each, the rows of every side."""
        strata: defaultdict[tuple[int, ...], list[list[int]]] = defaultdict(lambda: [[] for _ in members])
        for side, rows in enumerate(members):
            keys = self.codes[rows][:, columns].tolist()
            for row, key in zip(rows.tolist(), map(tuple, keys), strict=True):
                strata[key][side].append(row)
        return [groups for groups in strata.values() if all(groups)]

    def _kept(self, strata: list[list[list[int]]]) -> tuple[tuple[int, ...], list[list[list[int]]]]:
        """The repetitions and strata that keep the most values."""
        if not np.isnan(self.logs).any():
            return self.repetitions, strata
        missing = np.isnan(self.logs)
        there = [
            {
                repetition: 0.0
                for column, repetition in enumerate(self.repetitions)
                if not missing[[row for rows in groups for row in rows], column].any()
            }
            for groups in strata
        ]
        repetitions, kept = complete_part(there)
        return repetitions, [strata[at] for at in kept]

    def _beside(
        self, used: Sequence[CodeArray], one_sided: Iterable[int], aliases: Iterable[int]
    ) -> tuple[tuple[tuple[str, Scalar], ...], tuple[tuple[str, tuple[Scalar, ...]], ...]]:
        """What was held at its usual level, and in what the sides differ beside their own factor."""
        rows = np.concatenate(used)
        held: list[tuple[str, Scalar]] = []
        differs: list[tuple[str, tuple[Scalar, ...]]] = []
        for at in one_sided:
            having = rows[self.codes[rows, at] >= 0]
            if not len(having):
                continue
            levels = self._levels_of(having, at)
            if self.usual[having, at].all():
                held.append((self.names[at], levels[0]))
            else:
                differs.append((self.names[at], levels))
        for at in aliases:
            seen = self._seen(used, at)
            if any(levels != seen[0] for levels in seen):
                differs.append((self.names[at], self._levels_of(rows, at)))
        return tuple(held), tuple(differs)

    def _levels_of(self, rows: Iterable[int], at: int) -> tuple[Scalar, ...]:
        return tuple(dict.fromkeys(self.cells[row].levels[self.names[at]] for row in rows))

    def _is_uneven(self, members: Sequence[CodeArray], at: int) -> bool:
        """Whether sides that have a factor have it at other levels."""
        having = [levels for levels in self._seen(members, at) if levels]
        return any(levels != having[0] for levels in having)

    def _seen(self, members: Sequence[CodeArray], at: int) -> list[set[int]]:
        """The numbers of a factor's levels on each side."""
        return [set(self.codes[rows, at]) - {-1} for rows in members]


def _mean_of_means(logs: FloatArray, groups: Sequence[Sequence[int]]) -> FloatArray:
    """The mean over groups of rows of the mean within each; a group has one row at least."""
    counts = np.array([len(rows) for rows in groups])
    sums = np.add.reduceat(logs[list(chain.from_iterable(groups))], np.cumsum(counts) - counts, axis=0)
    means: FloatArray = (sums / counts[:, None]).mean(axis=0)
    return means


def _is_named(name: str, named: Iterable[str]) -> bool:
    """A throttle that is named differs in its limits too."""
    return any(name == other or name.startswith(f"{other}.") for other in named)


def design(cells: Iterable[DesignCell]) -> Design:
    """Put cells together on all repetitions that any of them has."""
    found = tuple(cells)
    repetitions = tuple(sorted({repetition for cell in found for repetition in cell.values}))
    shape = (len(found), len(repetitions))
    logs = [[math.log(cell.values.get(r, math.nan)) for r in repetitions] for cell in found]
    factors, aliases = _factors([cell.levels for cell in found])
    names = tuple(dict.fromkeys(name for cell in found for name in cell.levels))
    numbers = {
        name: {
            level: number
            for number, level in enumerate(
                factors.get(name) or dict.fromkeys(cell.levels[name] for cell in found if name in cell.levels)
            )
        }
        for name in names
    }
    codes = [
        [numbers[name][cell.levels[name]] if name in cell.levels else -1 for name in names] for cell in found
    ]
    usual = [[name in cell.usual and name in cell.levels for name in names] for cell in found]
    return Design(
        cells=found,
        repetitions=repetitions,
        logs=np.array(logs, dtype=np.float64).reshape(shape),
        factors=factors,
        aliases=aliases,
        names=names,
        codes=np.array(codes, dtype=np.intp).reshape(len(found), len(names)),
        usual=np.array(usual, dtype=np.bool_).reshape(len(found), len(names)),
    )


def complete_part(rows: Sequence[Mapping[int, float]]) -> tuple[tuple[int, ...], list[int]]:
    """The repetitions to keep of rows by repetition, and which rows have all of them.

    Of the k repetitions that most rows have, k is chosen so that (rows that have all k) x k is largest: a study
    that was stopped within a repetition loses the repetition, a cell that failed once loses itself.
    """
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
