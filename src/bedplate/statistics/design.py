"""The design behind effects: which factors there are, where they exist, and contrasts of matched cells.

A factor that a cell has not (`data` outside of ext3 and ext4) is no level of its own there. Cells are matched on
all factors that the sides of a contrast share. A factor that only some sides have is nested: those sides are held
at its usual level, which is what holds where nobody asks. They are never averaged over its levels, as a mean over
`barrier` on and off is no file system that anybody runs. Without a usual level there is no contrast, and the
reason is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import stdtrit

from bedplate.statistics.contrast import Differences, LevelTable, complete_part
from bedplate.statistics.estimation import REPETITIONS_MIN, VALUES_MIN

if TYPE_CHECKING:
    from bedplate.model.levels import Scalar
    from bedplate.statistics.contrast import CodeArray
    from bedplate.statistics.estimation import BoolArray, Estimate, FloatArray

    Sides: TypeAlias = Sequence[tuple[int, Mapping[str, Scalar]]]


@dataclass(frozen=True)
class DesignCell:
    """A cell by its levels, and its positive values of one metric by repetition.

    `usual` are the factors at whose usual level it is: nobody asked for another one. `name` is its own, `same_as` those of
    cells that are effectively the same: no ratio is between these. `without_ratio` are repetitions that count and have no
    logarithm, as they were stopped at a limit or came to 0: what such a one shares with another cell is in no ratio, since
    the others are the good ones.
    """

    levels: Mapping[str, Scalar]
    values: Mapping[int, float]
    usual: frozenset[str] = field(default_factory=frozenset)
    name: str = ""
    same_as: frozenset[str] = frozenset()
    without_ratio: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """ValueError for a value without a logarithm."""
        wrong = [value for value in self.values.values() if not 0 < value < math.inf]
        if wrong:
            raise ValueError(f"effects are made of positive values, found {wrong[0]}; leave such runs out")


@dataclass(frozen=True)
class Contrast:
    """A signed sum of the means of cells, made in each group of matched cells (stratum) and each repetition.

    `differences` has a row for each stratum, which has two repetitions at least, if any has. `sides` are the means of the
    sides over the strata, without their signs, `cells` the names of their cells. `left_out` counts the other strata by what
    they lack. `held` are the usual levels at which sides were held that alone have the factor. `differs` are factors in which
    the sides are not alike, and their levels there.
    """

    sides: FloatArray
    differences: Differences
    repetitions: tuple[int, ...]
    cells: tuple[frozenset[str], ...] = ()
    left_out: Mapping[Lack, int] = field(default_factory=dict)
    held: tuple[tuple[str, Scalar], ...] = ()
    differs: tuple[tuple[str, tuple[Scalar, ...]], ...] = ()

    @property
    def strata(self) -> int:
        """How many groups of matched cells it is over."""
        return len(self.differences.values)

    @cached_property
    def estimate(self) -> Estimate:
        """The mean over the strata, each over its own repetitions."""
        return self.differences.mean()


class Lack(Enum):
    """Why two levels have no contrast, or two cells are in none."""

    NO_CELLS = "no cells"
    NO_USUAL_LEVEL = "no usual level"
    NOTHING_MATCHES = "nothing matches"
    NO_REPETITION = "no repetition"
    FEW_REPETITIONS = "few repetitions"
    NO_RATIO = "no ratio"
    SAME = "same"


@dataclass(frozen=True)
class NoContrast:
    """Why sides cannot be held against each other; `factors` are those that stand in the way."""

    lack: Lack
    factors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Design:
    """Cells and the logarithms of their values, of the shape (cells, repetitions); NaN where one lacks a value, infinite where it has no logarithm.

    `factors` are those with two levels or more, levels in their order. `aliases` says which factor is the same as
    another under a second name, and left out. `usual` says which levels of the table are usual.
    """

    cells: tuple[DesignCell, ...]
    repetitions: tuple[int, ...]
    logs: FloatArray
    factors: Mapping[str, tuple[Scalar, ...]]
    aliases: Mapping[str, str]
    table: LevelTable
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
        repetitions, kept = complete_part([{} if cell.without_ratio else cell.values for cell in self.cells])
        return design(
            replace(cell, values={r: cell.values[r] for r in repetitions})
            for cell in (self.cells[row] for row in kept)
        )

    def contrast(self, sides: Sides) -> Contrast | NoContrast:
        """The signed sum of the sides in each stratum, on the repetitions that all of its cells have."""
        table = self.table
        members = [self._rows(wanted) for _, wanted in sides]
        if not all(map(len, members)):
            return NoContrast(Lack.NO_CELLS)
        shared, one_sided = table.shared(members, {name for _, wanted in sides for name in wanted})
        unclear: set[str] = set()
        for side, rows in enumerate(members):
            members[side], without = self.held(rows, one_sided)
            unclear.update(without)
        # Of four sides two may have a factor, and only one of them at its usual level.
        unclear.update(table.names[at] for at in one_sided if self._is_uneven(members, at))
        if unclear:
            return NoContrast(Lack.NO_USUAL_LEVEL, tuple(sorted(unclear)))
        columns = [at for at in shared if table.names[at] in self.factors]
        strata = table.strata(members, columns)
        if not strata:
            apart = table.apart(members, columns) or tuple(table.names[at] for at in columns)
            return NoContrast(Lack.NOTHING_MATCHES, apart)
        means = np.array(
            [_means_of(self.logs, [groups[side] for groups in strata]) for side in range(len(sides))]
        )
        has_ratio = ~(np.isinf(means).any(axis=0) & ~np.isnan(means).any(axis=0)).any(axis=1)
        means[np.isinf(means)] = np.nan
        differences = np.tensordot(np.array([sign for sign, _ in sides], dtype=np.float64), means, axes=1)
        differs = np.array([not self._are_same(groups) for groups in strata])
        there = np.isfinite(differences) & (has_ratio & differs)[:, None]
        counts = there.sum(axis=1)
        left_out = {
            Lack.SAME: int((~differs).sum()),
            Lack.NO_RATIO: int((~has_ratio & differs).sum()),
            Lack.NO_REPETITION: int((has_ratio & differs & (counts == 0)).sum()),
            Lack.FEW_REPETITIONS: int(((counts > 0) & (counts < min(VALUES_MIN, counts.max()))).sum()),
        }
        left_out = {lack: n for lack, n in left_out.items() if n}
        if not counts.any():
            return NoContrast(max(left_out, key=lambda lack: left_out[lack]))
        kept = counts >= min(VALUES_MIN, counts.max())
        columns_kept = there[kept].any(axis=0)
        of_sides = (np.where(there, means, 0.0).sum(axis=2) / np.maximum(counts, 1))[:, kept].mean(axis=1)
        used = [
            np.array([row for groups, own in zip(strata, kept, strict=True) if own for row in groups[side]])
            for side in range(len(sides))
        ]
        others = [at for at in shared if table.names[at] in self.aliases]
        return Contrast(
            of_sides,
            Differences.of_rows(np.where(there, differences, np.nan)[kept][:, columns_kept]),
            tuple(r for r, own in zip(self.repetitions, columns_kept, strict=True) if own),
            tuple(frozenset(self.cells[row].name for row in rows) for rows in used),
            left_out,
            *self._beside(used, one_sided, others),
        )

    def _are_same(self, groups: Sequence[Sequence[int]]) -> bool:
        """Whether a cell of one side is effectively one of the other; of four sides, whether one of a ratio's two is."""
        return self._some_are_same and any(
            self.cells[row].name in self.cells[other].same_as
            for first, second in zip(groups[::2], groups[1::2], strict=True)
            for row, other in product(first, second)
        )

    @cached_property
    def _some_are_same(self) -> bool:
        return any(cell.same_as for cell in self.cells)

    def held(self, rows: CodeArray, columns: Sequence[int]) -> tuple[CodeArray, tuple[str, ...]]:
        """Of these cells those that have the factors of the columns at their usual level, or not at all.

        A factor with one level here is held by itself. Returned with those that have several and no usual one.
        """
        for at in columns:
            codes, usual = self.table.codes[rows, at], self.usual[rows, at]
            if len(set(codes[codes >= 0])) > 1 and usual.any():
                rows = rows[(codes < 0) | usual]
        unclear = [
            self.table.names[at]
            for at in columns
            if len(self.table.levels([rows], at)[0]) > 1 and not self.usual[rows, at].any()
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
            name: [
                self.table.codes[:, self.table.names.index(name)] == number for number in range(len(levels))
            ]
            for name, levels in self.factors.items()
        }

    def _beside(
        self, used: Sequence[CodeArray], one_sided: Iterable[int], aliases: Iterable[int]
    ) -> tuple[tuple[tuple[str, Scalar], ...], tuple[tuple[str, tuple[Scalar, ...]], ...]]:
        """What was held at its usual level, and in what the sides differ beside their own factor."""
        rows = np.concatenate(used)
        held: list[tuple[str, Scalar]] = []
        differs: list[tuple[str, tuple[Scalar, ...]]] = []
        for at in one_sided:
            having = rows[self.table.codes[rows, at] >= 0]
            if not len(having):
                continue
            levels = self._levels_of(having, at)
            if self.usual[having, at].all():
                held.append((self.table.names[at], levels[0]))
            else:
                differs.append((self.table.names[at], levels))
        for at in aliases:
            seen = self.table.levels(used, at)
            if any(levels != seen[0] for levels in seen):
                differs.append((self.table.names[at], self._levels_of(rows, at)))
        return tuple(held), tuple(differs)

    def _levels_of(self, rows: Iterable[int], at: int) -> tuple[Scalar, ...]:
        return tuple(dict.fromkeys(self.cells[row].levels[self.table.names[at]] for row in rows))

    def _is_uneven(self, members: Sequence[CodeArray], at: int) -> bool:
        """Whether sides that have a factor have it at other levels."""
        having = [levels for levels in self.table.levels(members, at) if levels]
        return any(levels != having[0] for levels in having)


