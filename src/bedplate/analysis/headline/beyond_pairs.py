"""What single pairs of cells do not tell and all of them together do: levels that are shown worse, and type against type."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.compared import ComparisonQuestion, answer, candidates_of
from bedplate.analysis.comparison.pooled import pooled_pairs
from bedplate.analysis.effects.factor_effects import study_effects
from bedplate.analysis.factors import TYPE
from bedplate.errors import PlanError
from bedplate.model.figure import Better, Scale
from bedplate.statistics.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.analysis.advice.advised import Run
    from bedplate.analysis.comparison.pooled import NamedLevels, PooledPairs
    from bedplate.analysis.headline.answered import RunAnswer
    from bedplate.analysis.overview import Overview
    from bedplate.model.figure import Metric
    from bedplate.model.levels import Scalar
    from bedplate.statistics.effects import Effects


@dataclass(frozen=True)
class AllPairs:
    """Of a study: the cells of one durability class in what one run answers. `classes` are those of all cells."""

    found: Overview
    classes: Mapping[str, str]
    _pooled: dict[tuple[Run, str, str], tuple[PooledPairs, ...]] = field(default_factory=dict, repr=False)

    def not_beaten(self, of: RunAnswer, cells: Sequence[str]) -> tuple[str, ...]:
        """Of some cells those at no level that is shown worse than a level of another of them; all where none would be left.

        By `effects`, and of the type also by what `compare` pools, which asks one question and so tells more. Not where the ratio
        depends on another factor beyond chance: then a ratio over all pairs is not that of each.
        """
        if len(cells) < 2 or of.metric.scale is not Scale.RATIO:
            return tuple(cells)
        left = self._at_levels_not_worse(of, cells)
        kinds = {self._type_of(cell) for cell in left}
        worse = {
            kind
            for line in self._types(of, self._type_of(left[0]))
            for kind, other in (_worse_and_better(line),)
            if kind is not None and {kind, other} <= kinds
        }
        return tuple(cell for cell in left if self._type_of(cell) not in worse) or left

    def beside_other_types(self, of: RunAnswer, cell: str) -> tuple[PooledPairs, ...]:
        """The type of a cell beside each other one, over all pairs of cells that differ in the type alone.

        As `compare` pools them, the most pairs first; none where no two pairs do.
        """
        own = self._type_of(cell)
        beside = [each for each in self._types(of, own) if _type_in(each.contender) == own]
        return tuple(sorted(beside, key=lambda each: -len(each.pairs)))

    def _type_of(self, cell: str) -> str:
        return self.found.study.schedule.cells[cell].filesystem.type

    def _at_levels_not_worse(self, of: RunAnswer, cells: Sequence[str]) -> tuple[str, ...]:
        levels = {one.cell: one.levels for one in candidates_of([self.found]) if one.cell in cells}
        told = study_effects(self.found, workload=of.run[1], metrics=(of.metric.name,)).found
        worse = [
            pair
            for each in told
            if each.asked.run == of.run
            for part in each.parts
            if part.durability == of.durability
            for pair in _worse_levels(part, of.metric)
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

    def _types(self, of: RunAnswer, first: str) -> tuple[PooledPairs, ...]:
        """Those of its own class."""
        place = (of.run, of.metric.name, first)
        if place not in self._pooled:
            self._pooled[place] = self._of_every_two_types(*place)
        return tuple(each for each in self._pooled[place] if not each.beside and self._is_own(of, each))

    def _of_every_two_types(self, run: Run, metric: str, first: str) -> tuple[PooledPairs, ...]:
        """Every two types once, all as one family whatever is `first`, which stands as the contender of its pairs."""
        others = {self._type_of(cell) for cell in self.found.cells if self.found.of(cell, run)} - {first}
        order = (first, *sorted(others))
        answers = []
        for place, kind in enumerate(order[:-1]):
            question = ComparisonQuestion(
                f"{TYPE}={','.join(order[place + 1 :])}",
                f"{TYPE}={kind}",
                workload=run[1],
                metrics=(metric,),
            )
            with suppress(PlanError):
                answers.append(answer([self.found], question))
        return pooled_pairs(*answers)

    def _is_own(self, of: RunAnswer, line: PooledPairs) -> bool:
        """Whether its pairs are of this run and class; all pairs of a line keep the same of a power cut."""
        pair = line.pairs[0].pair
        return line.asked.run == of.run and all(
            self.classes[side.cell] == of.durability for side in (pair.baseline, pair.contender)
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
