"""What single pairs of cells do not tell and all of them together do: levels that are shown worse, and type against type."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.compared import ComparisonQuestion, answer, candidates_of
from bedplate.analysis.comparison.pooled import pooled_pairs
from bedplate.analysis.effects.factor_effects import study_effects
from bedplate.analysis.factors import TYPE
from bedplate.errors import PlanError
from bedplate.model.figure import Better, Metric, Scale
from bedplate.statistics.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.analysis.advice.advised import Run
    from bedplate.analysis.comparison.pooled import NamedLevels, PooledPairs
    from bedplate.analysis.overview import Overview
    from bedplate.model.levels import Scalar
    from bedplate.statistics.effects import Effects


@dataclass(frozen=True)
class AllPairs:
    """The cells of one durability class in one figure of one run. `classes` are those of all cells."""

    found: Overview
    run: Run
    metric: Metric
    durability: str
    classes: Mapping[str, str]

    def not_beaten(self, cells: Sequence[str]) -> tuple[str, ...]:
        """Of some cells those at no level that is shown worse than a level of another of them; all where none would be left.

        By `effects`, and of the type also by what `compare` pools, which asks one question and so tells more. Not where the ratio
        depends on another factor beyond chance: then a ratio over all pairs is not that of each.
        """
        if len(cells) < 2 or self.metric.scale is not Scale.RATIO:
            return tuple(cells)
        left = self._at_levels_not_worse(cells)
        kinds = {self._type_of(cell) for cell in left}
        worse = {
            kind
            for line in self._types(min(kinds))
            for kind, other in (_worse_and_better(line),)
            if kind is not None and {kind, other} <= kinds
        }
        return tuple(cell for cell in left if self._type_of(cell) not in worse) or left

    def beside_other_types(self, cell: str) -> tuple[PooledPairs, ...]:
        """The type of a cell beside each other one, over all pairs of cells that differ in the type alone.

        As `compare` pools them, the most pairs first; none where no two pairs do.
        """
        own = self._type_of(cell)
        beside = [each for each in self._types(own) if _type_in(each.contender) == own]
        return tuple(sorted(beside, key=lambda each: -len(each.pairs)))

    def _type_of(self, cell: str) -> str:
        return self.found.study.schedule.cells[cell].filesystem.type

    def _at_levels_not_worse(self, cells: Sequence[str]) -> tuple[str, ...]:
        levels = {one.cell: one.levels for one in candidates_of([self.found]) if one.cell in cells}
        told = study_effects(self.found, workload=self.run[1], metrics=(self.metric.name,)).found
        worse = [
            pair
            for each in told
            if each.asked.run == self.run
            for part in each.parts
            if part.durability == self.durability
            for pair in _worse_levels(part, self.metric)
        ]
        left = tuple(
            cell
            for cell in cells
            if not any(
                levels[cell].get(factor) == low and any(own.get(factor) == high for own in levels.values())
                for factor, low, high in worse
            )
        )
        return left or tuple(cells)

    def _types(self, first: str) -> tuple[PooledPairs, ...]:
        """Every two types once, all as one family whatever is `first`, which stands as the contender of its pairs."""
        others = {self._type_of(cell) for cell in self.found.cells if self.found.of(cell, self.run)} - {first}
        order = (first, *sorted(others))
        answers = []
        for place, kind in enumerate(order[:-1]):
            question = ComparisonQuestion(
                f"{TYPE}={','.join(order[place + 1 :])}",
                f"{TYPE}={kind}",
                workload=self.run[1],
                metrics=(self.metric.name,),
            )
            with suppress(PlanError):
                answers.append(answer([self.found], question))
        return tuple(each for each in pooled_pairs(*answers) if not each.beside and self._is_own(each))

    def _is_own(self, line: PooledPairs) -> bool:
        """Whether its pairs are of this run and class; all pairs of a line keep the same of a power cut."""
        pair = line.pairs[0].pair
        return line.asked.run == self.run and all(
            self.classes[side.cell] == self.durability for side in (pair.baseline, pair.contender)
        )


def _type_in(levels: NamedLevels) -> Scalar | None:
    return dict(levels).get(TYPE)


def _worse_and_better(line: PooledPairs) -> tuple[Scalar | None, Scalar | None]:
    """The type that is shown worse and the other one; none where the pairs disagree, or nothing is shown."""
    told = line.comparison
    if line.disagree or told.estimate is None or told.verdict in (Verdict.SAME, Verdict.CANNOT_TELL):
        return None, None
    types = (_type_in(line.contender), _type_in(line.baseline))
    return types if (told.estimate < 1) == (told.metric.better is Better.HIGHER) else (types[1], types[0])


def _worse_levels(part: Effects, metric: Metric) -> Iterator[tuple[str, Scalar, Scalar]]:
    """Factor, the level that is shown worse, and the one that it is worse than."""
    depending = {name for each in part.interactions if each.judged.real for name in (each.factor, each.by)}
    for each in part.effects:
        if each.judged.real and each.factor not in depending:
            is_better = (each.judged.ratio > 1) == (metric.better is Better.HIGHER)
            levels = (each.baseline, each.level) if is_better else (each.level, each.baseline)
            yield (each.factor, *levels)