def _means_of(logs: FloatArray, groups: Sequence[Sequence[int]]) -> FloatArray:
    """The mean within each group of rows, shape (groups, repetitions); a group has one row at least."""
    counts = np.array([len(rows) for rows in groups])
    sums = np.add.reduceat(logs[list(chain.from_iterable(groups))], np.cumsum(counts) - counts, axis=0)
    means: FloatArray = sums / counts[:, None]
    return means


def design(cells: Iterable[DesignCell]) -> Design:
    """Put cells together on all repetitions that any of them has."""
    found = tuple(cells)
    repetitions = tuple(sorted({repetition for cell in found for repetition in cell.values}))
    shape = (len(found), len(repetitions))
    logs = [
        [
            -math.inf if r in cell.without_ratio else math.log(cell.values.get(r, math.nan))
            for r in repetitions
        ]
        for cell in found
    ]
    factors, aliases = factors_of([cell.levels for cell in found])
    table = LevelTable.of([cell.levels for cell in found], factors)
    usual = [[name in cell.usual and name in cell.levels for name in table.names] for cell in found]
    return Design(
        cells=found,
        repetitions=repetitions,
        logs=np.array(logs, dtype=np.float64).reshape(shape),
        factors=factors,
        aliases=aliases,
        table=table,
        usual=np.array(usual, dtype=np.bool_).reshape(table.codes.shape),
    )


