"""Matched cells, and the mean over them with its error: the one matcher and the one estimate of every contrast.

A contrast holds the cells of two sides against each other, or those of four, which is an interaction. `compare` and its pooled
lines, claims, `effects` and the answer all take from here which cells match (`LevelTable`) and what their mean is
(`Differences`). Intervals and verdicts of one family are those of `comparison.judged_together`.

`ab`, `bisect` and the proof of a search are other designs: they are looked at after each block until they tell, so that their
intervals are those of a sequence (`paired_sequence.py`, `search.py`). They share the record of a verdict alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from bedplate.statistics.comparison import p_disagreement
from bedplate.statistics.estimation import (
    REPETITIONS_MIN,
    VALUES_MIN,
    Estimate,
    of_differences,
    weighted_mean,
)

if TYPE_CHECKING:
    from bedplate.model.levels import Scalar
    from bedplate.statistics.estimation import FloatArray

    CodeArray: TypeAlias = npt.NDArray[np.intp]


def is_named(name: str, named: Collection[str]) -> bool:
    """Whether a factor is one of those that are named; a throttle that is named differs in its limits too."""
    return name in named or any(name.startswith(f"{other}.") for other in named)


@dataclass(frozen=True)
class LevelTable:
    """Cells by the numbers of their levels: `codes` has the shape (cells, names), -1 where a cell has not the factor.

    Cells of several sides match if they are alike in every factor that all sides have, and that is not what they are compared
    by.
    """

    names: tuple[str, ...]
    codes: CodeArray

    @classmethod
    def of(
        cls,
        cell_levels: Sequence[Mapping[str, Scalar]],
        order: Mapping[str, Sequence[Scalar]] = MappingProxyType({}),
    ) -> LevelTable:
        """Of cells by their levels, numbered as they come up after those of `order`. `True` and 1 are two levels."""
        names = tuple(dict.fromkeys(name for cell in cell_levels for name in cell))
        numbers = {
            name: {(type(level), level): number for number, level in enumerate(order.get(name, ()))}
            for name in names
        }
        codes = [
            [
                numbers[name].setdefault((type(cell[name]), cell[name]), len(numbers[name]))
                if name in cell
                else -1
                for name in names
            ]
            for cell in cell_levels
        ]
        return cls(names, np.array(codes, dtype=np.intp).reshape(len(cell_levels), len(names)))

    def shared(self, sides: Sequence[CodeArray], compared: Collection[str]) -> tuple[list[int], list[int]]:
        """The columns of the factors that all sides have, and of those that only some have; without what is compared."""
        existing = np.array([(self.codes[rows] >= 0).any(axis=0) for rows in sides])
        free = np.array([not is_named(name, compared) for name in self.names], dtype=np.bool_)
        everywhere = existing.all(axis=0)
        columns = (
            np.flatnonzero(which & free).tolist()
            for which in (everywhere, existing.any(axis=0) & ~everywhere)
        )
        return next(columns), next(columns)

    def strata(self, sides: Sequence[CodeArray], columns: Sequence[int]) -> list[list[list[int]]]:
        """Groups of cells that are alike in these columns: in each, the rows of every side."""
        groups: defaultdict[tuple[int, ...], list[list[int]]] = defaultdict(lambda: [[] for _ in sides])
        for side, rows in enumerate(sides):
            keys = self.codes[rows][:, columns].tolist()
            for row, key in zip(rows.tolist(), map(tuple, keys), strict=True):
                groups[key][side].append(row)
        return [group for group in groups.values() if all(group)]

    def apart(self, sides: Sequence[CodeArray], columns: Iterable[int]) -> tuple[str, ...]:
        """The factors of these columns in which no cell of one side is like one of every other."""
        return tuple(
            self.names[at]
            for at in columns
            if not set.intersection(*(set(self.codes[rows, at].tolist()) for rows in sides))
        )

    def levels(self, sides: Sequence[CodeArray], at: int) -> list[set[int]]:
        """The numbers of a factor's levels on each side."""
        return [set(self.codes[rows, at].tolist()) - {-1} for rows in sides]


@dataclass(frozen=True)
class Differences:
    """What matched pairs differ by, on the scale of the arithmetic: a row of `values` for each pair, a column for each block.

    NaN where a row lacks a block. A pair between two studies has two rows, which add up: `pairs` numbers the pair of each row,
    `studies` the study of each block.
    """

    values: FloatArray
    pairs: CodeArray
    studies: CodeArray

    @classmethod
    def of_rows(cls, values: FloatArray) -> Differences:
        """Of pairs within one study."""
        return cls(values, np.arange(len(values)), np.zeros(values.shape[-1], dtype=np.intp))

    @classmethod
    def of(
        cls,
        by_repetition: Sequence[Sequence[Mapping[int, float]]],
        study_numbers: Sequence[Sequence[int]] | None = None,
    ) -> Differences:
        """Of pairs by repetition, each with one mapping or, between two `study_numbers`, with one of each."""
        rows = [
            (at, {(study, repetition): value for repetition, value in row.items()})
            for at, pair in enumerate(by_repetition)
            for row, study in zip(pair, (0,) if study_numbers is None else study_numbers[at], strict=True)
        ]
        blocks = sorted({block for _, row in rows for block in row})
        values = [[row.get(block, math.nan) for block in blocks] for _, row in rows]
        return cls(
            np.array(values, dtype=np.float64).reshape(len(rows), len(blocks)),
            np.array([at for at, _ in rows], dtype=np.intp),
            np.array([study for study, _ in blocks], dtype=np.intp),
        )

    def mean(self, weights: Mapping[int, float] | None = None) -> Estimate:
        """The weighted sum of the means of pairs, by their numbers; without weights the mean over all of them.

        No pair is left out for a block that it lacks. Where one has a single value nothing is known of its scatter, and the
        error is infinite.
        """
        if weights is None:
            weights = dict.fromkeys(self.pairs.tolist(), 1 / len(set(self.pairs.tolist())))
        own = np.array([weights.get(pair, 0.0) for pair in self.pairs.tolist()], dtype=np.float64)
        # Of most designs nothing is missing, and interactions are thousands.
        if (
            np.isfinite(self.values).all()
            and not np.ptp(self.studies)
            and self.values.shape[-1] >= VALUES_MIN
        ):
            return of_differences(own @ self.values)
        counts = np.isfinite(self.values).sum(axis=-1)
        fewest = int(counts[own != 0].min())
        if fewest < VALUES_MIN:
            means = np.where(counts, np.nansum(self.values, axis=-1) / np.maximum(counts, 1), 0.0)
            return Estimate(np.array(own @ means), np.array(math.inf), np.array(0.0), fewest)
        return weighted_mean(self.values, own, self.studies)

    def p_disagreement(self) -> float | None:
        """The chance of pairs as far apart were they all alike, over those and the blocks that make a complete part.

        None of pairs between studies or of several, and with too few of either.
        """
        if len(set(self.studies.tolist())) > 1 or len(set(self.pairs.tolist())) < len(self.pairs):
            return None
        rows = [
            {at: value for at, value in enumerate(row) if not math.isnan(value)}
            for row in self.values.tolist()
        ]
        blocks, kept = complete_part(rows)
        if len(blocks) < REPETITIONS_MIN or len(kept) < 2:
            return None
        return float(p_disagreement(self.values[np.ix_(kept, blocks)]))


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