def factors_of(
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


CONFIDENCE = 0.95


@dataclass(frozen=True)
class Share:
    """The share of the variation that a factor (or two of them together, beyond each alone) accounts for.

    No `factors` stand for all combinations of three or more. Between 0 and 1; the bounds are None with
    fewer than three repetitions.
    """

    factors: tuple[str, ...]
    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Variation:
    """The shares on a complete part of `cells` cells; `left_out` are levels that are not in it.

    Where the factor `only` varies there are no shares: it would have the whole, whatever it does.
    `held` are factors that only some cells have, which were held at their usual level. `scatter` is the median over
    cells of the coefficient of variation between repetitions, after what a repetition does to all cells.
    """

    cells: int
    shares: tuple[Share, ...]
    left_out: tuple[tuple[str, Scalar], ...]
    held: tuple[str, ...]
    scatter: float
    only: str | None = None


def variation(
    design: Design, factors: Sequence[str], *, nest: str | None = None, confidence: float = CONFIDENCE
) -> Variation | None:
    """Divide the variation among `factors`; None where no complete part varies, or nothing comes back.

    Only factors that every cell has take part. The others are held at their usual level, within each level of `nest`
    by itself; what has no usual level is left out. At least two repetitions.
    """
    complete = design.complete()
    chosen = [name for name in factors if all(name in levels for levels in complete.levels)]
    if len(complete.repetitions) < 2 or not chosen:
        return None
    kept_rows, held = _held(complete, chosen, nest if nest in chosen else None)
    combined = _combined(complete, chosen, kept_rows)
    kept, left_out = _complete_part(combined, chosen)
    gone = {
        (name, level): None
        for at, name in enumerate(chosen)
        for level in complete.factors.get(name, ())
        if all(key[at] != level for key in combined)
    }
    varying = {
        name: tuple(level for level in design.factors[name] if any(key[at] == level for key in kept))
        for at, name in enumerate(chosen)
    }
    varying = {name: levels for name, levels in varying.items() if len(levels) > 1}
    if not varying:
        return None
    places = [at for at, name in enumerate(chosen) if name in varying]
    by_place = {tuple(key[at] for at in places): combined[key] for key in kept}
    logs = np.array([by_place[key] for key in product(*varying.values())])
    logs = np.moveaxis(logs, -1, 0).reshape(-1, *(len(levels) for levels in varying.values()))
    only = next(iter(varying)) if len(varying) == 1 else None
    shares = () if only else _shares(logs, tuple(varying), confidence)
    if not shares and only is None:
        return None
    return Variation(len(by_place), shares, (*gone, *left_out), held, _scatter(complete.logs), only)


def _held(design: Design, chosen: Sequence[str], nest: str | None) -> tuple[list[int], tuple[str, ...]]:
    """The cells at the usual levels of all factors that not every cell has, and which factors those are."""
    names = design.table.names
    others = [at for at, name in enumerate(names) if name in design.factors and name not in chosen]
    groups: dict[Scalar | None, list[int]] = {}
    for row, levels in enumerate(design.levels):
        groups.setdefault(levels[nest] if nest else None, []).append(row)
    kept: list[int] = []
    held: dict[str, None] = {}
    for rows in groups.values():
        usual, unclear = design.held(np.array(rows), others)
        having = [row for row in usual if any(name in design.levels[row] for name in unclear)]
        kept += [int(row) for row in usual if row not in having]
        if len(usual) < len(rows):
            held |= {names[at]: None for at in others if any(names[at] in design.levels[r] for r in rows)}
    return sorted(kept), tuple(held)


def _combined(
    design: Design, factors: Sequence[str], kept: Sequence[int]
) -> dict[tuple[Scalar, ...], FloatArray]:
    """The mean logarithms by repetition of each combination that one of the kept cells has."""
    rows: dict[tuple[Scalar, ...], list[int]] = {}
    for row in kept:
        rows.setdefault(tuple(design.levels[row][name] for name in factors), []).append(row)
    return {key: design.logs[found].mean(axis=0) for key, found in rows.items()}


def _complete_part(
    combined: Mapping[tuple[Scalar, ...], FloatArray], factors: Sequence[str]
) -> tuple[list[tuple[Scalar, ...]], tuple[tuple[str, Scalar], ...]]:
    """Combinations of which none is missing, by leaving out the level that lacks the largest share, again and again."""
    kept = list(combined)
    left_out: list[tuple[str, Scalar]] = []
    while kept:
        levels = [dict.fromkeys(key[at] for key in kept) for at in range(len(factors))]
        size = int(np.prod([len(found) for found in levels]))
        if len(kept) == size:
            break
        present = {
            (at, level): sum(key[at] == level for key in kept) * len(found) / size
            for at, found in enumerate(levels)
            for level in found
            if len(found) > 1
        }
        at, level = min(present, key=lambda place: present[place])
        left_out.append((factors[at], level))
        kept = [key for key in kept if key[at] != level]
    return kept, tuple(left_out)


def _shares(logs: FloatArray, factors: tuple[str, ...], confidence: float) -> tuple[Share, ...]:
    """`logs` has the repetitions on its first axis and a factor on each other."""
    axes = range(1, logs.ndim)
    centred = logs - logs.mean(axis=tuple(axes), keepdims=True)
    alone = {at: _mean_over(centred, [axis for axis in axes if axis != at]) for at in axes}
    effects: dict[tuple[str, ...], FloatArray] = {(factors[at - 1],): found for at, found in alone.items()}
    for first, second in combinations(axes, 2):
        both = _mean_over(centred, [axis for axis in axes if axis not in {first, second}])
        effects[factors[first - 1], factors[second - 1]] = both - alone[first] - alone[second]
    if len(factors) > 2:
        effects[()] = centred - np.sum(list(effects.values()), axis=0)
    total = products_of(centred)
    if _across(total) <= 0:
        return ()
    products = {name: products_of(found) for name, found in effects.items()}
    # Scatter may leave an effect below zero, and then the others together above the whole: together they are 1.
    squares = {name: max(0.0, _across(found)) for name, found in products.items()}
    whole = sum(squares.values())
    return tuple(
        _share(name, squares[name] / whole, found, total, confidence) for name, found in products.items()
    )


def _mean_over(values: FloatArray, axes: Sequence[int]) -> FloatArray:
    return np.broadcast_to(values.mean(axis=tuple(axes), keepdims=True), values.shape)


def products_of(effect: FloatArray) -> FloatArray:
    """Inner products of every two repetitions, over the cells; repetitions lie on the first axis."""
    flat = effect.reshape(len(effect), -1)
    return np.asarray(flat @ flat.T)


def _across(products: FloatArray) -> float:
    """The mean of products of different repetitions: no square of a run's own scatter is in it."""
    n = len(products)
    return float((products.sum() - np.trace(products)) / (n * (n - 1)))


def pseudo_values(products: FloatArray) -> FloatArray:
    """Jackknife values of the mean product of different repetitions, one for each repetition; three at least."""
    n = len(products)
    without = [_across(np.delete(np.delete(products, left, axis=0), left, axis=1)) for left in range(n)]
    return n * _across(products) - (n - 1) * np.array(without)


def _share(
    name: tuple[str, ...], share: float, effect: FloatArray, total: FloatArray, confidence: float
) -> Share:
    n = len(total)
    if n < REPETITIONS_MIN:
        return Share(name, share, None, None)
    part, whole = pseudo_values(effect), pseudo_values(total)
    scatter = np.cov(part, whole) * float(stdtrit(n - 1, 0.5 + confidence / 2)) ** 2 / n
    # Fieller: all shares s for which the mean of part - s * whole is not significantly different from 0.
    square = whole.mean() ** 2 - scatter[1, 1]
    half = part.mean() * whole.mean() - scatter[0, 1]
    rest = part.mean() ** 2 - scatter[0, 0]
    if square <= 0:
        # That anything varies at all is not sure; then neither is any share of it.
        return Share(name, share, 0.0, 1.0)
    root = float(np.sqrt(max(0.0, half**2 - square * rest)))
    low, high = ((half + sign * root) / square for sign in (-1, 1))
    return Share(name, share, min(share, max(0.0, float(low))), max(share, min(1.0, float(high))))


def _scatter(logs: FloatArray) -> float:
    residuals = logs - logs.mean(axis=0)
    return float(np.median(np.sqrt(np.expm1(residuals.var(axis=1, ddof=1)))))
